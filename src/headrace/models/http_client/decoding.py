"""Decodes the JSON that services send, and repairs unpaired surrogates and bytes that are not UTF-8.

Does not cover: what the values mean (one file per protocol).
"""

from __future__ import annotations

import codecs
import json
from typing import Any, TypeVar, cast

import msgspec

from headrace.models.http_client.envelope import bounded_envelope
from headrace.models.http_client.nearly_json import read_repaired
from headrace.survey.repair.bounded_json import TooManyValues

Shape = TypeVar("Shape")

_MOST_TOKENS = 1 << 53


class BadReply(Exception):
    """A reply that cannot be decoded. HttpProvider, which knows model and address, makes it a ProviderUnavailable."""


def decoded(decoder: msgspec.json.Decoder[Shape], body: bytes) -> tuple[Shape, bool]:
    """Decodes the body and tells whether it had to be repaired; raises BadReply where it has not the shape."""
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        kept, repaired = read_repaired(bounded_envelope, body)
        return _decoded(decoder, kept, repaired)
    except TooManyValues as error:
        raise BadReply(f"its reply cannot be read: {error}") from None
    except msgspec.ValidationError:
        raise BadReply(f"its reply has an unknown shape: {beginning(body)}") from None
    except (ValueError, RecursionError):
        raise BadReply(f"its reply is not the JSON it should be: {beginning(body)}") from None


def whole_number(given: Any) -> int:
    """A count of tokens; 0 for anything that cannot be one."""
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return int(given) if is_number and 0 <= given <= _MOST_TOKENS else 0


def fields(given: Any) -> dict[str, Any]:
    """A JSON object, or an empty one for anything else."""
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def beginning(body: bytes) -> str:
    """The first words of a body, for a message."""
    if not body:
        return "nothing at all"
    words = " ".join(body[:400].decode("utf-8", "replace").split())
    return words if len(words) <= 120 else f"{words[:117]}..."


def _decoded(decoder: msgspec.json.Decoder[Shape], kept: bytes, repaired: bool) -> tuple[Shape, bool]:
    try:
        return decoder.decode(kept), repaired
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The standard library keeps half of a surrogate pair, whose other half may be in the next event of a stream.
        return msgspec.convert(json.loads(kept.decode("utf-8", "replace")), decoder.type), True
