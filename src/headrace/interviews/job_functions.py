"""The functions of a job. They do not travel in a spec: an executor is given them beside it, in the order below.

    one dict for each model that is called        its parameters that are functions   (survey.model)
    one dict for each question                    its settings that are functions     (survey.questions.base)
    one dict for each entry of agents' settings   what these agents answer themselves (survey.people.agent_settings)

Covers: gathering them, and finding whose they are. Does not cover: how they reach another process
(interviews.workers.survey_workers).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from headrace.interviews.contract import Spec
from headrace.plan.job import Job
from headrace.survey.model import MissingFunction, Model
from headrace.survey.people.agent_settings import AgentSettings, SettingsTable
from headrace.survey.questions import Question
from headrace.survey.survey import Survey

Functions: TypeAlias = Sequence[dict[str, Any]]


def functions_of(job: Job) -> list[dict[str, Any]]:
    """As many as the job has models, questions and entries in its agents' settings."""
    owners = (*job.called_models, *job.survey.questions, *job.agents.settings.entries)
    return [dict(owner.functions) for owner in owners]


def models_with(spec: Spec, functions: Functions) -> list[Model]:
    return [Model.from_row(row, given) for row, given in zip(spec.models, functions, strict=False)]


def survey_with(spec: Spec, functions: Functions) -> Survey:
    """The survey with its functions; an error where the program has not given one. Models say that themselves."""
    survey = Survey.from_row(spec.survey, functions[len(spec.models) :])
    _check_given(survey.questions)
    return survey


def agent_settings_with(spec: Spec, functions: Functions, questions: int) -> SettingsTable:
    """The agents' settings with their functions; an error where the program has not given one."""
    table = SettingsTable.from_row(spec.agent_settings, functions[len(spec.models) + questions :])
    _check_given(table.entries)
    return table


def _check_given(owners: Iterable[Question | AgentSettings]) -> None:
    for owner in owners:
        for function in owner.functions.values():
            if isinstance(function, MissingFunction):
                function()
