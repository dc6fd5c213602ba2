"""What an executor of agent runs and a worker that holds some say to each other, inside the messages of a task.

Covers: the messages. Does not cover: framing and limits (workers.wire), or either side.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from headrace.agents.contract import AgentEvent, AgentRun, RemoteError
from headrace.encoding import encode_with
from headrace.executor import Signal
from headrace.workers.wire import FunctionReference


class BeginRun(msgspec.Struct, tag=True, array_like=True):
    work: AgentRun
    function: FunctionReference


class Signalled(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    what: Signal
    deadline_s: float


class StepAnswer(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    step: str
    data: bytes | None
    error: RemoteError | None


class Ack(msgspec.Struct, tag=True, array_like=True):
    upto: int


class LeaveWorker(msgspec.Struct, tag=True, array_like=True):
    """No run is left here, and none will come."""


class RunEvents(msgspec.Struct, tag=True, array_like=True):
    """In order; seq counts over all events of this worker's task."""

    events: list[AgentEvent]


class StepEntered(msgspec.Struct, tag=True, array_like=True):
    """A run is about to take this step: should its worker die, this is where."""

    id: int
    step: str


class EffectRaised(msgspec.Struct, tag=True, array_like=True):
    """The function of a step with side effects has raised: nothing is under way there any more."""

    id: int
    step: str


class KindRegistered(msgspec.Struct, tag=True, array_like=True):
    """A run is about to ask for a child of this kind."""

    name: str
    function: FunctionReference
    max_attempts: int
    timeout_s: float | None
    memory_bytes: int | None


ToRuns: TypeAlias = BeginRun | Signalled | StepAnswer | Ack | LeaveWorker
FromRuns: TypeAlias = RunEvents | StepEntered | EffectRaised | KindRegistered


class RunsPayload(msgspec.Struct, array_like=True):
    """The payload of the task: what the runs in this worker share, and what was said to them before it was there."""

    spools: str
    first: list[ToRuns]


encode = encode_with(msgspec.msgpack.Encoder())
_to_runs = msgspec.msgpack.Decoder(ToRuns)
_from_runs = msgspec.msgpack.Decoder(FromRuns)
_home = msgspec.msgpack.Decoder(RunsPayload)


def decode_to_runs(payload: bytes) -> Any:
    return _to_runs.decode(payload)


def decode_from_runs(payload: bytes) -> Any:
    return _from_runs.decode(payload)


def decode_home(payload: bytes) -> RunsPayload:
    return _home.decode(payload)
