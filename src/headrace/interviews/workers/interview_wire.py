"""What a controller and a worker that conducts interviews say to each other, inside the messages of a worker's task.

    controller                                        worker
      Opening, as the task's payload ------------------> once; answered by Opened
      Given, Signalled, Leased, Acked -----------------> the executor contract, as messages
      <----------------------------------- Taken, Told   accepted; a batch of events
      <------ TurnWanted, CallEnded, TurnGivenUp ------   the endpoint's state stays with the controller
      <---------------------------------- Charged -----   with CallEnded: a worker's death must not hide what was paid
      Granted, Barred ---------------------------------> the first is answered by CallsBegun
      <----------------------------- LookedUp, Paid ---   so does the response cache
      Found ------------------------------------------->
      Ping --------------------------------------------> answered by Pong, unless it hangs
      <------------------------ Suspected, TooLarge ---   an interview that this worker cannot bring to its end

Each message's payload is a list of these. Covers: the shapes. Does not cover: the events themselves
(interviews.contract), or how bytes travel (workers.wire).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from headrace.encoding import encode_with
from headrace.executor import Batch, Signal
from headrace.interviews.contract import Chunk, InterviewEvent, Lease, Spec
from headrace.models.endpoint.call_results import (
    Abandoned,
    Away,
    Busy,
    CallRefused,
    CallResult,
    Ok,
    TimedOut,
    Unavailable,
    Unusable,
)
from headrace.models.provider import Reply
from headrace.survey.record import Usage
from headrace.workers.wire import FunctionReference


class Opening(msgspec.Struct, array_like=True):
    """`functions` are, for each model, its parameters that are functions, by name."""

    spec: Spec
    functions: list[dict[str, FunctionReference]]
    has_cache: bool
    has_network: bool


class Given(msgspec.Struct, tag=True, array_like=True):
    chunk: Chunk


class Signalled(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    what: Signal
    deadline_s: float


class Leased(msgspec.Struct, tag=True, array_like=True):
    lease: Lease


class Acked(msgspec.Struct, tag=True, array_like=True):
    upto: int


class Granted(msgspec.Struct, tag=True, array_like=True):
    """The turn of a call has come; it must be followed by CallEnded."""

    call: int


class Barred(msgspec.Struct, tag=True, array_like=True):
    """No call to this model will ever go out again."""

    call: int
    reason: str


class Found(msgspec.Struct, tag=True, array_like=True):
    """What the response cache has, or None."""

    call: int
    reply: Reply | None


class Ping(msgspec.Struct, tag=True, array_like=True):
    pass


class WorkerOpened(msgspec.Struct, tag=True, array_like=True):
    """`is_instant` where no model ever waits: then it conducts one interview at a time."""

    is_instant: bool


class Taken(msgspec.Struct, tag=True, array_like=True):
    """A chunk has been accepted."""

    id: int


class EventsSent(msgspec.Struct, tag=True, array_like=True):
    batch: Batch[InterviewEvent]


class TurnWanted(msgspec.Struct, tag=True, array_like=True):
    """`model` is its place in the spec, `tokens` what the call is expected to take."""

    call: int
    model: int
    tokens: float


class TurnGivenUp(msgspec.Struct, tag=True, array_like=True):
    call: int


class CallsBegun(msgspec.Struct, tag=True, array_like=True):
    """Their turns have been used: whatever becomes of the worker, these were requests."""

    calls: list[int]


class CallEnded(msgspec.Struct, tag=True, array_like=True):
    call: int
    kind: str
    outcome: bytes


class Charged(msgspec.Struct, tag=True, array_like=True):
    """What the calls for one question of an interview took so far; takes the place of what was said of it before."""

    ordinal: int
    question: int
    usage: Usage


class LookedUp(msgspec.Struct, tag=True, array_like=True):
    call: int
    key: bytes


class Paid(msgspec.Struct, tag=True, array_like=True):
    """A reply that was accepted as an answer, for the response cache."""

    key: bytes
    reply: Reply


class Pong(msgspec.Struct, tag=True, array_like=True):
    pass


class Suspected(msgspec.Struct, tag=True, array_like=True):
    """The worker met its memory limit in this interview, and is about to end."""

    ordinal: int


class RowTooLarge(msgspec.Struct, tag=True, array_like=True):
    """The row of this interview does not fit into a message."""

    id: int
    seq: int
    ordinal: int
    size_bytes: int


ToSurveyWorker: TypeAlias = Given | Signalled | Leased | Acked | Granted | Barred | Found | Ping
FromSurveyWorker: TypeAlias = (
    WorkerOpened
    | Taken
    | EventsSent
    | TurnWanted
    | TurnGivenUp
    | CallsBegun
    | CallEnded
    | Charged
    | LookedUp
    | Paid
    | Pong
    | Suspected
    | RowTooLarge
)

encode = encode_with(msgspec.msgpack.Encoder())
decode_opening = msgspec.msgpack.Decoder(Opening).decode
decode_to_worker = msgspec.msgpack.Decoder(list[ToSurveyWorker]).decode
decode_from_worker = msgspec.msgpack.Decoder(list[FromSurveyWorker]).decode

_OUTCOMES: dict[str, Any] = {
    kind.__name__: kind for kind in (Abandoned, Away, Busy, Ok, CallRefused, TimedOut, Unavailable, Unusable)
}


def call_ended(call: int, outcome: CallResult) -> CallEnded:
    return CallEnded(call, type(outcome).__name__, encode(outcome))


def outcome_of_call(ended: CallEnded) -> CallResult:
    return msgspec.msgpack.decode(ended.outcome, type=_OUTCOMES[ended.kind])
