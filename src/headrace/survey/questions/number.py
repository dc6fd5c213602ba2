"""A number, within bounds where they are given. Whole numbers stay whole."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import CommentedQuestion, Schema

_WHOLE = re.compile(r"[-+]?\d{1,4000}")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class QuestionNumerical(CommentedQuestion):
    kind = "numerical"

    min_value: float | None = None
    max_value: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for bound in (self.min_value, self.max_value):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, (int, float)) or bound != bound):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise SurveyError(f"Question {self.question_name!r} has the bound {bound!r}.", fix="Give a number.")
        if self.min_value is not None and self.max_value is not None and self.min_value > self.max_value:
            raise SurveyError(
                f"Question {self.question_name!r} has min_value {self.min_value} above max_value {self.max_value}.",
                fix="Exchange them.",
            )

    def instructions(self) -> str:
        match (self.min_value, self.max_value):
            case (None, None):
                bounds = ""
            case (low, None):
                bounds = f" of at least {low}"
            case (None, high):
                bounds = f" of at most {high}"
            case (low, high):
                bounds = f" between {low} and {high}"
        return f"Answer with one number{bounds} and nothing else."

    def schema(self) -> Schema:
        bounds = {"minimum": self.min_value, "maximum": self.max_value}
        return {"type": "number", **{name: bound for name, bound in bounds.items() if bound is not None}}

    def accept(self, given: Any) -> int | float:
        number = as_number(given)
        if self.min_value is not None and number < self.min_value:
            raise InvalidAnswer(f"{number} is below the least value {self.min_value}")
        if self.max_value is not None and number > self.max_value:
            raise InvalidAnswer(f"{number} is above the greatest value {self.max_value}")
        return number


def as_number(given: Any) -> int | float:
    """A finite number from a JSON number or from text that is a number and nothing else."""
    if isinstance(given, str):
        given = _read(given.strip())
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise InvalidAnswer(f"{str(given)[:200]!r} is not a number")
    if isinstance(given, float) and not math.isfinite(given):
        raise InvalidAnswer(f"{given} is not a finite number")
    return given


def _read(text: str) -> int | float | str:
    if text.isdecimal() and len(text) < 19:
        return int(text)
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
