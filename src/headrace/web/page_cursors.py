"""Cursors: a place in a long list as a text that is sent back to go on from there. It means nothing to anybody else.

A cursor comes from outside, so it is decoded as data of a type whose values are all harmless, and belongs to one
question: with another one it is refused. Does not cover: what a place is (the operations' modules).
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

from headrace.errors import InvalidInput

_MOST_LETTERS = 6_000
_DIGEST_BYTES = 8
Place = TypeVar("Place", bound=msgspec.Struct)


class BadCursor(InvalidInput):
    def __init__(self) -> None:
        super().__init__(
            "The cursor is not one that this list gave, or belongs to another filter or order.",
            fix="Leave the cursor out to begin anew.",
        )


def cursor_of(place: msgspec.Struct, asked: tuple[str, ...]) -> str:
    """The cursor of a place in the list that was asked for so."""
    return urlsafe_b64encode(_digest(asked) + msgspec.msgpack.encode(place)).rstrip(b"=").decode()


def place_at(cursor: str, asked: tuple[str, ...], kind: type[Place]) -> Place:
    """The place of a cursor; BadCursor where it is none, or one of another list."""
    try:
        if len(cursor) > _MOST_LETTERS:
            raise ValueError
        held = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        if held[:_DIGEST_BYTES] != _digest(asked):
            raise ValueError
        return msgspec.msgpack.decode(held[_DIGEST_BYTES:], type=kind)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise BadCursor from None


def _digest(asked: tuple[str, ...]) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode(asked), digest_size=_DIGEST_BYTES).digest()
