"""Values on their way out of the page: bounded in length, and without a model's own words unless they were asked for.

A program that watches a run and reads answers can be steered by what stands in them. So a text of an answer is left
out, unless it is one of the options that the survey's author wrote, or the request says `text=true`. Does not cover:
escaping, which templates do (web.html_pages).
"""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.export.text_export import to_json
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.survey.files.file_store import FileStore
from headrace.survey.values import decode_value

_MODELS_WORDS = frozenset({Group.ANSWER, Group.PART})
_LARGEST_INTEGER = 2**63


class CutValue(msgspec.Struct, frozen=True):
    """A value as JSON has it. `is_withheld` where a text was left out: the value is then null."""

    value: Any
    truncated: bool = False
    is_withheld: bool = False


def cut_text(text: str, most: int) -> CutValue:
    return CutValue(text) if len(text) <= most else CutValue(text[: most - 1] + "…", truncated=True)


def cut_value(value: Any, most: int) -> CutValue:
    """Any value of a row. Lists and dicts are whole, or texts of JSON that are cut; files are named."""
    match value:
        case None | bool():
            return CutValue(value)
        case int():
            return CutValue(value) if abs(value) < _LARGEST_INTEGER else cut_text(str(value), most)
        case float():
            return CutValue(value if math.isfinite(value) else str(value))
        case str():
            return cut_text(value, most)
        case FileStore():
            return cut_text(value.in_words, most)
        case _:
            encoded = to_json(value)
            if len(encoded) <= most:
                return CutValue(msgspec.json.decode(encoded))
            return cut_text(encoded.decode(errors="replace"), most)


class ShownTexts:
    """Which texts a reply may hold: all of them, or those alone that are no model's."""

    def __init__(self, header: RunHeader, *, with_text: bool) -> None:
        self._with_text = with_text
        self._options: list[list[Any]] = []
        if not with_text:
            with decoding(header.path, "its survey"):
                questions = cast("list[dict[str, Any]]", decode_value(header.survey_row)["questions"])
                self._options = [_options_in(question) for question in questions]

    def cut(self, value: Any, column: ResultColumn, most: int) -> CutValue:
        if self._with_text or not self._is_models_own(value, column):
            return cut_value(value, most)
        return CutValue(None, is_withheld=True)

    def cut_answer(self, value: Any, position: int, most: int) -> CutValue:
        return self.cut(value, ResultColumn(Group.ANSWER, "", position), most)

    def _is_models_own(self, value: Any, column: ResultColumn) -> bool:
        sources = list(column.sources())
        if all(source.group not in _MODELS_WORDS for source in sources):
            return False
        known = [option for each in sources if each.group is Group.ANSWER for option in self._options[each.position]]
        return _has_other_text(value, known)


def _options_in(question: dict[str, Any]) -> list[Any]:
    options = question.get("question_options")
    return cast("list[Any]", options) if isinstance(options, list) else []


def _has_other_text(value: Any, known: list[Any]) -> bool:
    match value:
        case str():
            return value not in known
        case list():
            return any(_has_other_text(each, known) for each in cast("list[Any]", value))
        case dict():
            held = cast("dict[str, Any]", value)
            return any(_has_other_text(each, known) for each in (*held.keys(), *held.values()))
        case _:
            return False
