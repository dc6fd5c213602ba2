"""Free text: any words at all, except none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidAnswer
from headrace.survey.questions.base import Question, Schema


@dataclass(frozen=True, kw_only=True)
class QuestionFreeText(Question):
    kind = "free_text"

    def instructions(self) -> str:
        return "Answer in your own words."

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}

    def accept(self, given: Any) -> str:
        if isinstance(given, (dict, list)):
            raise InvalidAnswer("the answer is a JSON structure, not text")
        return given if isinstance(given, str) else str(given)
