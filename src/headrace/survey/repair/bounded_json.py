"""Decodes the JSON of a reply, unless its values would take far more memory than its text.

`[[],[],[]...]` takes some twenty times its length once it is Python's, and again as much with each copy: a reply of
8 MB, which is within every limit on bytes, took a run to 678 MB. Texts take about their length, so however long they
are, they count by their number alone.

Does not cover: bounds on the bytes of a reply (models.http_client), or how deeply values are nested (json_texts).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MOST_VALUE_BYTES = 48_000_000  # what the values of one reply may take, not counting the letters of its texts
_SHORT = 1_000_000  # of so few letters no values can take more
_OBJECT_BYTES, _LIST_BYTES, _TEXT_BYTES, _ITEM_BYTES = 240, 72, 56, 40
# Possessive, and it also ends with the text: one that nobody closes is looked at once.
_TEXT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)', re.DOTALL)


class TooManyValues(msgspec.DecodeError):
    """The values of a JSON text would take too much memory. Handled as any other text that is no JSON."""

    def __init__(self) -> None:
        super().__init__(f"its values would take more than {MOST_VALUE_BYTES // 1_000_000} MB")


def decode_bounded(text: str) -> Any:
    """The value of a JSON text; a DecodeError where it is none, or one that would take too much memory."""
    check_values(text)
    return msgspec.json.decode(text)


def check_values(text: str | bytes) -> None:
    """Raise TooManyValues where what a JSON text holds would take too much memory."""
    if len(text) <= _SHORT:
        return
    letters = text if isinstance(text, str) else text.decode("latin-1")  # all that counts is ASCII
    if not (_at_most(letters) <= MOST_VALUE_BYTES or _is_bounded(letters)):
        raise TooManyValues


def _at_most(text: str) -> int:
    """More than the values can take: marks inside texts count too."""
    return _structure(text, 0, len(text)) + text.count('"') * _TEXT_BYTES // 2


def _is_bounded(text: str) -> bool:
    taken, at = 0, 0
    for quoted in _TEXT.finditer(text):
        taken += _structure(text, at, quoted.start()) + _TEXT_BYTES
        if taken > MOST_VALUE_BYTES:  # soon, where there are many: nothing is looked at for long
            return False
        at = quoted.end()
    return taken + _structure(text, at, len(text)) <= MOST_VALUE_BYTES


def _structure(text: str, start: int, end: int) -> int:
    return (
        text.count("{", start, end) * _OBJECT_BYTES
        + text.count("[", start, end) * _LIST_BYTES
        + text.count(",", start, end) * _ITEM_BYTES
    )
