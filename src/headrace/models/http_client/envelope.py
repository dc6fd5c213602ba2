"""The fields of a response that something here reads, whichever protocol it is of, whole or an event of a stream.

With logprobs, most of a response is values that nothing here reads. A struct's decoder skips them, so they take no
memory and do not count against the bound on values (survey.repair.bounded_json); and where they are too many, the rest
of the response is still an answer that was paid for.

Does not cover: what the fields mean (models.protocols, results.columns.raw_responses).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from headrace.survey.repair.bounded_json import TooManyValues, check_values

_Field: TypeAlias = Raw | UnsetType


class _ChoiceFields(Struct, omit_defaults=True):
    message: _Field = UNSET
    delta: _Field = UNSET
    finish_reason: _Field = UNSET


class _FirstChoice(Struct, array_like=True):
    """A list of choices. The first is the answer; the others are skipped, however many a service sends."""

    first: _ChoiceFields | None = None


class _Envelope(Struct, omit_defaults=True):
    choices: _FirstChoice | UnsetType | None = UNSET
    candidates: _Field = UNSET
    content: _Field = UNSET
    content_block: _Field = UNSET
    delta: _Field = UNSET
    error: _Field = UNSET
    message: _Field = UNSET
    stop_reason: _Field = UNSET
    type: _Field = UNSET
    usage: _Field = UNSET


_decoder = msgspec.json.Decoder(_Envelope)
_encode = msgspec.json.Encoder().encode


def envelope(body: bytes) -> bytes:
    """The fields of the response that are read. TooManyValues where these alone would take too much memory."""
    found = _decoder.decode(body)
    if isinstance(found.choices, _FirstChoice) and found.choices.first is None:
        found.choices = None
    kept = _encode(found)
    check_values(kept)
    return kept


def bounded_envelope(body: bytes) -> bytes:
    """The response as it is, or its envelope where the whole would take too much memory."""
    try:
        check_values(body)
    except TooManyValues:
        return envelope(body)
    return body
