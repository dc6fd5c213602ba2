"""One of several options: multiple choice, yes or no, Likert, a linear scale, a long list.

Covers: checking options, showing them, and accepting one. Does not cover: finding one in a text
(survey.repair.option_texts), or several (survey.questions.checkbox).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import CommentedQuestion, Options, Schema, as_example
from headrace.survey.repair.number_texts import number_in, plain_number
from headrace.survey.repair.option_texts import KnownOptions, as_shown, first_number, loosely, position_in, position_of
from headrace.survey.templates import is_template

_MOST_NAMED = 20
_TRUTHS = {"true": "yes", "false": "no", "y": "yes", "n": "no"}


@dataclass(frozen=True, kw_only=True)
class ChoiceQuestion(CommentedQuestion):
    """`question_options` is a list, or one template that names a list: `"{{ scenario.brands }}"`."""

    question_options: Sequence[Any] | str

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.question_options, str):
            if not is_template(self.question_options):
                raise SurveyError(
                    f"Question {self.question_name!r} has the text {self.question_options!r} for options.",
                    fix='Give a list, or a template that names one, like "{{ scenario.brands }}".',
                )
            return
        object.__setattr__(self, "question_options", as_options(self.question_name, self.question_options))
        self.check_options(self.options)

    @property
    def options(self) -> Options:
        """The options, once they are known: a template that names a list has none yet."""
        return () if isinstance(self.question_options, str) else cast(Options, self.question_options)

    @property
    def holds_bools(self) -> bool:
        return bool(self.options) and all(isinstance(option, bool) for option in self.options)

    @property
    def uses_code(self) -> bool:
        """Whether options are chosen by their number, counted from 0."""
        return self._known.first == 0

    @cached_property
    def _known(self) -> KnownOptions:
        """The options with the number of the first, as the prompt shows them."""
        return KnownOptions(self.options, first_number(self.options, 0 if getattr(self, "use_code", False) else 1))

    def listing(self) -> str:
        return f"Options:\n{self.listed(self.options)}"

    def listed(self, options: Options) -> str:
        """The options one a line, with their numbers where these may be answered."""
        first = self._known.first
        if first is None:
            return "\n".join(f"- {as_shown(option)}" for option in options)
        mark = "." if first else ":"
        return "\n".join(f"{number}{mark} {as_shown(option)}" for number, option in enumerate(options, first))

    def schema(self) -> Schema:
        return {"enum": self.answers()}

    def answers(self) -> list[Any]:
        """What the model may answer with: the options, or their numbers."""
        return list(range(len(self.options))) if self.uses_code else list(self.options)

    def accept(self, given: Any) -> Any:
        written = self._written(given)
        return chosen(given, self._known) if written is None else written

    def _written(self, given: Any) -> Any:
        """The option that is written exactly as shown, which most answers are; None where it takes a closer look."""
        return self._by_text.get(given) if type(given) is str else None

    @cached_property
    def _by_text(self) -> dict[str, Any]:
        return {as_shown(option): option for option in self._known.values}

    def check_options(self, options: Options) -> None:
        if len(options) < 2:
            raise SurveyError(
                f"Question {self.question_name!r} has {len(options)} option(s).",
                fix="Give at least two options.",
            )
        seen: set[str] = set()
        for option in options:
            if option is None:
                raise SurveyError(
                    f"Question {self.question_name!r} has None for an option.", fix="None means no answer: use a text."
                )
            shown = as_shown(option)
            if not shown or shown in seen:
                what = "repeats the option" if shown else "has an empty option"
                raise SurveyError(f"Question {self.question_name!r} {what} {option!r}.", fix="Make options distinct.")
            seen.add(shown)


@dataclass(frozen=True, kw_only=True)
class QuestionMultipleChoice(ChoiceQuestion):
    """Exactly one of the options. `use_code` asks for its number, `permissive` accepts any other answer too."""

    kind = "multiple_choice"
    example_settings = as_example(
        question_name="commute",
        question_text="How do you get to work?",
        question_options=["By train", "By car", "On foot"],
        include_comment=False,
    )

    use_code: bool = False
    permissive: bool = False

    @property
    def holds_bools(self) -> bool:
        return super().holds_bools and not self.permissive

    def instructions(self) -> str:
        if self.uses_code:
            return "Answer with the number of exactly one of these options."
        return "Answer with exactly one of these options, written as above."

    def schema(self) -> Schema:
        return {"anyOf": [super().schema(), {"type": "string"}]} if self.permissive else super().schema()

    def accept(self, given: Any) -> Any:
        if not self.permissive:
            return super().accept(given)
        position = position_of(given, self._known)
        return given if position is None else self.options[position]


@dataclass(frozen=True, kw_only=True)
class QuestionMultipleChoiceWithOther(QuestionMultipleChoice):
    """One of the options, or an answer of its own behind "Other": `"Other: by boat"`."""

    kind = "multiple_choice_with_other"
    example_settings = as_example(
        question_name="breakfast",
        question_text="What did you have for breakfast?",
        question_options=["Bread", "Porridge", "Nothing"],
        include_comment=False,
    )

    other_option_text: str = "Other"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_other(self.question_name, self.other_option_text)

    @property
    def holds_bools(self) -> bool:
        return False

    @cached_property
    def _known(self) -> KnownOptions:
        return with_other(super()._known, self.other_option_text)

    def listing(self) -> str:
        return f"Options:\n{self.listed(self._known.values)}"

    def instructions(self) -> str:
        return f"{super().instructions()} {other_words(self.other_option_text)}"

    def schema(self) -> Schema:
        return {"anyOf": [{"enum": self.answers()}, other_schema(self.other_option_text)]}

    def answers(self) -> list[Any]:
        values = self._known.values
        return list(range(len(values))) if self.uses_code else list(values)

    def accept(self, given: Any) -> Any:
        own = other_answer(given, self.other_option_text)
        if own is not None:
            return own
        if not self.permissive:
            return chosen(given, self._known)
        position = position_of(given, self._known)
        return given if position is None else self._known.values[position]


@dataclass(frozen=True, kw_only=True)
class QuestionYesNo(ChoiceQuestion):
    """Yes or no. The answer is the text "Yes" or "No", as EDSL has it."""

    kind = "yes_no"
    example_settings = as_example(question_name="owns_bike", question_text="Do you own a bicycle?")

    question_options: Sequence[Any] | str = ("No", "Yes")

    @property
    def _is_usual(self) -> bool:
        return sorted(loosely(as_shown(option)) for option in self.options) == ["no", "yes"]

    def listing(self) -> str:
        return "" if self._is_usual else super().listing()

    def instructions(self) -> str:
        return "Answer with Yes or No." if self._is_usual else "Answer with exactly one of these options."

    def accept(self, given: Any) -> Any:
        if (written := self._written(given)) is not None:
            return written
        if isinstance(given, (bool, str)) and self._is_usual:
            given = _TRUTHS.get(loosely(str(given)), given)
        return chosen(given, KnownOptions(self.options, None if self._is_usual else self._known.first))


@dataclass(frozen=True, kw_only=True)
class QuestionLikertFive(ChoiceQuestion):
    """How far one agrees with a statement, in five steps; `question_options` may name others."""

    kind = "likert_five"
    example_settings = as_example(question_name="quiet_trains", question_text="Trains should have a quiet carriage.")

    question_options: Sequence[Any] | str = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")

    def instructions(self) -> str:
        return "Answer with exactly one of these options, written as above."


@dataclass(frozen=True, kw_only=True)
class QuestionLinearScale(ChoiceQuestion):
    """One of a few whole numbers in a row, some of them with a label."""

    kind = "linear_scale"
    example_settings = as_example(
        question_name="sleep",
        question_text="How well did you sleep last night?",
        question_options=[0, 1, 2, 3, 4],
        option_labels={0: "badly", 4: "very well"},
    )

    option_labels: Mapping[Any, str] | str | None = field(default_factory=dict[Any, str])

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.option_labels or {}
        if isinstance(given, str) and is_template(given):
            return
        if not isinstance(given, Mapping):
            raise SurveyError(
                f"Question {self.question_name!r} has the labels {self.option_labels!r}.",
                fix='Give one by number, like {1: "Never", 5: "Always"}.',
            )
        # JSON, and so the run file, has only text for keys.
        labels = {str(point): label for point, label in given.items()}
        object.__setattr__(self, "option_labels", labels)
        for point in labels if self.options else ():
            if point not in map(str, self.options):
                raise SurveyError(
                    f"Question {self.question_name!r} labels {point}, which is not on its scale.",
                    fix=f"Label some of {list(self.options)}.",
                )

    def check_options(self, options: Options) -> None:
        super().check_options(options)
        if any(isinstance(point, bool) or not isinstance(point, int) for point in options):
            raise SurveyError(
                f"Question {self.question_name!r} has a scale with something else than whole numbers.",
                fix="Give whole numbers, like [1, 2, 3, 4, 5].",
            )

    @property
    def labels(self) -> dict[str, str]:
        return {} if isinstance(self.option_labels, str) else dict(self.option_labels or {})

    def listing(self) -> str:
        points = (f"{point}: {label}" if label else str(point) for point, label in self._points())
        return "Scale:\n" + "\n".join(points)

    def instructions(self) -> str:
        return "Answer with exactly one number of this scale."

    def accept(self, given: Any) -> int:
        if (written := self._written(given)) is not None:
            return written
        number = self._number(given.strip()) if isinstance(given, str) else given
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            for point in self.options:
                if point == number:
                    return point
        raise InvalidAnswer(f"{str(given)[:200]!r} is not on the scale {list(self.options)}")

    def _number(self, text: str) -> int | float | None:
        """The number that a text means: by itself, by its label, with its label, or in a sentence."""
        if (number := plain_number(text)) is not None:
            return number
        for point, label in self._points():
            if label and loosely(text) in (loosely(label), loosely(f"{point}: {label}"), loosely(f"{point} - {label}")):
                return point
        for best in (f"/{self.options[-1]}", f"out of {self.options[-1]}"):
            text = text.replace(f" {best}", "").replace(best, "")
        if (number := number_in(text)) is not None or any(map(str.isdigit, text)):
            return number
        labelled = [point for point, label in self._points() if label]
        position = position_in(text, KnownOptions(tuple(self.labels[str(point)] for point in labelled)))
        return None if position is None else labelled[position]

    def _points(self) -> list[tuple[int, str]]:
        return [(point, str(self.labels.get(str(point)) or "")) for point in self.options]


def as_options(question_name: str, given: object) -> Options:
    if isinstance(given, (dict, bytes, set, frozenset)) or not isinstance(given, Iterable):  # sets have no order
        raise SurveyError(f"Question {question_name!r} has options that are not a list.", fix="Give a list of options.")
    return tuple(cast("Iterable[Any]", given))


def shown_option(option: Any) -> str:
    return as_shown(option)


def chosen(given: Any, known: KnownOptions) -> Any:
    """The option meant: the value itself, its text or its number, or the one option in a sentence."""
    position = position_of(given, known)
    if position is None and isinstance(given, str):
        position = position_in(given, known)
    if position is not None:
        return known.values[position]
    listed = ", ".join(map(as_shown, known.values[:_MOST_NAMED]))
    raise InvalidAnswer(f"{as_shown(given)[:200]!r} is not one of the options ({listed})")


def check_other(question_name: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise SurveyError(f"Question {question_name!r} has {text!r} for its other_option_text.", fix="Give a text.")


def with_other(known: KnownOptions, other: str) -> KnownOptions:
    """The options, and one that stands for any other answer."""
    values = known.values if other in known.values else (*known.values, other)
    return KnownOptions(values, None if known.first is None else first_number(values, known.first))


def other_words(other: str) -> str:
    return f'If none of them fits, answer "{other}: " followed by your own words.'


def other_schema(other: str) -> Schema:
    return {"type": "string", "description": f'"{other}: " and an answer of your own'}


def other_answer(given: Any, other: str) -> str | None:
    """An answer that is none of the options: "Other: by boat"."""
    if not isinstance(given, str):
        return None
    before, colon, own = given.strip(" \t\n\"'*").partition(":")
    is_other = colon and own.strip() and loosely(before) in (loosely(other), loosely(other.partition("(")[0]))
    return f"{other}: {own.strip()}" if is_other else None
