"""What an agent's own functions do in an interview: answer a question in place of a model, or give it other traits.

    answer_question_directly(agent, question, scenario)     the answer; no model is asked
    dynamic_traits_function(question), or ()                the traits that the agent has for this question

They are the program's own code: a file holds their names alone. Whatever one raises fails its question. Does not cover:
how they reach an executor (interviews.job_functions).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from headrace.survey.agent import INSTRUCTION, NAME, Agent
from headrace.survey.people.agent_settings import ANSWERS, SETTINGS, TRAITS_OF, UNCHECKED_ANSWERS, AgentSettings
from headrace.survey.prompts import persona
from headrace.survey.questions import Question
from headrace.survey.scenario import Scenario
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, UnusableValue, decode_fields, decode_value, encode_fields, encode_value
from headrace.survey.wording.own_wording import Wording

_KEPT = (NAME, INSTRUCTION, SETTINGS)


class AgentFunctions:
    """The functions of one agent, given its row."""

    def __init__(self, settings: AgentSettings, fields: Fields, wording: Wording) -> None:
        self._settings = settings
        self._wording = wording
        self.fields = fields
        self._unchecked: Callable[..., Any] | None = settings.functions.get(UNCHECKED_ANSWERS)
        self._answer: Callable[..., Any] | None = settings.functions.get(ANSWERS, self._unchecked)
        self._traits: Callable[..., Any] | None = settings.functions.get(TRAITS_OF)

    @property
    def answers(self) -> bool:
        """Whether it answers every question itself."""
        return self._answer is not None

    def answer(self, question: Question, scenario: Fields) -> Any:
        """The function's answer; InvalidAnswer where the question does not accept it. The function gets copies: what it
        changes in them, no other interview sees.
        """
        assert self._answer is not None
        agent = Agent.from_fields(copy.deepcopy(self.fields), self._settings)
        given = _as_data(_called(ANSWERS, self._answer, agent, question, Scenario(scenario).copy()))
        return question.accept(given) if self._unchecked is None else given

    def described_for(self, question: Question) -> tuple[Fields, str]:
        """The agent's row for this question, and its persona."""
        if self._traits is None:
            return self.fields, persona(self.fields, self._settings, self._wording)
        arguments = (question,) if inspect.signature(self._traits).parameters else ()
        traits = _called(TRAITS_OF, self._traits, *arguments)
        if not isinstance(traits, Mapping):
            raise CannotRender(f"the agent's {TRAITS_OF} returned {type(traits).__name__}, where a dict is needed")
        kept = {name: self.fields[name] for name in _KEPT if name in self.fields}
        fields = {**kept, **_as_row(cast("Mapping[str, Any]", traits))}
        return fields, persona(fields, self._settings, self._wording)


def _as_data(answer: Any) -> Any:
    try:
        return decode_value(encode_value(answer))
    except UnusableValue as error:
        raise CannotRender(f"the agent's own answer cannot be stored: {error.message}") from None


def _as_row(traits: Mapping[str, Any]) -> Fields:
    """Traits as a row holds them: plain data, which templates may be given."""
    try:
        return decode_fields(encode_fields(traits)[0])
    except UnusableValue as error:
        raise CannotRender(f"the agent's {TRAITS_OF}: {error.message}") from None


def _called(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except MemoryError:
        raise  # it says nothing about the function
    except Exception as error:
        raise CannotRender(f"the agent's {name} raised {type(error).__name__}: {error}") from error
