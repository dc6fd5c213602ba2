"""Questions that no model is asked: a text filled in, a draw.

Does not cover: properties of a mapped answer (mapped).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.survey.questions.base import Derivation, Question, Schema, as_example
from headrace.survey.questions.json_answers import as_list
from headrace.survey.repair.number_texts import plain_number

_DRAW_BYTES = 8


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
    example_settings = as_example(question_name="computed_greeting", question_text="Hello {{ scenario.name }}!")

    def derive(self, given: Derivation) -> Any:
        text = given.fill(given.context)[0].strip()
        number = plain_number(text) if "," not in text else None
        return text if number is None else number


@dataclass(frozen=True, kw_only=True)
class QuestionRandom(ComputedQuestion):
    """A number from 0 to 1, or one of `question_options` where they are given. The same in every run of a plan."""

    kind = "random"
    example_settings = as_example(
        question_name="random_number", question_text="Generate a pseudo-random number between 0 and 1"
    )

    question_text: str = "Random number generator"
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


def drawn_fraction(seed: int, ordinal: int, question_name: str) -> float:
    """A number from 0 up to 1 that only these three decide."""
    drawn = hashlib.blake2b(f"{seed}/{ordinal}/{question_name}".encode(), digest_size=_DRAW_BYTES).digest()
    return (int.from_bytes(drawn) >> 11) / (1 << 53)  # as many bits as a float holds exactly
