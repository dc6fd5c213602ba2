"""Multiple choice: exactly one of the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.survey.questions.base import Options, Schema
from headrace.survey.questions.choices import ChoiceQuestion, chosen, shown_option


@dataclass(frozen=True, kw_only=True)
class QuestionMultipleChoice(ChoiceQuestion):
    kind = "multiple_choice"

    def instructions(self, options: Options) -> str:
        listed = "\n".join(f"- {shown_option(option)}" for option in options)
        return f"Options:\n{listed}\n\nAnswer with exactly one of these options, written as above."

    def schema(self, options: Options) -> Schema:
        return {"enum": list(options)}

    def accept(self, given: Any, options: Options) -> Any:
        return chosen(given, options)
