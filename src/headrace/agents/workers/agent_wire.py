"""The messages between an engine and a worker that runs a slot's agent runs.

    engine                                            worker
      the directory of spools, as the task's payload --> once; empty for the host's usual one
      BeginRun, StepAnswer ----------------------------> the executor contract, beside SignalWork and AckEvents
      <----------------------- StepEntered, EffectRaised  at once, also where the function then blocks the loop
      <--------------------------------- FunctionMissing  in place of all others, where the run cannot begin
      <---------------------------------- KindRegistered  before a child of this kind is asked for; EventsSent follows
      LeaveWorker -------------------------------------> the slot is empty

Covers: the shapes. Does not cover: the messages that interviews share (workers.hosting.executor_wire), the events
(agents.contract), or how bytes travel (workers.wire).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from headrace.agents.contract import AgentEvent, AgentRun, RemoteError
from headrace.limits import KindBreaker
from headrace.workers.hosting.executor_wire import AckEvents, EventsSent, SignalWork
from headrace.workers.wire import FunctionReference


class BeginRun(msgspec.Struct, tag=True, array_like=True):
    work: AgentRun
    function: FunctionReference


class StepAnswer(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    step: str
    data: bytes | None
    error: RemoteError | None


class LeaveWorker(msgspec.Struct, tag=True, array_like=True):
    """No run is left here, and none will come."""


class StepEntered(msgspec.Struct, tag=True, array_like=True):
    """A run is about to take this step: should its worker die, this is where."""

    id: int
    epoch: int
    step: str


class EffectRaised(msgspec.Struct, tag=True, array_like=True):
    """The function of a step with side effects has raised: nothing is under way there any more."""

    id: int
    epoch: int
    step: str


class FunctionMissing(msgspec.Struct, tag=True, array_like=True):
    """The run cannot begin: its function, or a package that this imports, is not on the worker's host."""

    id: int
    epoch: int
    reason: str


class KindRegistered(msgspec.Struct, tag=True, array_like=True):
    """A run is about to ask for a child of this kind."""

    name: str
    function: FunctionReference
    max_attempts: int
    timeout_s: float | None
    memory_bytes: int | None
    breaker: KindBreaker = "engine"
    oom_retry: bool = True


ToAgentWorker: TypeAlias = BeginRun | SignalWork | StepAnswer | AckEvents | LeaveWorker
FromAgentWorker: TypeAlias = EventsSent[AgentEvent] | StepEntered | EffectRaised | FunctionMissing | KindRegistered

decode_to_worker = msgspec.msgpack.Decoder(list[ToAgentWorker]).decode
decode_from_worker = msgspec.msgpack.Decoder(list[FromAgentWorker]).decode
