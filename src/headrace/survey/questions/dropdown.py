"""One of many options: too many to show. The model searches for the one it wants, in its own words.

A short list is shown and answered as multiple choice. Of a long one some options are shown, and the answer is the
option that shares the most words with what the model wrote, rare words counting more. Where several fit equally well
the model is told which, and asked again.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Schema, as_example
from headrace.survey.questions.choice import QuestionMultipleChoice, chosen
from headrace.survey.repair.option_texts import as_shown

_ALL_SHOWN = 50
_MOST_TIED = 10
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class QuestionDropdown(QuestionMultipleChoice):
    """`question_options_details` has further words to be found by, one text an option."""

    kind = "dropdown"
    example_settings = as_example(
        question_name="city",
        question_text="Which city would you move to?",
        question_options=["Oslo", "Lima", "Hanoi", "Nairobi", "Lisbon", "Kyoto", "Quito", "Tallinn", "Perth", "Boston"],
    )

    question_options_details: Sequence[str] | str | None = None
    sample_indices: Sequence[int] | None = None
    max_options_shown: int = 5
    top_k: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        details = self.question_options_details
        if self.options and details is not None and not isinstance(details, str) and len(details) != len(self.options):
            raise SurveyError(
                f"Question {self.question_name!r} has {len(details)} details for {len(self.options)} options.",
                fix="Give one text an option.",
            )
        for index in self.sample_indices or ():
            if self.options and not 0 <= index < len(self.options):
                raise SurveyError(
                    f"Question {self.question_name!r} shows option {index} of {len(self.options)}.",
                    fix="Count sample_indices from 0.",
                )

    @property
    def is_searched(self) -> bool:
        """Whether there are more options than are shown."""
        return len(self.options) > max(_ALL_SHOWN, self.max_options_shown)

    def listing(self) -> str:
        if not self.is_searched:
            return super().listing()
        places = self.sample_indices or range(0, len(self.options), max(1, len(self.options) // self.max_options_shown))
        shown = [as_shown(self.options[place]) for place in list(places)[: self.max_options_shown]]
        return f"Some of the {len(self.options):,} options:\n" + "\n".join(f"- {option}" for option in shown)

    def instructions(self) -> str:
        if not self.is_searched:
            return super().instructions()
        return "Answer with the option you want, or with words to find it by among all options."

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1} if self.is_searched else super().schema()

    def accept(self, given: Any) -> Any:
        try:
            return super().accept(given) if self.permissive else chosen(given, self._known)
        except InvalidAnswer:
            return self._found(as_shown(given))

    def _found(self, text: str) -> Any:
        """The option that shares the most words with a text."""
        wanted = set(_WORDS.findall(text.casefold()))
        scores = [sum(self._weights[word] for word in sorted(words & wanted)) for words in self._words]
        best = max(scores)
        tied = [option for option, score in zip(self.options, scores, strict=True) if math.isclose(score, best)]
        if not best or len(tied) > 1:
            names = ", ".join(map(as_shown, tied[:_MOST_TIED])) if best else "none of the options"
            raise InvalidAnswer(f"{text[:200]!r} fits {names}: name one option")
        return tied[0]

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        details = self.question_options_details
        further = [""] * len(self.options) if details is None or isinstance(details, str) else list(map(str, details))
        texts = (f"{as_shown(option)} {more}" for option, more in zip(self.options, further, strict=True))
        return [frozenset(_WORDS.findall(text.casefold())) for text in texts]

    @cached_property
    def _weights(self) -> dict[str, float]:
        counts = Counter(word for words in self._words for word in words)
        return {word: math.log(1 + len(self._words) / count) for word, count in counts.items()}
