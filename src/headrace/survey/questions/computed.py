"""Questions that no model is asked: a text filled in, a draw, a function of the program's own.

Does not cover: properties of a mapped answer (mapped).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.errors import SurveyError
from headrace.survey.agent import INSTRUCTION, NAME
from headrace.survey.files.file_text import NOT_WAITING
from headrace.survey.people.agent_settings import SETTINGS
from headrace.survey.questions.base import Derivation, Question, Schema, as_example
from headrace.survey.questions.json_answers import as_list
from headrace.survey.repair.number_texts import plain_number
from headrace.survey.templates import CannotRender
from headrace.survey.values import UnusableValue, decode_value, encode_value

_NOT_TRAITS = frozenset({NAME, INSTRUCTION, SETTINGS})
_LONGEST_MESSAGE = 500
_DRAW_BYTES = 8
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True, kw_only=True)
class ComputedQuestion(Question):
    """A question that has its answer without a model."""

    def instructions(self) -> str:
        return ""

    def schema(self) -> Schema:
        return {}

    def accept(self, given: Any) -> Any:
        return given


@dataclass(frozen=True, kw_only=True)
class QuestionCompute(ComputedQuestion):
    """Its text, filled in, is the answer: a number where it is one. `"{{ q1.answer + q2.answer }}"`."""

    kind = "compute"
    example_settings = as_example(question_name="address", question_text="{{ scenario.street }}, {{ scenario.city }}")

    def derive(self, given: Derivation) -> Any:
        text = given.fill(given.context)[0].strip()
        number = plain_number(text) if "," not in text else None
        return text if number is None else number


@dataclass(frozen=True, kw_only=True)
class QuestionRandom(ComputedQuestion):
    """A number from 0 to 1, or one of `question_options` where they are given. The same in every run of a plan."""

    kind = "random"
    example_settings = as_example(question_name="draw")

    question_text: str = "A random draw"
    question_options: Sequence[Any] | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.question_options is not None:
            options = as_list(self.question_name, "question_options", self.question_options)
            object.__setattr__(self, "question_options", options)

    @property
    def holds_bools(self) -> bool:
        options = self.question_options
        return options is not None and all(isinstance(option, bool) for option in options)

    def derive(self, given: Derivation) -> Any:
        fraction = drawn_fraction(given.seed, given.ordinal, self.question_name)
        if self.question_options is None:
            return fraction
        options = cast(QuestionRandom, given.fill(given.context)[1]).question_options
        assert options is not None
        return options[int(fraction * len(options))]


def longest_word(scenario: Mapping[str, Any], agent_traits: Mapping[str, Any]) -> str:
    """The function of `QuestionFunctional.example()`."""
    words = str(scenario.get("text", "")).split()
    return max(words, key=len, default=str(agent_traits.get("word", "")))


@dataclass(frozen=True, kw_only=True)
class QuestionFunctional(ComputedQuestion):
    """What `func(scenario, agent_traits)` returns. The function is the program's own: a file holds its name alone, and
    `requires_loop` and `unsafe`, which EDSL asks for, change nothing here.
    """

    kind = "functional"
    function_settings = frozenset({"func"})
    literal_settings = frozenset({"func"})
    example_settings = as_example(
        question_name="longest_word", question_text="The longest word of the text", func=longest_word
    )

    question_text: str = "The result of a function"
    func: Callable[[Mapping[str, Any], Mapping[str, Any]], Any] = field(metadata={"in_files": False})
    requires_loop: bool = False
    unsafe: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.func):
            raise SurveyError(
                f"Question {self.question_name!r} has {self.func!r} for its func.",
                fix="Give a function of the scenario and the agent's traits.",
            )

    def derive(self, given: Derivation) -> Any:
        traits = {name: value for name, value in given.context["agent"].items() if name not in _NOT_TRAITS}
        try:
            with NOT_WAITING.lifted():
                answer = self.func(dict(given.context["scenario"]), traits)
        except MemoryError:
            raise  # it says nothing about the function
        except Exception as error:
            told = f"its function raised {type(error).__name__}: {error}"
            raise CannotRender(told[:_LONGEST_MESSAGE]) from error
        return answer if isinstance(answer, _PLAIN) else _as_json(answer)


def drawn_fraction(seed: int, ordinal: int, question_name: str) -> float:
    """A number from 0 up to 1 that only these three decide."""
    drawn = hashlib.blake2b(f"{seed}/{ordinal}/{question_name}".encode(), digest_size=_DRAW_BYTES).digest()
    return (int.from_bytes(drawn) >> 11) / (1 << 53)  # as many bits as a float holds exactly


def _as_json(answer: Any) -> Any:
    """The answer as plain data, as it will come back from the file."""
    try:
        return decode_value(encode_value(answer))
    except UnusableValue as error:
        raise CannotRender(f"its function returned what is no JSON: {error.message}") from None
