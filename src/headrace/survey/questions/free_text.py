"""Free text: any words at all, except none; and Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidAnswer
from headrace.survey.questions.base import Question, Schema, as_example

_FENCED = re.compile(r"```(?:markdown|md)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class QuestionFreeText(Question):
    """Whatever the model says, as it says it."""

    kind = "free_text"

    def instructions(self) -> str:
        return "Answer in your own words."

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}

    def accept(self, given: Any) -> str:
        if isinstance(given, (dict, list)):
            raise InvalidAnswer("the answer is a JSON structure, not text")
        return given if isinstance(given, str) else str(given)


@dataclass(frozen=True, kw_only=True)
class QuestionMarkdown(QuestionFreeText):
    """A text in Markdown. A code fence around the whole of it is taken off."""

    kind = "markdown"
    example_settings = as_example(question_name="recipe", question_text="Write down a short recipe for soup.")

    def instructions(self) -> str:
        return "Answer in Markdown, without a code fence around it."

    def accept(self, given: Any) -> str:
        text = super().accept(given).strip()
        fenced = _FENCED.fullmatch(text)
        inner = text if fenced is None or "```" in fenced[1] else fenced[1].strip("\n")
        if not inner.strip():
            raise InvalidAnswer("the answer is empty")
        return inner
