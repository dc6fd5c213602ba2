"""Results as agents and scenarios of the next survey. Rows go into the list's spool as they are read, never into a list
in RAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.plan.lists import AgentList, ScenarioList
from headrace.results.columns.result_column import without_group
from headrace.survey.agent import INSTRUCTION, NAME, Agent

_NAMES = (NAME, "name")


def to_scenario_list(rows: Iterator[dict[str, Any]]) -> ScenarioList:
    return ScenarioList(rows)


def to_agent_list(rows: Iterator[dict[str, Any]]) -> AgentList:
    """An agent for each row; `agent_name` or `name` becomes its name, `agent_instruction` its instruction."""
    return AgentList(map(_agent, rows))


def _agent(row: dict[str, Any]) -> Agent:
    traits = {name: value for name, value in row.items() if without_group(name) not in (*_NAMES, INSTRUCTION)}
    own = {without_group(name): value for name, value in row.items()}
    name = next((own[key] for key in _NAMES if own.get(key) is not None), None)
    return Agent(traits, name=name, instruction=own.get(INSTRUCTION))
