"""Adds agents, scenarios or models to a job that has some: what a second `by` means. The rules are EDSL's.

A second list of scenarios or agents is crossed with the first: each of the first with each of the second, the first
list's items the slower ones. A scenario takes the second's value where both have a field; an agent keeps both, and the
second's trait gets a number: `age_1`. A second list of models replaces the first, with a warning.
"""

from __future__ import annotations

from headrace.edsl_names import warn_once
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.survey.scenario import Scenario


def crossed_scenarios(first: ScenarioList, second: ScenarioList) -> ScenarioList:
    return ScenarioList(Scenario({**ours, **theirs}) for ours in first for theirs in second)


def crossed_agents(first: AgentList, second: AgentList) -> AgentList:
    return AgentList(ours + theirs for ours in first for theirs in second)


def replaced_models(first: ModelList, second: ModelList) -> ModelList:
    if second != first:
        names = ", ".join(model.name for model in first)
        warn_once(f"A later by() replaces the models of an earlier one ({names}). Give all models in one call of by().")
    return second
