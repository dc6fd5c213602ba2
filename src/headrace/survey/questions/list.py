"""A list of items, in words of the model's own. Does not cover: choosing several of given options (checkbox)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions.base import Schema, as_example
from headrace.survey.questions.json_answers import JsonQuestion, as_bound, check_order
from headrace.survey.repair.json_texts import Found
from headrace.survey.repair.marked_lines import lines_in

_SHOWN_ITEMS = 3


@dataclass(frozen=True, kw_only=True)
class QuestionList(JsonQuestion):
    """Several items. `permissive=True` accepts any number of them."""

    kind = "list"
    shapes = (list,)
    example_settings = as_example(question_name="sights", question_text="What should a visitor to your town see?")

    max_list_items: int | str | None = None
    min_list_items: int | str | None = None
    permissive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for setting in ("min_list_items", "max_list_items"):
            bound = as_bound(self.question_name, setting, getattr(self, setting), is_whole=True)
            if isinstance(bound, int) and bound < 0:
                raise SurveyError(f"Question {self.question_name!r} has {setting} {bound}.", fix="Give 0 or more.")
            object.__setattr__(self, setting, bound)
        low, high = self.min_list_items, self.max_list_items
        check_order(self.question_name, "min_list_items", low, "max_list_items", high)

    def instructions(self) -> str:
        # Small models give the items of an example back, and fill in those that are numbered.
        most = next((bound for bound in (self.max_list_items, self.min_list_items) if bound), _SHOWN_ITEMS)
        items = ", ".join(f'"{item}"' for item in _placeholders(min(int(most), _SHOWN_ITEMS)))
        return f"Answer with a JSON list{self._count()}, in this form: [{items}]"

    def schema(self) -> Schema:
        bounds = {} if self.permissive else {"minItems": self.min_list_items, "maxItems": self.max_list_items}
        kept = {word: bound for word, bound in bounds.items() if bound is not None}
        return {"type": "array", "items": {"type": ["string", "number"]}, **kept}

    def find(self, text: str) -> Found | None:
        return super().find(text) or lines_in(text)

    def accept(self, given: Any) -> list[Any]:
        items: list[Any] = self.shaped(given)
        if items and items == _placeholders(len(items)):
            raise InvalidAnswer("the list repeats the form instead of filling it in")
        if self.permissive:
            return items
        if isinstance(self.min_list_items, int) and len(items) < self.min_list_items:
            raise InvalidAnswer(f"the list has {len(items)} item(s), at least {self.min_list_items} are needed")
        if isinstance(self.max_list_items, int) and len(items) > self.max_list_items:
            raise InvalidAnswer(f"the list has {len(items)} items, at most {self.max_list_items} are allowed")
        return items

    def _count(self) -> str:
        match self.min_list_items, self.max_list_items:
            case None, None:
                return ""
            case low, None:
                return f" of at least {low} items"
            case None, high:
                return f" of at most {high} items"
            case low, high:
                return f" of {low} items" if low == high else f" of {low} to {high} items"


def _placeholders(count: int) -> list[str]:
    """The items of the form that a prompt shows."""
    return [f"item {number}" for number in range(1, count + 1)]
