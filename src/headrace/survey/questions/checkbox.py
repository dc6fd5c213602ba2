"""Several of the options: checkboxes, a ranking, the best few.

The answer is a list of options, in the order given. Does not cover: showing options and choosing one
(survey.questions.choice), or finding options in a text (survey.repair.option_texts).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Schema, as_example
from headrace.survey.questions.choice import (
    ChoiceQuestion,
    check_other,
    other_answer,
    other_schema,
    other_words,
    with_other,
)
from headrace.survey.repair.json_texts import Found, json_in
from headrace.survey.repair.marked_lines import lines_in
from headrace.survey.repair.option_texts import (
    KnownOptions,
    as_shown,
    loosely,
    position_of,
    positions_in_row,
    positions_named,
)
from headrace.survey.replies import without_thoughts
from headrace.survey.templates import is_template

_NONE = frozenset({"none", "none of the above", "none of these", "none of them", "nothing", "[]"})
_MOST_NAMED = 20
_LONGEST_OWN_WORDS = 200


@dataclass(frozen=True, kw_only=True)
class SeveralQuestion(ChoiceQuestion):
    """A question whose answer is a list of options, each at most once."""

    answer_spans_lines = True
    is_ordered: ClassVar[bool] = False  # the order of the options is the answer
    reads_sentences: ClassVar[bool] = True

    @property
    def holds_bools(self) -> bool:
        return False

    def bounds(self) -> tuple[int, int]:
        """How few and how many options may be chosen."""
        raise NotImplementedError

    def schema(self) -> Schema:
        least, most = self.bounds()
        bounds: Schema = {"minItems": least} if least else {}
        return {"type": "array", "items": self.item_schema(), **bounds, "maxItems": most, "uniqueItems": True}

    def item_schema(self) -> Schema:
        return {"enum": self.answers()}

    def instructions(self) -> str:
        what = "their numbers" if self.uses_code else "them"
        order = ", the best first" if self.is_ordered else ""
        chosen = f"Choose {_counted(*self.bounds())}, each once."
        return f"{chosen} Answer with {what} as a JSON list{order}: {self._example()}"

    def _example(self) -> str:
        """A list that would be taken: of as many items as are asked for, two where that is free."""
        least, most = self.bounds()
        count = max(least, min(most, 2))
        # Not in order, which a model would copy as if it were the answer.
        numbers = [0, *([2] if len(self.options) > 2 else []), 1, *range(3, len(self.options))][:count]
        items = map(str, numbers) if self.uses_code else ['"..."'] * count
        return f"[{', '.join(items)}]"

    def read(self, text: str) -> tuple[Any, str | None]:
        found = _items_in(without_thoughts(text))
        if found is not None and self._are_options(found.value):
            return found.value, found.comment
        given, comment = super().read(text)
        if isinstance(given, str) and comment is None and not self._accepts(given):
            first, _, rest = given.partition("\n")  # a sentence, and a comment that may name other options
            return first.strip(), rest.strip() or None
        return given, comment

    def accept(self, given: Any) -> list[Any]:
        if isinstance(given, list):
            return self._distinct([self.picked(item) for item in given])  # pyright: ignore[reportUnknownVariableType]
        text = as_shown(given)
        picked = self._in_row(text)
        if picked is None and self.reads_sentences and "\n" not in text:
            positions = positions_named(text, self._known)
            picked = None if positions is None else [self._known.values[position] for position in positions]
        if picked is None:
            picked = [self.picked(item.strip(" []")) for item in text.split(",")]
        return self._distinct(picked)

    def _accepts(self, given: str) -> bool:
        picked = self._in_row(given)
        try:
            self._distinct(picked or [])
        except InvalidAnswer:
            return False
        return picked is not None

    def _distinct(self, picked: list[Any]) -> list[Any]:
        """The options that were picked, each once, where there are neither too few nor too many."""
        distinct: dict[object, Any] = {}
        for option in picked:
            distinct.setdefault((cast(object, type(option)), as_shown(option)), option)
        self.check_count(len(distinct))
        return list(distinct.values())

    def picked(self, item: Any) -> Any:
        """The option that one item of the list means."""
        if (written := self._written(item)) is not None:
            return written
        position = position_of(item, self._known)
        if position is not None:
            return self._known.values[position]
        listed = ", ".join(map(as_shown, self._known.values[:_MOST_NAMED]))
        raise InvalidAnswer(f"{as_shown(item)[:200]!r} is not one of the options ({listed})")

    def check_count(self, count: int) -> None:
        least, most = self.bounds()
        if not least <= count <= most:
            raise InvalidAnswer(f"{count} options were chosen, where {_counted(least, most)} should be")

    def _in_row(self, text: str) -> list[Any] | None:
        """The options in a text that has nothing else in it; None for anything else."""
        if loosely(text) in _NONE and position_of(text, self._known) is None:
            return []
        if (position := position_of(text, self._known)) is not None:
            return [self._known.values[position]]
        found = _items_in(text)
        if found is not None and self._are_options(found.value):
            return [self.picked(item) for item in found.value]
        positions = positions_in_row(text, self._known)
        return None if positions is None else [self._known.values[position] for position in positions]

    def _are_options(self, items: list[Any]) -> bool:
        try:
            for item in items:
                self.picked(item)
        except InvalidAnswer:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class QuestionCheckBox(SeveralQuestion):
    """Any of the options, within bounds where they are given. `permissive` accepts any number of any answers."""

    kind = "checkbox"
    example_settings = as_example(
        question_name="instruments",
        question_text="Which of these instruments have you played?",
        question_options=["Piano", "Drums", "Flute", "Cello"],
        min_selections=1,
        max_selections=3,
        include_comment=False,
    )

    min_selections: int | str | None = None
    max_selections: int | str | None = None
    use_code: bool = False
    permissive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("min_selections", "max_selections"):
            check_selections(self, setting, getattr(self, setting))
        least, most = self.min_selections, self.max_selections
        if isinstance(least, int) and isinstance(most, int) and least > most:
            raise SurveyError(
                f"Question {self.question_name!r} has min_selections {least} above max_selections {most}.",
                fix="Exchange them.",
            )

    def bounds(self) -> tuple[int, int]:
        most = len(self._known.values)
        if self.permissive:
            return 0, most
        return _whole(self.min_selections, 0), min(most, _whole(self.max_selections, most))

    def picked(self, item: Any) -> Any:
        if not self.permissive:
            return super().picked(item)
        position = position_of(item, self._known)
        return item if position is None else self._known.values[position]

    def check_count(self, count: int) -> None:
        if not self.permissive:
            super().check_count(count)

    def item_schema(self) -> Schema:
        held = super().item_schema()
        return {"anyOf": [held, {"type": "string"}]} if self.permissive else held


@dataclass(frozen=True, kw_only=True)
class QuestionCheckBoxWithOther(QuestionCheckBox):
    """Any of the options, and answers of its own behind "Other": `["Pizza", "Other: soup"]`."""

    kind = "checkbox_with_other"
    reads_sentences = False  # words that are no option may be an answer of its own
    example_settings = as_example(
        question_name="pets",
        question_text="Which animals live with you?",
        question_options=["Cat", "Dog", "Fish"],
        include_comment=False,
    )

    other_option_text: str = "Other"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_other(self.question_name, self.other_option_text)

    @cached_property
    def _known(self) -> KnownOptions:
        return with_other(super()._known, self.other_option_text)

    def listing(self) -> str:
        return f"Options:\n{self.listed(self._known.values)}"

    def instructions(self) -> str:
        return f"{super().instructions()} {other_words(self.other_option_text)}"

    def answers(self) -> list[Any]:
        return list(range(len(self._known.values))) if self.uses_code else list(self._known.values)

    def item_schema(self) -> Schema:
        return {"anyOf": [{"enum": self.answers()}, other_schema(self.other_option_text)]}

    def accept(self, given: Any) -> list[Any]:
        # A service that enforces the schema lets a model write any text as an item, also without "Other: " before it.
        if isinstance(given, list):
            given = [self._in_own_words(item) for item in given]  # pyright: ignore[reportUnknownVariableType]
        return super().accept(given)

    def picked(self, item: Any) -> Any:
        own = other_answer(item, self.other_option_text)
        return super().picked(item) if own is None else own

    def _in_own_words(self, item: Any) -> Any:
        """An item that is no option, as an answer of its own; anything else as it is."""
        is_words = isinstance(item, str) and 0 < len(item.strip()) <= _LONGEST_OWN_WORDS and "\n" not in item.strip()
        if not is_words or self._are_options([item]):
            return item
        return f"{self.other_option_text}: {item.strip()}"


@dataclass(frozen=True, kw_only=True)
class QuestionTopK(QuestionCheckBox):
    """A fixed number of the options: min_selections and max_selections are the same."""

    kind = "top_k"
    example_settings = as_example(
        question_name="two_seasons",
        question_text="Which two seasons do you like most?",
        question_options=["Spring", "Summer", "Autumn", "Winter"],
        min_selections=2,
        max_selections=2,
    )

    min_selections: int | str | None = field()
    max_selections: int | str | None = field()
    use_code: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_selections != self.max_selections:
            raise SurveyError(
                f"Question {self.question_name!r} has min_selections {self.min_selections} and max_selections "
                f"{self.max_selections}.",
                fix="Give the same number for both, or use QuestionCheckBox.",
            )


@dataclass(frozen=True, kw_only=True)
class QuestionRank(SeveralQuestion):
    """The options in order, the best first: all of them, or the first `num_selections`."""

    kind = "rank"
    is_ordered = True
    reads_sentences = False  # one may name the second before the first
    example_settings = as_example(
        question_name="holiday",
        question_text="Where would you rather spend a holiday?",
        question_options=["By the sea", "In the mountains", "In a city"],
        num_selections=2,
    )

    num_selections: int | str | None = None
    use_code: bool = True
    permissive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_selections(self, "num_selections", self.num_selections)

    def bounds(self) -> tuple[int, int]:
        count = _whole(self.num_selections, len(self.options))
        return (0, len(self.options)) if self.permissive else (count, count)


def check_selections(question: ChoiceQuestion, setting: str, given: Any) -> None:
    """A number of selections is a whole number that the options allow, or a template."""
    if given is None or (isinstance(given, str) and is_template(given)):
        return
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise SurveyError(
            f"Question {question.question_name!r} has {setting}={given!r}.", fix="Give a whole number, 0 or more."
        )
    object.__setattr__(question, setting, number)
    if question.options and number > len(question.options) and setting != "max_selections":
        raise SurveyError(
            f"Question {question.question_name!r} has {setting} {number} and {len(question.options)} options.",
            fix="Give more options, or a smaller number.",
        )


def _whole(given: int | str | None, otherwise: int) -> int:
    return given if isinstance(given, int) else otherwise


def _counted(least: int, most: int) -> str:
    if least == most:
        return f"exactly {least} of these options"
    return f"at least {least} and at most {most} of these options" if least else f"at most {most} of these options"


def _items_in(text: str) -> Found | None:
    """The items of a list in a text: JSON, or one a line."""
    found = json_in(text, list) or lines_in(text)
    return found if found is not None and isinstance(cast(object, found.value), list) else None
