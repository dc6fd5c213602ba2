"""Finds JSON in what a model really wrote. Covers: lists and objects.

Models put code fences and sentences around JSON, end lists with a comma, and write it as Python would: single quotes,
True, None. `json_in` reads these. What can be read in two ways is not repaired: two different lists, a quote inside
quotes. Nothing is evaluated, and the work grows with the text's length alone.

Does not cover: what a question accepts (survey.questions).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import msgspec

from headrace.survey.repair.bounded_json import decode_bounded

if TYPE_CHECKING:
    from json import JSONDecoder

LONGEST_REPAIRED = 200_000
_DEEPEST = 50
_MOST_STARTS = 50
_ENVELOPE = frozenset({"answer", "comment"})

# Possessive (`*+`): a fence that is never closed is given up after one look at the text, not one for each blank.
_FENCE = re.compile(r"```[\w+-]*+[ \t]*+(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_BRACKET = re.compile(r"[\[\]{}]")
_BLANK = re.compile(r"\s*")
_SINGLE_QUOTED = re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL)
_ESCAPE_OR_QUOTE = re.compile(r'\\(.)|"', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,299})(\.\d{1,300})?([eE][-+]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERALS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_PLAIN_KEY = re.compile(r"\d{1,18}|[A-Za-z_]\w{0,99}")


Shape: TypeAlias = type[Any] | tuple[type[Any], ...]


class Found(NamedTuple):
    """A value, and what the model said behind it."""

    value: Any
    comment: str | None = None


def json_in(text: str, shape: Shape, *, unwrap: bool = True) -> Found | None:
    """The one list (`shape` is list) or object (dict) in the text; None where there is none, or two that differ.

    A value that the text begins with is the answer and the rest is its comment. `unwrap` takes an envelope off the
    value, `{"answer": ..., "comment": ...}`.
    """
    text, fit = text.strip(), _unwrapped if unwrap else _as_it_is
    whole = _strictly(text)
    if whole is not None and (found := fit(whole, shape)) is not None:
        return found
    if len(text) > LONGEST_REPAIRED:
        return None
    return _only(_fenced_values(text), shape, text, fit) or _only(_values(text), shape, text, fit)


_Fit: TypeAlias = Callable[[Any, Shape], Found | None]


class _Placed(NamedTuple):
    value: Any
    start: int
    end: int


def _only(placed: Iterator[_Placed], shape: Shape, text: str, fit: _Fit) -> Found | None:
    """The value of this shape, where there is one, or where the text begins with it."""
    chosen: tuple[_Placed, Found] | None = None
    for each in placed:
        found = fit(each.value, shape)
        if found is None:
            continue
        if each.start == 0:
            chosen = each, found
            break
        if chosen is not None and chosen[1].value != found.value:
            return None
        chosen = chosen or (each, found)
    if chosen is None:
        return None
    placed_at, found = chosen
    comment = found.comment or text[placed_at.end :].strip() or None  # what comes before is a courtesy
    return Found(found.value, comment)


def _unwrapped(value: Any, shape: Shape) -> Found | None:
    """The value itself, or what stands under "answer" in it, where that has the shape."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        if "answer" in held and held.keys() <= _ENVELOPE and isinstance(held["answer"], shape):
            comment = held.get("comment")
            return Found(held["answer"], None if comment is None else str(comment))
    return _as_it_is(value, shape)


def _as_it_is(value: Any, shape: Shape) -> Found | None:
    return Found(value) if isinstance(value, shape) else None


def _strictly(text: str) -> Any:
    if text[:1] not in ("[", "{"):
        return None
    try:
        found = decode_bounded(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    # Few brackets cannot be nested deeply: most answers need no second look.
    return found if text.count("[") + text.count("{") <= _DEEPEST or _is_shallow(found, 0) else None


def _is_shallow(value: Any, depth: int) -> bool:
    if not isinstance(value, (list, dict)):
        return True
    held = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return depth < _DEEPEST and all(_is_shallow(item, depth + 1) for item in held)


def _fenced_values(text: str) -> Iterator[_Placed]:
    """The values that fill a code fence each."""
    for fence in _FENCE.finditer(text):
        body = fence[1].strip()
        found = next(_values(body), None)
        if found is not None and found.start == 0 and found.end == len(body):
            yield _Placed(found.value, fence.start(), fence.end())


def _values(text: str) -> Iterator[_Placed]:
    """The lists and objects in the text that stand in no other."""
    at = 0
    for _ in range(_MOST_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        start, reader = opening.start(), _LenientJson(text)
        try:
            value, at = reader.value(start, 0)
        except ValueError:
            # Brackets in a sentence are passed over. In JSON that is broken or cut off, nothing is looked for.
            end = None if reader.has_begun else _closing(text, start)
            if end is None:
                return
            at = end
        else:
            yield _Placed(value, start, at)


def _closing(text: str, start: int) -> int | None:
    """The end of the bracket that opens here; None where it is never closed."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] in "[{" else -1
        if depth == 0:
            return bracket.end()
    return None


class _LenientJson:
    """Reads JSON as models write it, from a place in a text. ValueError where no JSON begins there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.has_begun = False  # a quote or a scalar was met: no mere bracket in a sentence

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        match self._text[at : at + 1]:
            case "[":
                return self._list(at + 1, depth)
            case "{":
                return self._object(at + 1, depth)
            case '"' | "'":
                return self._string(at)
            case _:
                return self._scalar(at)

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self._skip(at)
        while self._text[at : at + 1] != "]":
            item, at = self.value(at, depth + 1)
            items.append(item)
            at = self._after_item(at, "]")
        return items, at + 1

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        at = self._skip(at)
        while self._text[at : at + 1] != "}":
            key, at = self._key(at)
            at = self._skip(at)
            if key in members or self._text[at : at + 1] != ":":
                raise ValueError("a key twice, or without a value")
            members[key], at = self.value(self._skip(at + 1), depth + 1)
            at = self._after_item(at, "}")
        return members, at + 1

    def _after_item(self, at: int, closing: str) -> int:
        """The place behind the comma, or of the closing bracket; a comma may stand before it."""
        at = self._skip(at)
        if self._text[at : at + 1] == ",":
            return self._skip(at + 1)
        if self._text[at : at + 1] != closing:
            raise ValueError("no comma and no end")
        return at

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in ("'", '"'):
            return self._string(at)
        plain = _PLAIN_KEY.match(self._text, at)
        if plain is None:
            raise ValueError("not a key")
        return plain[0], plain.end()

    def _string(self, at: int) -> tuple[str, int]:
        self.has_begun = True
        if self._text[at] == '"':
            return _strings().raw_decode(self._text, at)
        quoted = _SINGLE_QUOTED.match(self._text, at)
        if quoted is None:
            raise ValueError("no closing quote")
        body = _ESCAPE_OR_QUOTE.sub(_as_in_double_quotes, quoted[1])
        return _strings().decode(f'"{body}"'), quoted.end()

    def _scalar(self, at: int) -> tuple[Any, int]:
        if (number := _NUMBER.match(self._text, at)) is not None:
            self.has_begun = True
            is_whole = number[1] is None and number[2] is None
            return _finite(int(number[0]) if is_whole else float(number[0])), number.end()
        word = _WORD.match(self._text, at)
        if word is None or word[0] not in _LITERALS:
            raise ValueError("not a value")
        self.has_begun = True
        return _LITERALS[word[0]], word.end()

    def _skip(self, at: int) -> int:
        blank = _BLANK.match(self._text, at)
        return at if blank is None else blank.end()


@cache
def _strings() -> JSONDecoder:
    """Reads texts in double quotes; line breaks may stand in them."""
    import json  # only replies that are not quite what was asked for need it

    return json.JSONDecoder(strict=False)


def _as_in_double_quotes(match: re.Match[str]) -> str:
    if match[1] is None:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _finite(number: float) -> int | float:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("too large")
    return number
