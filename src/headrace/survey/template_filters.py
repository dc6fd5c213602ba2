"""Filters whose result can be far larger than what they are given, each asked first how large it would be.

Covers: filters that take a size or a text to repeat, and those that take a text apart into a list of letters. All of
them run in the template library as before; here they are only measured. Filters that are not listed give back at most
a few times what they got. Does not cover: operators and loops (survey.template_texts).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Sized
from typing import Any, TypeAlias, cast

MOST_LETTERS = 64_000_000
# A list of single letters takes some 60 bytes for each, a list of lists of them three times that.
_MOST_ITEMS = 1_000_000
_LONG_NUMBER = re.compile(r"\d{4}|\*")

Sizing: TypeAlias = Callable[[Any, Sequence[Any], dict[str, Any]], int]


class RenderedTooLarge(Exception):
    """The rendered text would be larger than any prompt."""


def size_of(value: Any) -> int:
    """About how many letters a value is as text; more than MOST_LETTERS may be counted as anything above it."""
    if isinstance(value, str):
        return len(value) + 4
    if isinstance(value, dict):
        return sum(size_of(key) + size_of(item) for key, item in cast("dict[Any, Any]", value).items()) + 4
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, cast("Sequence[Any]", value))) + 4
    return 24


def check_size(name: str, value: Any, args: Sequence[Any], options: dict[str, Any]) -> None:
    """Raise RenderedTooLarge where the filter would make more than MOST_LETTERS."""
    expected = _SIZINGS.get(name, _linear)(value, args, options)
    if expected > MOST_LETTERS:
        raise RenderedTooLarge(f"|{name} would make a text of about {expected:,} letters")


def _given(args: Sequence[Any], place: int, options: dict[str, Any], name: str, usual: Any) -> Any:
    return args[place] if len(args) > place else options.get(name, usual)


def _count(items: Any) -> int:
    return len(cast("Sized", items)) if isinstance(items, (str, list, tuple, dict)) else 0


def _linear(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    if isinstance(value, str) and len(value) > _MOST_ITEMS:
        return MOST_LETTERS + len(value)
    return size_of(value) + size_of(args) + size_of(options)


def _replaced(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    text, old = str(value), str(_given(args, 0, options, "old", ""))
    return len(text) + text.count(old) * len(str(_given(args, 1, options, "new", "")))


def _joined(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    return size_of(value) + _count(value) * len(str(_given(args, 0, options, "joiner", "")))


def _indented(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    text, width = str(value), _given(args, 0, options, "width", 4)
    each = len(width) if isinstance(width, str) else int(width or 0)
    return len(text) + (text.count("\n") + 1) * each


def _wrapped(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    return len(str(value)) * (1 + len(str(_given(args, 3, options, "wrapstring", "\n"))))


def _filled(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    count = _given(args, 0, options, "count", 1)
    filling = size_of(_given(args, 1, options, "fill_with", None))
    return _linear(value, (), {}) + int(count or 0) * (filling + 24)


def _formatted(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    if _LONG_NUMBER.search(str(value)):
        raise RenderedTooLarge("|format takes widths of at most 999, written in the format")
    return len(str(value)) * 1_000 + size_of(args) + size_of(options)


def _mapped(value: Any, args: Sequence[Any], options: dict[str, Any]) -> int:
    """Checks the size of a mapped filter's result for each item, with its arguments."""
    if args[:1] and args[0] in ("tojson", "pprint") and len(args) + len(options) > 1:
        raise RenderedTooLarge(f"map('{args[0]}') takes nothing else")
    return _linear(value, (), {}) + _count(value) * (size_of(args) + size_of(options))


_SIZINGS: dict[str, Sizing] = {
    "replace": _replaced,
    "join": _joined,
    "indent": _indented,
    "wordwrap": _wrapped,
    "batch": _filled,
    "slice": _filled,
    "format": _formatted,
    "map": _mapped,
}
MEASURED = (
    *_SIZINGS, "split", "list", "lines", "sort", "unique", "reverse", "items", "dictsort", "select", "reject",
    "selectattr", "rejectattr", "groupby", "chain", "zip",
)  # fmt: skip
