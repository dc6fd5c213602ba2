"""The functions of a job. They do not travel in a spec: an executor is given them beside it, in the order below.

    one dict for each model that is called        its parameters that are functions   (survey.model)
    one dict for each question                    its settings that are functions     (survey.questions.base)

Covers: gathering them, and finding whose they are. Does not cover: how they reach another process
(interviews.workers.survey_workers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from headrace.interviews.contract import Spec
from headrace.plan.job import Job
from headrace.survey.model import MissingFunction, Model
from headrace.survey.survey import Survey

Functions: TypeAlias = Sequence[dict[str, Any]]


def functions_of(job: Job) -> list[dict[str, Any]]:
    """As many as the job has models and questions."""
    owners = (*job.called_models, *job.survey.questions)
    return [owner.functions for owner in owners]


def models_with(spec: Spec, functions: Functions) -> list[Model]:
    return [Model.from_row(row, given) for row, given in zip(spec.models, functions, strict=False)]


def survey_with(spec: Spec, functions: Functions) -> Survey:
    """The survey with its functions; an error where the program has not given one. Models say that themselves."""
    survey = Survey.from_row(spec.survey, functions[len(spec.models) :])
    for question in survey.questions:
        for function in question.functions.values():
            if isinstance(function, MissingFunction):
                function()
    return survey
