"""What the controller and an executor say to each other, for one host or many.

Everything here can be sent as bytes: no paths, no descriptors, no shared disk. Delivery is at least once; the
controller tells repetitions by (id, epoch, seq) and refuses what comes from an attempt it has replaced. Only the
controller writes the store; an event is acknowledged after its COMMIT, and not reading events is backpressure.

    controller                                executor
      open(spec) ------------------------------> once
      lease(...) ------------------------------> how much may be in flight and in memory
      start(Chunk | AgentRun) -----------------> returns when accepted
      signal(id, epoch, what, deadline_s) -----> preempt, cancel, kill
      put(id, epoch, step, data) --------------> what an agent run has asked for: a large result, a message
      <------------------------- events() ------ batches, in order of seq
      ack(upto) -------------------------------> these are on disk: forget them

Does not cover: deciding what to start (schedule), or how an interview is conducted (interviews.interview).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Protocol, TypeAlias

import msgspec

from headrace.exit_causes import ExitCause
from headrace.limits import RetryLimits
from headrace.models.limiter import EndpointState
from headrace.plan.prices import Price
from headrace.store.run_file.row_batches import RowBatch
from headrace.survey.record import AnswerRecord, Usage


class Spec(msgspec.Struct, frozen=True):
    """What all work of a job shares. Functions do not travel: an executor has them, or the work cannot run there."""

    survey: bytes
    models: list[bytes]
    prices: list[Price | None]
    dictionary: bytes
    retry: RetryLimits


class Interview(msgspec.Struct, array_like=True):
    """One interview to conduct. `kept` are answers it already has; `uncounted` what they cost, if not yet counted."""

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    kept: list[AnswerRecord] = []
    uncounted: Usage | None = None


class Chunk(msgspec.Struct, tag="chunk"):
    """Some interviews, with the rows of agents and scenarios they need, by position."""

    id: int
    epoch: int
    interviews: list[Interview]
    agents: dict[int, bytes]
    scenarios: dict[int, bytes]


class AgentRun(msgspec.Struct, tag="agent_run"):
    """One agent run, with its journal so far: `steps` are results by step name, `state` the last checkpoint.

    A result that is None is too large to travel before it is `Wanted`. `started` are steps with side effects that have
    started and not finished. `token` is the engine file's, for idempotency keys. Runs of one `slot` share a worker and
    its memory: a run and its children. `now_s` is the engine's time: a clock on any host goes on from there.

    `marks` are the journaled steps' marks (agents.step_marks), `effects` those of them that have side effects, `again`
    the side effects whose owner wants them once more. Where it `is_strict`, a step that has changed is an error.
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


Work: TypeAlias = Chunk | AgentRun


class Lease(msgspec.Struct, frozen=True):
    """What the executor may use: interviews at once, and bytes of finished work that wait for an ack. The job's budget
    has room for `affordable` interviews, those in flight among them: none that was lost is conducted again beyond it.
    """

    interviews: int
    buffer_bytes: int
    affordable: int | None = None


class Command(msgspec.Struct, frozen=True):
    """A program and what it is held to; None is what the controller decides."""

    argv: list[str]
    input: bytes
    directory: str
    environment: dict[str, str] | None
    memory_bytes: int | None
    timeout_s: float | None
    output_bytes: int


class Trouble(msgspec.Struct, frozen=True):
    """An error that travels: `kind` is its class in `errors`."""

    kind: str
    message: str
    fix: str = ""


class Signal(Enum):
    PREEMPT = "preempt"  # stop at the next step; what is journaled stays
    CANCEL = "cancel"  # start nothing more of it; what is running ends
    KILL = "kill"  # stop now, with as much time to clean up as the deadline gives


class Event(msgspec.Struct, tag=True, kw_only=True):
    """`id` and `epoch` are the work's, `seq` counts up by one over all events of an executor."""

    id: int
    epoch: int
    seq: int


class Rows(Event):
    """Interviews that ended, as the store's statements take them."""

    rows: RowBatch


class Answers(Event):
    """Answers of interviews still in flight: (ordinal, record)."""

    answers: list[tuple[int, AnswerRecord]]


class Spent(Event):
    """Calls that were paid for and that no row or answer tells of: their worker has ended, or their interview was given
    up. Of the calls in `usage`, `unanswered` had no reply yet: what they took is not known. Where it is acknowledged,
    `Lease.affordable` counts it.
    """

    usage: Usage
    unanswered: int = 0


class StepStarting(Event):
    """An agent run is about to take a step whose start must be durable first; `runs_program` where a CommandWanted
    follows.
    """

    step: str
    runs_program: bool = False
    mark: bytes = b""


class StepRaised(Event):
    """A step whose start was told raised: nothing of it is under way any more, and whether it happened is open."""

    step: str


class StepDone(Event):
    step: str
    result: bytes
    mark: bytes = b""


class StepDiffers(Event):
    """A step is not what the journal has: how, in words."""

    step: str
    what: str


class Checkpoint(Event):
    state: bytes
    number: int = 1


class Wanted(Event):
    """The result of a step that did not travel with the run; answered by `put`."""

    step: str


class Receiving(Event):
    """The run wants its next message, journaled as this step's result; answered by `put`, None where there is none."""

    step: str


class ChildWanted(Event):
    """The run wants the result of another, in its own slot and with its own priority, as this step's result; answered
    by `put` when that has ended.
    """

    step: str
    kind: str
    arguments: bytes
    mark: bytes = b""


class AskWanted(Event):
    """The run wants a model's reply, journaled as this step's result; answered by `put`, with None where the call was
    not made because the run is to stop. Limits, breaker and money are the controller's.
    """

    step: str
    model: bytes
    prompt: str
    system: str
    mark: bytes = b""


class CommandWanted(Event):
    """The run wants a program to be run, and how it ended as this step's result; answered by `put`."""

    step: str
    command: Command
    mark: bytes = b""


class Emitted(Event):
    payload: bytes


class Observed(Event):
    """A model's endpoint stands otherwise than before; of no work, so `id` and `epoch` are 0."""

    model: int
    standing: EndpointState
    reason: str = ""


class Reading(Event):
    """What the slot of an agent run uses, or has used at most where the run is about to end."""

    memory_bytes: int


class LoopStuck(Event):
    """The event loop that an agent run lives in has not turned for so long: `stack` is what blocks it, as faulthandler
    writes it, empty where it could not be had.
    """

    seconds: float
    stack: str


class Ended(Event):
    """Nothing more will come of this work. Of an agent run: its `result`; where it sleeps, until when; where it is
    undecided, `step` says which one.
    """

    cause: ExitCause
    reason: str = ""
    result: bytes | None = None
    resume_at: float | None = None
    step: str = ""


AnyEvent: TypeAlias = (
    Rows
    | Answers
    | Spent
    | StepStarting
    | StepRaised
    | StepDone
    | StepDiffers
    | Checkpoint
    | Wanted
    | Receiving
    | ChildWanted
    | AskWanted
    | CommandWanted
    | Emitted
    | Observed
    | Reading
    | LoopStuck
    | Ended
)


class Batch(msgspec.Struct):
    """Events in order; `upto` is the last one's seq."""

    upto: int
    events: list[AnyEvent]


class Executor(Protocol):
    @property
    def ahead(self) -> int:
        """How many interviews it would have wait beside those it may conduct at once; known once it is open."""
        ...

    async def open(self, spec: Spec) -> None: ...

    def lease(self, lease: Lease) -> None: ...

    async def start(self, work: Work) -> None: ...

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None: ...

    def events(self) -> AsyncIterator[Batch]: ...

    def ack(self, upto: int) -> None: ...

    async def close(self) -> None: ...


class AgentExecutor(Protocol):
    """The same for agent runs, which have no spec: an executor knows its functions by kind.

    `start` waits for nobody: what cannot be started is told as an ending.
    """

    def start(self, work: AgentRun) -> None: ...

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None: ...

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: Trouble | None = None) -> None: ...

    def events(self) -> AsyncIterator[Batch]: ...

    def ack(self, upto: int) -> None: ...

    async def close(self) -> None: ...
