"""Encodes the values that agent runs keep: arguments, step results, state. An error names the value that it is about.

Bytes are allowed, since tools return files. Does not cover: which other values there are (survey.values).
"""

from __future__ import annotations

from typing import Any

from headrace.errors import InvalidInput
from headrace.survey.values import UnusableValue, decode_value, encode_value
from headrace.units import format_bytes

MOST_VALUE_BYTES = 64_000_000


def encode_kept(value: object, what: str) -> bytes:
    """`what` names it in the error, as in "the result of step 'search'"."""
    try:
        encoded = encode_value(value, with_bytes=True)
    except UnusableValue as error:
        message = error.message.replace("'value' ", "it ", 1)
        fix = error.fix.replace("text, and lists", "text, bytes, and lists")
        raise InvalidInput(f"{what} cannot be journaled: {message}", fix=fix) from None
    if len(encoded) > MOST_VALUE_BYTES:
        size, most = format_bytes(len(encoded)), format_bytes(MOST_VALUE_BYTES)
        raise InvalidInput(
            f"{what} is too large to journal: {size} of at most {most}.",
            fix="Keep large data in a file or in ctx.spool(), and journal where it is.",
        )
    return encoded


def encode_arguments(kind: str, args: tuple[object, ...], keywords: dict[str, object]) -> bytes:
    try:
        return encode_kept([args, keywords], f"The arguments of {kind}")
    except InvalidInput:
        for place, argument in enumerate(args, 1):
            encode_kept(argument, f"Argument {place} of {kind}")
        for name, argument in keywords.items():
            encode_kept(argument, f"Argument {name!r} of {kind}")
        raise  # each is well, and together they are too large


def decode_arguments(encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
    args, keywords = decode_value(encoded)
    return args, keywords
