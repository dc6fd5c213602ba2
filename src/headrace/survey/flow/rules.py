"""Rules: after or before a question, where an expression holds, go on with a later question or end the survey.

Covers: a rule as a value, its stored form, and checking that it leads forward. Does not cover: which of several rules
decides, and what that means for one interview (survey.flow.route).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from headrace.errors import SurveyError
from headrace.expressions import Expression

_END: Final = "EndOfSurvey"


class EndOfSurveyType(Enum):
    """The class of `EndOfSurvey`, which stands for the end where a rule names its next question."""

    END = _END

    def __repr__(self) -> str:
        return _END

    def __bool__(self) -> bool:
        return False


EndOfSurvey: Final = EndOfSurveyType.END


class Rule(msgspec.Struct, frozen=True):
    """`next_question` is None for the end of the survey. `is_before` where it is looked at before its question."""

    question: str
    expression: Expression
    next_question: str | None
    is_before: bool = False

    @property
    def place(self) -> str:
        return f"The rule {'before' if self.is_before else 'after'} {self.question!r}"

    @property
    def target(self) -> str:
        return _END if self.next_question is None else self.next_question

    def to_dict(self) -> dict[str, Any]:
        """The rule as stored, in the words of `Survey.add_rule`."""
        stored = {"question": self.question, "expression": self.expression.source, "next_question": self.target}
        return {**stored, "before_rule": True} if self.is_before else stored

    def describe(self) -> str:
        return f"{'before' if self.is_before else 'after'}: to {self.target} where {self.expression.source}"


def is_end(question: object) -> bool:
    """Whether what a rule was given as its next question stands for the end of the survey."""
    return isinstance(question, EndOfSurveyType) or question == _END


def with_answer(name: str, questions: Container[str]) -> str:
    """A name of an expression in full: `mood` alone is `mood.answer`."""
    return f"{name}.answer" if name in questions else name


def check_forward(rule: Rule, positions: dict[str, int]) -> None:
    """Refuses a rule that does not lead to a later question: an interview would never end."""
    if rule.next_question is None or positions[rule.next_question] > positions[rule.question]:
        return
    goes = "to the same question" if rule.next_question == rule.question else f"back to {rule.next_question!r}"
    raise SurveyError(f"{rule.place} goes {goes}.", fix="Name a question that comes later, or EndOfSurvey.")


def without_question(rules: Sequence[Rule], name: str, following: str | None) -> tuple[Rule, ...]:
    """The rules of a survey that loses a question: its own are gone, those that led to it lead to the following one."""
    kept = (rule for rule in rules if rule.question != name)
    return tuple(replace(rule, next_question=following) if rule.next_question == name else rule for rule in kept)
