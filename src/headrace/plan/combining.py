"""Adds agents, scenarios or models to a job that has some: what a second `by` means. The rules are EDSL's.

A second list of scenarios or agents is crossed with the first: each of the first with each of the second, the first
list's items the slower ones. A scenario takes the second's value where both have a field; an agent keeps both, and the
second's trait gets a number: `age_1`. A second list of models replaces the first, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.edsl_names import warn_once
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.plan.sources import Spool
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.values import Fields, decode_fields


def crossed_scenarios(first: ScenarioList, second: ScenarioList) -> ScenarioList:
    rows = ({**ours, **theirs} for ours, theirs in _pairs(first, second))
    return ScenarioList.of(Spool(rows, "scenario"))


def crossed_agents(first: AgentList, second: AgentList) -> AgentList:
    rows = (_joined(ours, theirs) for ours, theirs in _pairs(first, second))
    return AgentList.of(Spool(rows, "agent"))


def replaced_models(first: ModelList, second: ModelList) -> ModelList:
    if second != first:
        names = ", ".join(model.name for model in first)
        warn_once(f"A later by() replaces the models of an earlier one ({names}). Give all models in one call of by().")
    return second


def _pairs(first: AgentList | ScenarioList, second: AgentList | ScenarioList) -> Iterator[tuple[Fields, Fields]]:
    for row in first.source.rows():
        fields = decode_fields(row)
        for other in second.source.rows():
            yield fields, decode_fields(other)


def _joined(first: Fields, second: Fields) -> Fields:
    both = dict(first)
    for name, value in second.items():
        if name in both:
            if name in (NAME, INSTRUCTION):
                continue  # an agent has one: the first's
            name = _numbered(name, both)
        both[name] = value
    return both


def _numbered(name: str, taken: Fields) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
