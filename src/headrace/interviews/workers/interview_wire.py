"""The messages between a survey's controller and a worker that conducts interviews.

    controller                                        worker
      Opening, as the task's payload ------------------> once; answered by WorkerOpened
      StartChunk, SetLease ----------------------------> the executor contract, beside SignalWork and AckEvents
      SetAddresses ------------------------------------> of a model with an address file: first, and when it changes
      <----------------------------- ChunkTaken --------   accepted; EventsSent follows
      <------ TurnWanted, CallEnded, TurnGivenUp ------   the endpoint's state stays with the controller
      <---------------------------------- Charged -----   with CallEnded: a worker's death must not hide what was paid
      TurnGranted, TurnRefused ------------------------> the first is answered by CallsBegun
      <------------------------------ CallFollowed ----   in place of CallEnded: its turn is lent (models.turn_leases)
      TurnsRecalled -----------------------------------> no turn that was lent is to be used again
      <----------------------- CacheLookup, CacheReply    the response cache stays with the controller too
      CacheAnswer ------------------------------------->
      Ping --------------------------------------------> answered by Pong, unless it hangs
      <------------- InterviewSuspected, RowTooLarge --   an interview that this worker cannot bring to its end

Covers: the shapes. Does not cover: the messages that agent runs share (workers.hosting.executor_wire), the events
(interviews.contract), or how bytes travel (workers.wire).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

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
from headrace.priority import Priority
from headrace.survey.record import Usage
from headrace.workers.hosting.executor_wire import AckEvents, EventsSent, SignalWork, encode
from headrace.workers.wire import FunctionReference


class Opening(msgspec.Struct, array_like=True):
    """`functions` are those of the job (interviews.job_functions), by reference."""

    spec: Spec
    functions: list[dict[str, FunctionReference]]
    has_cache: bool
    has_network: bool


class StartChunk(msgspec.Struct, tag=True, array_like=True):
    chunk: Chunk


class SetLease(msgspec.Struct, tag=True, array_like=True):
    lease: Lease


class SetAddresses(msgspec.Struct, tag=True, array_like=True):
    """The addresses of a model, by its position in the spec. The controller reads them from a file that the worker may
    not have.
    """

    model: int
    urls: list[str]


class TurnGranted(msgspec.Struct, tag=True, array_like=True):
    """The turn of a call has come, and has that call's number from now on. It may be used for one call after another
    during `lease_s`, and must be followed by CallEnded.
    """

    model: int
    call: int
    lease_s: float


class TurnRefused(msgspec.Struct, tag=True, array_like=True):
    """No call to this model will ever go out again."""

    model: int
    call: int
    reason: str


class TurnsRecalled(msgspec.Struct, tag=True, array_like=True):
    """Turns that were lent until now are for the calls that have them, and for no others."""

    model: int


class CacheAnswer(msgspec.Struct, tag=True, array_like=True):
    """What the response cache has, or None."""

    call: int
    reply: Reply | None


class Ping(msgspec.Struct, tag=True, array_like=True):
    pass


class WorkerOpened(msgspec.Struct, tag=True, array_like=True):
    """`is_instant` where no model ever waits: then it conducts one interview at a time."""

    is_instant: bool


class ChunkTaken(msgspec.Struct, tag=True, array_like=True):
    """A chunk has been accepted."""

    id: int
    epoch: int


class TurnWanted(msgspec.Struct, tag=True, array_like=True):
    """`model` is its position in the spec, `tokens` what the call is expected to take."""

    call: int
    model: int
    tokens: float
    priority: Priority = Priority.NORMAL


class TurnGivenUp(msgspec.Struct, tag=True, array_like=True):
    call: int


class CallsBegun(msgspec.Struct, tag=True, array_like=True):
    """Their turns have been used. They count as requests even where the worker dies before they end."""

    calls: list[int]


class CallEnded(msgspec.Struct, tag=True, array_like=True):
    """The turn is over."""

    turn: int
    kind: str
    outcome: bytes


class CallFollowed(msgspec.Struct, tag=True, array_like=True):
    """The call of this turn has ended, and another, which had asked for a turn of its own, has begun with it."""

    ended: CallEnded
    call: int
    tokens: float


class Charged(msgspec.Struct, tag=True, array_like=True):
    """What the calls for one question of an interview took so far; replaces an earlier figure of that question."""

    ordinal: int
    question: int
    usage: Usage


class CacheLookup(msgspec.Struct, tag=True, array_like=True):
    call: int
    key: bytes


class CacheReply(msgspec.Struct, tag=True, array_like=True):
    """A reply that was accepted as an answer, for the response cache."""

    key: bytes
    reply: Reply


class Pong(msgspec.Struct, tag=True, array_like=True):
    pass


class InterviewSuspected(msgspec.Struct, tag=True, array_like=True):
    """The worker met its memory limit in this interview, and is about to end."""

    ordinal: int


class RowTooLarge(msgspec.Struct, tag=True, array_like=True):
    """The row of this interview does not fit into a message. `seq` is the number of its event."""

    id: int
    epoch: int
    seq: int
    ordinal: int
    size_bytes: int


ToSurveyWorker: TypeAlias = (
    StartChunk
    | SignalWork
    | SetLease
    | SetAddresses
    | AckEvents
    | TurnGranted
    | TurnRefused
    | TurnsRecalled
    | CacheAnswer
    | Ping
)
FromSurveyWorker: TypeAlias = (
    WorkerOpened
    | ChunkTaken
    | EventsSent[InterviewEvent]
    | TurnWanted
    | TurnGivenUp
    | CallsBegun
    | CallEnded
    | CallFollowed
    | Charged
    | CacheLookup
    | CacheReply
    | Pong
    | InterviewSuspected
    | RowTooLarge
)

decode_opening = msgspec.msgpack.Decoder(Opening).decode
decode_to_worker = msgspec.msgpack.Decoder(list[ToSurveyWorker]).decode
decode_from_worker = msgspec.msgpack.Decoder(list[FromSurveyWorker]).decode

_OUTCOMES: dict[str, Any] = {
    kind.__name__: kind for kind in (Abandoned, Away, Busy, Ok, CallRefused, TimedOut, Unavailable, Unusable)
}


def call_ended(turn: int, outcome: CallResult) -> CallEnded:
    return CallEnded(turn, type(outcome).__name__, encode(outcome))


def outcome_of_call(ended: CallEnded) -> CallResult:
    return msgspec.msgpack.decode(ended.outcome, type=_OUTCOMES[ended.kind])
