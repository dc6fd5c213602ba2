"""Rows as lists: of plain Python values, one column or several, and of the agents and scenarios of a next survey.

Agents and scenarios go into their list's spool as the rows are read, never into a list in RAM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from headrace.errors import InvalidInput
from headrace.plan.lists import AgentList, ScenarioList
from headrace.results.columns.result_column import is_own, without_group
from headrace.survey.agent import INSTRUCTION, NAME, Agent

_NAMES = (NAME, "name")


class ListForm(NamedTuple):
    """What is made of a column's values on their way into a list; Tabular.to_list explains it."""

    flatten: bool
    remove_none: bool
    unzipped: bool


def bare_names(names: list[str]) -> list[str]:
    """The names without what stands before the dot; those that would then be alike keep it. Of a user's column and one
    of Headrace's own, `answer.status` and `interview.status`, only the latter does.
    """
    bare = [without_group(name) for name in names]
    counts, own = Counter(bare), list(map(is_own, names))
    given = Counter(short for short, of_ours in zip(bare, own, strict=True) if not of_ours)

    def is_clear(short: str, of_ours: bool) -> bool:
        return counts[short] == 1 or (not of_ours and given[short] == 1)

    return [short if is_clear(short, of_ours) else name for short, of_ours, name in zip(bare, own, names, strict=True)]


def to_list(columns: list[str], rows: Iterator[tuple[Any, ...]], form: ListForm) -> list[Any]:
    """All rows in memory: the values of one column, tuples of several, or a list for each column."""
    if form.flatten and len(columns) > 1:
        raise InvalidInput(
            f"Only one column can be flattened, and these are {len(columns)}.", fix='Select one: select("answer.q").'
        )
    if form.unzipped:
        return list(map(list, zip(*rows, strict=True))) or [[] for _ in columns]
    if len(columns) != 1:
        return list(rows)
    values = (value for (value,) in rows if not (form.remove_none and value is None))
    return [item for value in values for item in _items(value)] if form.flatten else list(values)


def to_scenario_list(rows: Iterator[dict[str, Any]]) -> ScenarioList:
    return ScenarioList(rows)


def to_agent_list(rows: Iterator[dict[str, Any]]) -> AgentList:
    """An agent for each row; `agent_name` or `name` becomes its name, `agent_instruction` its instruction."""
    return AgentList(map(_agent, rows))


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _agent(row: dict[str, Any]) -> Agent:
    traits = {name: value for name, value in row.items() if without_group(name) not in (*_NAMES, INSTRUCTION)}
    own = {without_group(name): value for name, value in row.items()}
    name = next((own[key] for key in _NAMES if own.get(key) is not None), None)
    return Agent(traits, name=name, instruction=own.get(INSTRUCTION))
