"""One of several options: multiple choice, yes or no, a linear scale. Covers: checking options and finding one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import CommentedQuestion, Options, Schema, as_example
from headrace.survey.questions.number import as_number
from headrace.survey.templates import is_template

_YES_NO: Options = ("Yes", "No")


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

    def schema(self) -> Schema:
        return {"enum": list(self.options)}

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
            shown = shown_option(option)
            if not shown or shown in seen:
                what = "repeats the option" if shown else "has an empty option"
                raise SurveyError(f"Question {self.question_name!r} {what} {option!r}.", fix="Make options distinct.")
            seen.add(shown)


@dataclass(frozen=True, kw_only=True)
class QuestionMultipleChoice(ChoiceQuestion):
    """Exactly one of the options."""

    kind = "multiple_choice"
    example_settings = as_example(
        question_name="how_feeling",
        question_text="How are you?",
        question_options=["Good", "Great", "OK", "Bad"],
        include_comment=False,
    )

    def instructions(self) -> str:
        listed = "\n".join(f"- {shown_option(option)}" for option in self.options)
        return f"Options:\n{listed}\n\nAnswer with exactly one of these options, written as above."

    def accept(self, given: Any) -> Any:
        return chosen(given, self.options)


@dataclass(frozen=True, kw_only=True)
class QuestionYesNo(CommentedQuestion):
    """Yes or no. The answer is the text "Yes" or "No", as EDSL has it."""

    kind = "yes_no"
    example_settings = as_example(question_name="is_it_equal", question_text="Is 5 + 5 equal to 11?")

    @property
    def options(self) -> Options:
        return _YES_NO

    def instructions(self) -> str:
        return "Answer with Yes or No."

    def schema(self) -> Schema:
        return {"enum": list(_YES_NO)}

    def accept(self, given: Any) -> str:
        if isinstance(given, bool):
            return "Yes" if given else "No"
        return chosen(given, _YES_NO)


@dataclass(frozen=True, kw_only=True)
class QuestionLinearScale(ChoiceQuestion):
    """One of a few whole numbers in a row, some of them with a label."""

    kind = "linear_scale"
    example_settings = as_example(
        question_name="ice_cream",
        question_text="How much do you like ice cream?",
        question_options=[1, 2, 3, 4, 5],
        option_labels={1: "I hate it", 5: "I love it"},
    )

    option_labels: Mapping[Any, str] = field(default_factory=dict[Any, str])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.option_labels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(
                f"Question {self.question_name!r} has the labels {self.option_labels!r}.",
                fix='Give one by number, like {1: "Never", 5: "Always"}.',
            )
        # JSON, and so the run file, has only text for keys.
        labels = {str(point): label for point, label in self.option_labels.items()}
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

    def instructions(self) -> str:
        points = "\n".join(f"{point}{self._label(point)}" for point in self.options)
        return f"Scale:\n{points}\n\nAnswer with exactly one number of this scale and nothing else."

    def accept(self, given: Any) -> int:
        number = as_number(given)
        for point in self.options:
            if point == number:
                return point
        raise InvalidAnswer(f"{number} is not on the scale {list(self.options)}")

    def _label(self, point: int) -> str:
        label = self.option_labels.get(str(point))
        return f": {label}" if label else ""


def as_options(question_name: str, given: object) -> Options:
    if isinstance(given, (dict, bytes, set, frozenset)) or not isinstance(given, Iterable):  # sets have no order
        raise SurveyError(f"Question {question_name!r} has options that are not a list.", fix="Give a list of options.")
    return tuple(cast("Iterable[Any]", given))


def shown_option(option: Any) -> str:
    """An option as the model reads it; an answer could not choose between two that look alike."""
    return str(option).strip()


def chosen(given: Any, options: Options) -> Any:
    """The option meant: the value itself, its text, or its text but for case, blanks and a full stop."""
    for option in options:
        if _same(option, given):
            return option
    text = shown_option(given)
    for option in options:
        if shown_option(option) == text:
            return option
    loose = [option for option in options if _loosely(shown_option(option)) == _loosely(text)]
    if len(loose) == 1:
        return loose[0]
    listed = ", ".join(map(shown_option, options[:20]))
    raise InvalidAnswer(f"{text[:200]!r} is not one of the options ({listed})")


def _same(option: Any, given: Any) -> bool:
    if type(option) is not type(given):
        return False
    return option == given or (isinstance(option, float) and math.isnan(option) and math.isnan(given))


def _loosely(text: str) -> str:
    return text.strip(" \t\n\"'.").casefold()
