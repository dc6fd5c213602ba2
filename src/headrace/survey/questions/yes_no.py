"""Yes or no. The answer is the text "Yes" or "No", as EDSL has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.survey.questions.base import Options, Question, Schema
from headrace.survey.questions.choices import chosen

_YES_NO: Options = ("Yes", "No")


@dataclass(frozen=True, kw_only=True)
class QuestionYesNo(Question):
    kind = "yes_no"

    @property
    def options(self) -> Options:
        return _YES_NO

    def instructions(self, options: Options) -> str:
        return "Answer with Yes or No."

    def schema(self, options: Options) -> Schema:
        return {"enum": list(options)}

    def accept(self, given: Any, options: Options) -> str:
        if isinstance(given, bool):
            return "Yes" if given else "No"
        return chosen(given, options)
