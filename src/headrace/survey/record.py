"""What is kept of one interview: the answers' records, and why something has no answer.

Covers: the shapes and their encoding. Does not cover: where they are stored (store) or made (execute).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import msgspec


class State(IntEnum):
    """What became of one question in one interview."""

    ANSWERED = 0
    SKIPPED = 1  # a rule said so: None is its answer
    FAILED = 2
    NOT_ASKED = 3  # it needs the answer of a question that failed


class Cause(Enum):
    """Why a question has no answer."""

    INVALID = "invalid answer"
    MISSING = "no answer"
    DATA = "data does not fit the question"
    UNAVAILABLE = "model unavailable"
    REFUSED = "model refused the call"
    OUT_OF_MEMORY = "out of memory"
    INTERNAL = "internal error"


# Running again retries these by itself: their cause lay outside the answer and the data.
OUTSIDE_CAUSES = frozenset({Cause.UNAVAILABLE, Cause.REFUSED, Cause.OUT_OF_MEMORY})


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    question: int
    cause: Cause
    message: str


class AnswerRecord(msgspec.Struct, array_like=True, gc=False):
    """One question of one interview. `value` is the answer in its SQL form, `raw` the model's bytes."""

    question: int
    state: State
    value: Any = None  # a SqlValue: msgspec decodes no union of text and bytes
    prompt: str = ""
    raw: bytes = b""
    comment: str | None = None
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    started_ms: int = 0
    took_ms: int = 0
    repaired: bool = False
    failure: Failure | None = None


class Detail(msgspec.Struct, array_like=True, gc=False):
    """One interview's records, by question, with what they share. `started_at` is seconds since 1970."""

    system: str
    started_at: float
    records: list[AnswerRecord]


encode_detail = msgspec.msgpack.Encoder().encode
decode_detail = msgspec.msgpack.Decoder(Detail).decode
encode_record = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(AnswerRecord).decode
