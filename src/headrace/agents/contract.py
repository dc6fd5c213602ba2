"""The executor contract for agent runs: what an engine and an executor send each other.

    engine                                    executor
      start(AgentRun) -------------------------> with its journal so far; what cannot be started ends with an event
      <--- StepStarting, StepDone, Checkpoint --  journaled, then acknowledged: the run goes on
      <--- ResultWanted, ChildWanted, ... ------  requests
      put(id, epoch, step, data) --------------> the answer to a request
      <------------------- SlotWaits, SlotWanted  the slot may be given to others; it is wanted back
      <------------------------------ RunEnded -  the last event of an attempt

Covers: the agent run and its events. Does not cover: the calls that interviews share (executor), who may start
(agents.scheduler), or what an agent function sees (agents.context).
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from headrace.executor import Executor, ExecutorEvent
from headrace.exit_causes import ExitCause
from headrace.priority import Priority


class AgentRun(msgspec.Struct):
    """One agent run, with its journal so far: `steps` are results by step name, `state` the last checkpoint.

    A result that is None is too large to travel before a `ResultWanted` asks for it. `started` are steps with side
    effects that have started and not finished. `token` is the engine file's, for idempotency keys. Runs of one `slot`
    share a worker and its memory: a run and its children. `now_s` is the engine's time: clocks of other hosts continue
    from it. `host` is the one that the scheduler has chosen, of those that the executor has.

    `marks` are the journaled steps' marks (agents.step_marks), `effects` those of them that have side effects, `again`
    the side effects whose owner wants them once more. Where it `is_strict`, a step that has changed is an error.

    `memory_bytes` is what the run was promised, and memory beyond that is lent in the order of `priority`.
    """

    id: int
    epoch: int
    kind: str
    arguments: bytes
    state: bytes | None = None
    steps: dict[str, bytes | None] = {}
    memory_bytes: int = 0
    started: list[str] = []
    checkpoints: int = 0
    token: str = ""
    slot: int = 0
    now_s: float = 0.0
    marks: dict[str, bytes] = {}
    effects: list[str] = []
    again: list[str] = []
    is_strict: bool = False
    priority: Priority = Priority.HIGH
    host: str = ""


class ProgramCall(msgspec.Struct, frozen=True):
    """A program and what it is held to; None is what the controller decides."""

    argv: list[str]
    input: bytes
    directory: str
    environment: dict[str, str] | None
    memory_bytes: int | None
    timeout_s: float | None
    output_bytes: int


class RemoteError(msgspec.Struct, frozen=True):
    """An error that travels: `kind` is its class in `errors`. The last four are those of a RunFailed."""

    kind: str
    message: str
    fix: str = ""
    run_name: str = ""
    state: str = ""
    reason: str = ""
    is_endpoints: bool = False


class StepStarting(ExecutorEvent):
    """An agent run is about to take a step whose start must be durable first; `runs_program` where a CommandWanted
    follows.
    """

    step: str
    runs_program: bool = False
    mark: bytes = b""


class StepRaised(ExecutorEvent):
    """A step that had started raised: it is no longer under way, and whether its side effect happened is unknown. Its
    function had taken `took_s`; None where it was no function.
    """

    step: str
    took_s: float | None = None


class StepDone(ExecutorEvent):
    """A step has its result, for which a function took `took_s`; None where there was no function."""

    step: str
    result: bytes
    mark: bytes = b""
    took_s: float | None = None


class StepDiffers(ExecutorEvent):
    """A step is not what the journal has: how, in words."""

    step: str
    what: str


class Checkpoint(ExecutorEvent):
    state: bytes
    number: int = 1


class ResultWanted(ExecutorEvent):
    """The result of a step that did not travel with the run; answered by `put`."""

    step: str


class Receiving(ExecutorEvent):
    """The run wants its next message, journaled as this step's result; answered by `put`, None where there is none."""

    step: str


class ChildWanted(ExecutorEvent):
    """The run wants the result of another, with its own priority, as this step's result; answered by `put` when that
    has ended. A child runs in its parent's slot; one that `is_isolated` in a slot of its own.
    """

    step: str
    kind: str
    arguments: bytes
    mark: bytes = b""
    is_isolated: bool = False


class AskWanted(ExecutorEvent):
    """The run wants a model's reply, journaled as this step's result; answered by `put`, with None where the call was
    not made because the run is to stop. Limits, breaker and money are the controller's. After `timeout_s` the answer is
    an error.
    """

    step: str
    model: bytes
    prompt: str
    system: str
    mark: bytes = b""
    timeout_s: float | None = None


class CommandWanted(ExecutorEvent):
    """The run wants a program to be run, and how it ended as this step's result; answered by `put`."""

    step: str
    command: ProgramCall
    mark: bytes = b""


class SlotWaits(ExecutorEvent):
    """Nothing computes in the slot of this run: all of its runs wait for answers. `answers` is how many each had been
    given by then. Where the controller has given another since, or has started another run in the slot, they crossed,
    and the slot does not wait.
    """

    answers: dict[int, int]


class SlotWanted(ExecutorEvent):
    """A run in a slot that waits is about to start this step, or goes on for another reason (an empty `step`); answered
    by `put`, without data, when the slot has its turn.
    """

    step: str


class Emitted(ExecutorEvent):
    payload: bytes


class MemoryUsed(ExecutorEvent):
    """What the slot of an agent run uses, or has used at most where the run is about to end."""

    memory_bytes: int


class NearlyFull(ExecutorEvent):
    """The worker of an agent run is nearly full, and there is nothing left to lend to it. `is_urgent`: it is about to
    meet its limit.
    """

    is_urgent: bool = False


class LoopStuck(ExecutorEvent):
    """The event loop that an agent run lives in has not turned for so long: `stack` is what blocks it, as faulthandler
    writes it, empty where it could not be had.
    """

    seconds: float
    stack: str


class RunEnded(ExecutorEvent):
    """The last event of an attempt: its `result`; where the run sleeps, until when; where it is undecided, `step` says
    which side effect it met; where it ran out of memory, `limit_bytes` is what its worker was held to, 0 for nothing.
    Where its worker ended with the warden, the loss is not `is_own`: it says nothing about the run.
    Where it failed, `is_endpoints` if that was because a model could not be reached or used.
    """

    cause: ExitCause
    reason: str = ""
    result: bytes | None = None
    resume_at: float | None = None
    step: str = ""
    limit_bytes: int = 0
    is_own: bool = True
    is_endpoints: bool = False


AgentEvent: TypeAlias = (
    StepStarting
    | StepRaised
    | StepDone
    | StepDiffers
    | Checkpoint
    | ResultWanted
    | Receiving
    | ChildWanted
    | AskWanted
    | CommandWanted
    | SlotWaits
    | SlotWanted
    | Emitted
    | MemoryUsed
    | NearlyFull
    | LoopStuck
    | RunEnded
)


class AgentExecutor(Executor[AgentEvent], Protocol):
    """Agent runs have no spec: an executor knows its functions by kind. `start` returns at once; a run that cannot be
    started ends with a `RunEnded`.
    """

    def start(self, work: AgentRun) -> None: ...

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: RemoteError | None = None) -> None: ...

    def set_priority(self, id: int, epoch: int, priority: Priority) -> None: ...

    def reserve_less(self, id: int, epoch: int, memory_bytes: int) -> None:
        """Keep only so much of what the run's slot was promised with `AgentRun.memory_bytes`."""
        ...
