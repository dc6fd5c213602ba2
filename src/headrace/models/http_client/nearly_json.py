"""Reads what services send as JSON and is not quite: with a byte order mark, bytes that are not UTF-8, halves of
surrogate pairs, NaN or infinities. Many servers write these, and other clients read them.

Does not cover: what the values mean, and how many of them fit (models.http_client.envelope).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from headrace.survey.repair.bounded_json import TooManyValues

Read = TypeVar("Read")

_HEX = rb"[0-9a-fA-F]"
_LOW_HALF = rb"\\u[dD][c-fC-F]" + _HEX * 2
_HIGH_HALF = rb"\\u[dD][89abAB]" + _HEX * 2
# What could be taken for a half, and is none, comes first: an escaped backslash, and a whole pair.
_HALF = re.compile(rb"\\\\|" + _HIGH_HALF + _LOW_HALF + rb"|(" + _HIGH_HALF + rb"|" + _LOW_HALF + rb")")
# Texts are taken whole, to the end where nobody closes one: each is looked at once.
_NO_NUMBER = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)|(-?Infinity|NaN)', re.DOTALL)


def read_repaired(read: Callable[[bytes], Read], body: bytes) -> tuple[Read, bool]:
    """What `read` makes of the body, or of its repaired form where it is no JSON as it is; and whether it was."""
    try:
        return read(body), False
    except (TooManyValues, msgspec.ValidationError):
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return read(_as_json(body)), True


def _as_json(body: bytes) -> bytes:
    body = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").encode()
    body = _replaced(_HALF, body, rb"\ufffd")
    if b"NaN" in body or b"Infinity" in body:
        body = _replaced(_NO_NUMBER, body, b"null")
    return body


def _replaced(pattern: re.Pattern[bytes], body: bytes, replacement: bytes) -> bytes:
    """The body with each match that has a group replaced. `sub` would keep an object for each of the others too, and
    for what stands between them: eighty times the size of some bodies.
    """
    pieces, at = bytearray(), 0
    for found in pattern.finditer(body):
        if found[1]:
            pieces += body[at : found.start()]
            pieces += replacement
            at = found.end()
    return bytes(pieces + body[at:]) if at else body
