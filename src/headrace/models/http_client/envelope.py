"""The fields of a response that something here reads, whichever protocol it is of.

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


class _Choice(Struct, omit_defaults=True):
    message: _Field = UNSET
    finish_reason: _Field = UNSET


class _Envelope(Struct, omit_defaults=True):
    choices: tuple[_Choice] | UnsetType = UNSET  # one: more are never asked for, and a list of them could be long
    content: _Field = UNSET
    type: _Field = UNSET
    stop_reason: _Field = UNSET
    usage: _Field = UNSET
    error: _Field = UNSET


_decoder = msgspec.json.Decoder(_Envelope)
_encode = msgspec.json.Encoder().encode


def bounded_envelope(body: bytes) -> bytes:
    """The response as it is, or its envelope where the whole would take too much memory. TooManyValues where that
    would too.
    """
    try:
        check_values(body)
    except TooManyValues as refused:
        try:
            body = _encode(_decoder.decode(body))
        except (msgspec.DecodeError, RecursionError):
            raise refused from None
        check_values(body)
    return body
