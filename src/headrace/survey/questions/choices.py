"""The base of kinds with options: it checks the options and finds the chosen one. Not a kind itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Options, Question
from headrace.survey.templates import is_template


@dataclass(frozen=True, kw_only=True)
class ChoiceQuestion(Question):
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
        self.check_options(cast(Options, self.question_options))

    @property
    def options(self) -> Options | str:
        return cast("Options | str", self.question_options)

    @property
    def holds_bools(self) -> bool:
        options = self.question_options
        return not isinstance(options, str) and all(isinstance(option, bool) for option in options)

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
