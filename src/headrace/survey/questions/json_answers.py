"""Answers that are lists or objects. Covers: reading them, and naming their parts as the question does.

Does not cover: JSON in what models really write (survey.repair), or what each part may be (the kinds themselves).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import CommentedQuestion
from headrace.survey.repair.json_texts import Found, json_in
from headrace.survey.repair.number_texts import plain_number
from headrace.survey.replies import read_reply, without_thoughts
from headrace.survey.templates import is_template

_MOST_NAMED = 20
_NAMES: dict[type[Any], str] = {list: "list", dict: "object"}


@dataclass(frozen=True, kw_only=True)
class JsonQuestion(CommentedQuestion):
    """A question whose answer is JSON, or was written as JSON."""

    shapes: ClassVar[tuple[type[Any], ...]] = (dict,)
    answer_spans_lines = True

    def read(self, text: str) -> tuple[Any, str | None]:
        text = without_thoughts(text)
        found = self.find(text)
        return read_reply(text) if found is None else found

    def find(self, text: str) -> Found | None:
        """The answer in a text, where it has one of the shapes."""
        return json_in(text, self.shapes)

    def shaped(self, given: Any) -> Any:
        """The answer as a list or dict, or InvalidAnswer."""
        if isinstance(given, str):
            found = self.find(given)
            given = given if found is None else found.value
        if not isinstance(given, self.shapes):
            wanted = " or ".join(_NAMES[shape] for shape in self.shapes)
            raise InvalidAnswer(f"{str(given)[:200]!r} is not a JSON {wanted}")
        return given


def by_name(given: Mapping[str, Any], names: Sequence[str], *, what: str) -> dict[str, Any]:
    """The parts of an answer by the names that the question gave them, in their order.

    A key is a name, a name but for case and blanks, or, where all of them are, its number counted from 0.
    """
    held = _decoded(given, names)
    if missing := [name for name in names if name not in held]:
        raise InvalidAnswer(f"the answer has nothing for the {what} {_listed(missing)}")
    return {name: held[name] for name in names}


def are_codes(given: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether the keys are the names' numbers, counted from 0."""
    codes = [str(number) for number in range(len(names))]
    return sorted(given) == sorted(codes) and not set(codes) & set(names)


def _decoded(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    if are_codes(given, names):
        return {name: given[str(number)] for number, name in enumerate(names)}
    exact, loose = set(names), {_loosely(name): name for name in names}
    is_clear = len(loose) == len(names)  # else two names differ only in what is overlooked
    held: dict[str, Any] = {}
    for key, value in given.items():
        name = key if key in exact else loose.get(_loosely(key)) if is_clear else None
        if name is None or name in held:
            raise InvalidAnswer(f"{key[:200]!r} is not one of {_listed(names)}, or is there twice")
        held[name] = value
    return held


def _loosely(name: str) -> str:
    return " ".join(name.split()).casefold()


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def as_list(question_name: str, setting: str, given: object) -> Any:
    """A setting that is a list: a tuple of its items, or the template that names one."""
    if isinstance(given, str) and is_template(given):
        return given
    if isinstance(given, (str, bytes, Mapping, set, frozenset)) or not isinstance(given, Iterable):
        raise SurveyError(
            f"Question {question_name!r} has {given!r} for its {setting}.",
            fix='Give a list, or a template that names one, like "{{ scenario.brands }}".',
        )
    items = tuple(cast("Iterable[Any]", given))  # bounded by what a person writes
    if not items:
        raise SurveyError(f"Question {question_name!r} has no {setting}.", fix="Give at least one.")
    return items


def check_distinct(question_name: str, setting: str, names: Sequence[object]) -> None:
    """Refuses names that look alike: an answer could not tell them apart."""
    seen: set[str] = set()
    for name in names:
        shown = str(name).strip()
        if not shown or shown in seen:
            raise SurveyError(f"Question {question_name!r} has {name!r} twice, or empty, in its {setting}.")
        seen.add(shown)


def as_bound(question_name: str, setting: str, given: object, *, is_whole: bool = False) -> Any:
    """A setting that is a number or None: the number, also from a text, or the template that will give one."""
    if given is None or (isinstance(given, str) and is_template(given)):
        return given
    number = plain_number(given.strip()) if isinstance(given, str) else given
    wanted = int if is_whole else (int, float)
    if isinstance(number, bool) or not isinstance(number, wanted) or number != number:
        kind = "whole number" if is_whole else "number"
        raise SurveyError(f"Question {question_name!r} has the bound {given!r} for {setting}.", fix=f"Give a {kind}.")
    return number


def check_order(question_name: str, low_name: str, low: Any, high_name: str, high: Any) -> None:
    """Refuses a lower bound above the upper one; bounds that are still templates are checked once they are filled."""
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
        raise SurveyError(
            f"Question {question_name!r} has {low_name} {low} above {high_name} {high}.", fix="Exchange them."
        )
