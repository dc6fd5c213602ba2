"""The models that a job calls: those of its plan, then those that questions have of their own.

A question's own model answers it in every interview; it is no digit of an ordinal. Covers: listing them, and models
of questions that come from a file. Does not cover: calling them (interviews.interview).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.survey.model import Model
from headrace.survey.model_text import default_model
from headrace.survey.people.agent_settings import SettingsTable
from headrace.survey.questions import Question
from headrace.survey.survey import Survey


def called_models(survey: Survey, plan_models: Iterable[Model]) -> list[Model]:
    """The models by number: the plan's, as ordinals count them, then each model of a question once."""
    return [*plan_models, *own_models(survey)]


def own_models(survey: Survey) -> list[Model]:
    """Each model of a question once."""
    own = {_key(question.model): question.model for question in survey.questions if question.model is not None}
    return list(own.values())


def default_models(survey: Survey, settings: SettingsTable) -> list[Model]:
    """The models of a plan that names none. Where no interview would ask it, the first question's own model stands for
    it, or the test model where no model is asked at all: questions are computed, or agents answer themselves.
    """
    if all(question.is_derived or question.model is not None for question in survey.questions):
        return own_models(survey)[:1] or [Model("test")]
    if settings.answers_everything:
        return [Model("test")]
    return [default_model()]


def question_models(survey: Survey, first: int) -> dict[int, int]:
    """The number of the model of each question that has its own, by position; `first` is the first such number."""
    numbers: dict[object, int] = {}
    chosen: dict[int, int] = {}
    for position, question in enumerate(survey.questions):
        if question.model is not None:
            chosen[position] = numbers.setdefault(_key(question.model), first + len(numbers))
    return chosen


def with_claimed_models(survey: Survey, path: str, allowed: frozenset[str]) -> Survey:
    """The survey of a run file: its questions' models are claims, as those of its plan are."""
    return survey.with_questions(_claimed(question, path, allowed) for question in survey.questions)


def _claimed(question: Question, path: str, allowed: frozenset[str]) -> Question:
    if question.model is None:
        return question
    return replace(question, model=Model.from_file(question.model.to_row(), path, allowed))


def _key(model: Model) -> object:
    """The key by which models are compared. Two functions may have one reference and have captured different values."""
    return model.to_row(), tuple(map(id, model.functions.values()))
