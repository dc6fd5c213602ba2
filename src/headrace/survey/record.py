"""The records of one interview: its answers, and why a question has none.

Covers: the shapes and their encoding. Does not cover: where they are stored (store) or made (interviews).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Annotated, Any, TypeAlias

import msgspec

from headrace.encoding import LARGE_BYTES, encode_large, encode_with

MOST_RECORDS = 100_000
_LARGE_BYTES = 1_000_000
# Checked where one is decoded: a record may come from a file, and what is below zero would lift a budget.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Cost: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
# The first bytes of msgpack's lists and maps.
_LISTS_AND_MAPS = frozenset(bytes([first]) for first in (*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF))


class AnswerState(IntEnum):
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
    FILE = "a file in the prompt cannot be sent"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "its process ended"
    INTERNAL = "internal error"


# Running again retries these by itself: their cause lay outside the answer and the data.
OUTSIDE_CAUSES = frozenset({Cause.UNAVAILABLE, Cause.REFUSED, Cause.FILE, Cause.OUT_OF_MEMORY, Cause.CRASHED})


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    question: int
    cause: Cause
    message: str


class Usage(msgspec.Struct, array_like=True, gc=False):
    """What calls took. `cost` is in US dollars and leaves out `unpriced` calls, whose price is not known.

    `cached_tokens` are among the input's, `reasoning_tokens` among the output's; `cache_hits` are answers that the
    response cache had, which cost nothing and are no calls.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    cache_hits: int = 0

    def include(self, other: Usage) -> None:
        for name in Usage.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add(self, record: AnswerRecord, sign: int = 1) -> None:
        self.calls += sign * record.attempts
        self.input_tokens += sign * record.input_tokens
        self.output_tokens += sign * record.output_tokens
        if record.service is not None:
            service = record.service
            self.calls -= sign * service.cache_hits
            self.cached_tokens += sign * service.cached_tokens
            self.reasoning_tokens += sign * service.reasoning_tokens
            self.cost += sign * service.cost
            self.unpriced += sign * service.unpriced
            self.cache_hits += sign * service.cache_hits


class ServiceUsage(msgspec.Struct, array_like=True, gc=False):
    """What a real service's calls for one question took beyond their tokens; the test model has none of it."""

    cached_tokens: Count = 0
    reasoning_tokens: Count = 0
    cost: Cost = 0.0
    unpriced: Count = 0
    cache_hits: Count = 0


class AnswerRecord(msgspec.Struct, array_like=True, gc=False):
    """One question of one interview. `value` is the answer in its SQL form, `raw` the model's bytes."""

    question: Count
    state: AnswerState
    value: Any = None  # a SqlValue: msgspec decodes no union of text and bytes
    prompt: str = ""
    raw: bytes = b""
    comment: str | None = None
    attempts: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    started_ms: int = 0
    took_ms: int = 0
    repaired: bool = False
    failure: Failure | None = None
    service: ServiceUsage | None = None
    system: str = ""  # the system prompt, where it is not the interview's

    def held_bytes(self) -> int:
        """About how many bytes this record holds on to; only what can be large counts."""
        return len(self.raw) + (len(self.value) if isinstance(self.value, (str, bytes)) else 0)


class DetailShape(Enum):
    """How much of an interview its detail holds."""

    WHOLE = "whole"
    SLIM = "slim"  # no prompts, no raw responses; where no question failed, no second copy of the answers either
    OF_FAILED = "of failed"  # slim, and empty where no question failed


class Detail(msgspec.Struct, array_like=True, gc=False):
    """One interview's records, by question, with what they share. `started_at` is seconds since 1970."""

    system: str
    started_at: float
    records: Annotated[list[AnswerRecord], msgspec.Meta(max_length=MOST_RECORDS)]


def without_texts(record: AnswerRecord) -> AnswerRecord:
    """A copy without prompt and raw response. A copy, since the journal's thread may be encoding the record."""
    return msgspec.structs.replace(record, prompt="", raw=b"", system="")


def without_answer(record: AnswerRecord) -> AnswerRecord:
    """The same, without the answer too."""
    return msgspec.structs.replace(record, prompt="", raw=b"", system="", value=None)


_detail_encoder = msgspec.msgpack.Encoder()
_encode_small_detail = encode_with(_detail_encoder)
encode_record = msgspec.msgpack.Encoder().encode
decode_record = msgspec.msgpack.Decoder(AnswerRecord).decode
_decode_detail = msgspec.msgpack.Decoder(Detail).decode


def encode_detail(detail: Detail) -> bytes | bytearray:
    """Encode for compression. A large detail is a bytearray, to be compressed before the next one is encoded: it stays
    in the buffer that it was encoded into (encoding.encode_large).
    """
    raw_bytes = sum([len(record.raw) for record in detail.records])
    if raw_bytes < LARGE_BYTES:
        return _encode_small_detail(detail)
    texts = sum([record.held_bytes() + len(record.prompt) for record in detail.records])
    return encode_large(_detail_encoder, detail, texts + LARGE_BYTES // 16)


def decode_detail(encoded: bytes) -> Detail:
    """The reverse of `encode_detail`, for bytes that may come from anywhere: a list takes many times the bytes that
    it is written with, so no answer may be one.
    """
    if len(encoded) > _LARGE_BYTES:
        firsts = [memoryview(record.value)[:1].tobytes() for record in _decode_outline(encoded).records]
        if not _LISTS_AND_MAPS.isdisjoint(firsts):
            raise msgspec.ValidationError("an answer that is a list")
    return _decode_detail(encoded)


class _RecordOutline(msgspec.Struct, array_like=True, gc=False):
    """The first fields of an AnswerRecord, its value not decoded."""

    question: int
    state: int
    value: msgspec.Raw = msgspec.Raw()


class _DetailOutline(msgspec.Struct, array_like=True, gc=False):
    system: msgspec.Raw
    started_at: float
    records: Annotated[list[_RecordOutline], msgspec.Meta(max_length=MOST_RECORDS)]


_decode_outline = msgspec.msgpack.Decoder(_DetailOutline).decode
