"""Finds a key that a service repeats in pieces: in several texts of one reply, or in several events of a stream.

Texts under one name are joined in the order in which they come, and so are those under one name within one other:
`{"said": [{"text": "sk-"}, {"text": "4711"}]}` holds a key under `text`. The JSON is read token by token and no tree is
made of it, for a reply of some megabytes would take fifty times its size. What is no JSON has no texts, or few.
Does not cover: keys in one piece, and what a key looks like (models.redaction).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from headrace.models.http_client.bodies import is_event_stream

# A string with its end, and the colon behind a name; the beginning or the end of an object or a list. No string goes
# over a line's end: a quotation mark that stands alone then hides nothing that comes behind it. One without an end is a
# token too: otherwise each quotation mark in it would be tried in turn, with all that follows.
_TOKEN = re.compile(rb'"((?:[^"\\\x00-\x1f]++|\\.)*+)("(?:[ \t\r\n]*+:)?)?|([{\[])|([}\]])')
_STRING, _BEGIN, _END = 2, 3, 4
_MOST_NAMES = 10_000  # more than these are one: nothing here grows with what a service makes up
_MOST_DEPTH = 1_000
_LOOK_AT_BYTES = 64 << 10
_LONGEST_KEY_BYTES = 16 << 10  # in any encoding
_Place: TypeAlias = "bytes | tuple[bytes, bytes] | None"


def is_in_pieces(body: bytes, has_key: Callable[[bytes], bool]) -> bool:
    """Whether `has_key` finds one where the texts of a reply, or of the events of a stream, are joined."""
    joined = _JoinedTexts(has_key)
    return any(map(joined.take, _json_of(body))) or joined.end()


def _json_of(body: bytes) -> Iterable[bytes]:
    if not is_event_stream(body):
        return (body,)
    lines = body.removeprefix(codecs.BOM_UTF8).splitlines()
    return (line[5:] for line in lines if line.startswith(b"data:"))


class _JoinedTexts:
    """The end of the text of each place, as long as a key may be. `bytes` are of one piece, a `bytearray` of more."""

    def __init__(self, has_key: Callable[[bytes], bool]) -> None:
        self._has_key = has_key
        self._texts: dict[_Place, bytes | bytearray] = {}
        # An object may go on in the next line of a stream's event.
        self._outer = self._name = b""
        self._around: list[tuple[bytes, bytes]] = []

    def take(self, text: bytes) -> bool:
        """Take the next part of the JSON; True where a key has shown."""
        for token in _TOKEN.finditer(text):
            kind = token.lastindex
            if kind == _STRING and token[2] != b'"':
                self._name = _unescaped(token[1])
            elif kind == _STRING:
                if self._add(_unescaped(token[1])):
                    return True
            elif kind == _BEGIN:
                self._enter(is_object=token[3] == b"{")
            elif kind == _END and self._around:
                self._outer, self._name = self._around.pop()
        return False

    def end(self) -> bool:
        return any(self._has_key(bytes(text)) for text in self._texts.values() if isinstance(text, bytearray))

    def _enter(self, *, is_object: bool) -> None:
        if len(self._around) >= _MOST_DEPTH:  # no reply that can be read has as many
            self._around.clear()
        self._around.append((self._outer, self._name))
        if is_object:
            self._outer, self._name = self._name, b""

    def _add(self, piece: bytes) -> bool:
        return self._add_at(self._name, piece) | self._add_at((self._outer, self._name), piece)

    def _add_at(self, place: _Place, piece: bytes) -> bool:
        if place not in self._texts and len(self._texts) >= _MOST_NAMES:
            place = None
        held = self._texts.get(place)
        if held is None:
            self._texts[place] = piece
            return False
        if isinstance(held, bytes):
            held = self._texts[place] = bytearray(held)
        held += piece
        if len(held) < _LOOK_AT_BYTES:
            return False
        is_found = self._has_key(bytes(held))
        del held[:-_LONGEST_KEY_BYTES]
        return is_found


def _unescaped(written: bytes) -> bytes:
    if b"\\" not in written:
        return written
    try:
        return json.loads(b'"' + written + b'"').encode("utf-8", "surrogatepass")
    except ValueError:  # not JSON, or not UTF-8
        return written
