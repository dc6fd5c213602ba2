"""What the scheduler is told and what it asks for, as plain values. Nothing here assumes that there is one host.

    told (every one with `now_s`)            what usually follows
    HostJoined, HostLost                     Start; of a lost host: Start elsewhere, or Settle
    Submitted                                Start now or later; or Reject, and nothing more of it
    Cancelled                                Kill, or Settle where it was waiting
    Started, StepDone                        nothing: they say what preemption may choose
    EffectStarting, EffectEnded              nothing: while any of a run's side effects is under way, it is let alone
    Ended                                    Settle; or Start later (preempted, lost, out of memory once); or Park
    MemoryRead                               Start, Preempt, Kill, Skip, Reclaim, Grant, Note
    TenantOpened, TenantUsed, TenantClosed   Grant: so many credits in all from now on; fewer than before revokes
    BeatAdded, BeatRemoved, BeatEnded        StartBeat
    Tick                                     StartBeat, SkipBeat, KillBeat, Kill (time-out), Start (a probe)
    Closing                                  Preempt what runs and Park all the rest: it is on disk, and goes on later

    asked for      what to do
    Start          run it on `host`, as attempt `epoch`, with `memory_bytes` lent to it; then tell Started
    Preempt        stop it at its next step; then tell Ended
    Kill           stop it at once; then tell Ended
    Skip           nothing to do: it is LOW, memory pressure keeps it out, and it starts later. Once in each episode
    Settle         this is how it ended: record it. Once for each accepted submission, unless it was parked
    Park           it is on disk only now; Submitted with its epoch brings it back
    Reject         it was not accepted, and why
    Grant          the tenant may use so many credits at once
    StartBeat ...  the same for heartbeats, by name
    Reclaim        collect garbage, hand free memory back, then read memory again
    Note           nothing to do: record what happened

An event of an attempt that was replaced (an older epoch) or has ended is ignored. Each start of a run, here or by an
earlier controller, has a higher epoch than the one before. A child runs in its parent's slot and worker, with its
parent's priority and memory. A run that waits for a time or a message ends as `Ending.PARKED`: it holds neither slot
nor memory, here neither, and comes back by `Submitted`.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from headrace.limits import MemoryLimits
from headrace.memory.governor import Pressure
from headrace.priority import Priority


class Ending(Enum):
    """How one attempt ended, as its executor tells it. What was killed on command is LOST or PREEMPTED."""

    DONE = "done"
    FAILED = "failed"
    OUT_OF_MEMORY = "out of memory"
    PREEMPTED = "preempted"
    PARKED = "parked"
    LOST = "lost"


class Verdict(Enum):
    """How a run ended for good."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory, also alone"
    LOST = "its worker was lost too often"
    BUDGET_TOO_SMALL = "the memory budget cannot hold it even alone"


class Refusal(Enum):
    """Why a submission was not accepted."""

    QUEUE_FULL = "queue full"
    CIRCUIT_OPEN = "this kind of task fails"
    BUDGET_TOO_SMALL = "it declares more memory than the budget has"
    ALREADY_KNOWN = "it is waiting or running"
    CLOSING = "the engine is closing"


class Why(Enum):
    """Why something was stopped or skipped."""

    PRESSURE = "memory pressure"
    EMERGENCY = "memory is nearly exhausted"
    MAKES_ROOM = "makes room for CRITICAL work"
    CANCELLED = "cancelled"
    TIMED_OUT = "time limit"
    WITH_PARENT = "its parent stopped"
    FOR_CHILD = "its child ran out of memory, and is tried again with it, alone"
    HOST_LOST = "its host was lost"
    CLOSING = "the engine is closing"
    STILL_RUNNING = "the last beat is still running"
    LANE_FULL = "other heartbeats took its whole period"


class Notice(Enum):
    """What is worth recording besides the commands themselves."""

    LEVEL = "the memory level changed"
    NEW_ZERO = "memory that no work holds became the new zero"
    BLIND = "a heartbeat was skipped so often that nobody watches"
    MEASURED = "the first run of a kind has shown what it needs"
    CIRCUIT_OPENED = "a kind of task is refused for a while"
    CIRCUIT_CLOSED = "a kind of task is accepted again"


class Reading(Struct, frozen=True):
    """What a decision about memory was based on."""

    host: str
    used_bytes: int
    budget_bytes: int
    zero_bytes: int
    pressure: Pressure


class Told(Struct, frozen=True, kw_only=True, gc=False):
    now_s: float


class HostJoined(Told, frozen=True, kw_only=True):
    host: str
    slots: int
    limits: MemoryLimits


class HostLost(Told, frozen=True, kw_only=True):
    """Everything on it is lost at once; its tenants are closed."""

    host: str


class Submitted(Told, frozen=True, kw_only=True):
    """`epoch`, `preemptions`, `deaths` and `executed_s` are what is on record of a run that was here before."""

    id: int
    kind: str
    priority: Priority = Priority.HIGH
    memory_bytes: int | None = None
    limit_s: float | None = None
    parent: int | None = None
    epoch: int = 0
    preemptions: int = 0
    deaths: int = 0
    executed_s: float = 0.0


class Cancelled(Told, frozen=True, kw_only=True):
    id: int


class Started(Told, frozen=True, kw_only=True):
    id: int
    epoch: int


class EffectStarting(Told, frozen=True, kw_only=True):
    """A side effect begins; others of the same run may be under way beside it."""

    id: int
    epoch: int


class EffectEnded(Told, frozen=True, kw_only=True):
    """One that was told to begin is over: journaled, or it raised."""

    id: int
    epoch: int


class StepDone(Told, frozen=True, kw_only=True):
    """A step or a checkpoint is journaled."""

    id: int
    epoch: int


class Ended(Told, frozen=True, kw_only=True):
    """`peak_bytes` is the most this attempt was seen to use, 0 where nobody knows."""

    id: int
    epoch: int
    ending: Ending
    peak_bytes: int = 0


class MemoryRead(Told, frozen=True, kw_only=True):
    """`budget_bytes` is what is effective now, None for the host's limit; `by_run` what runs use, where each
    can be told apart; children share a worker with their parent, and any one of them may stand for all.
    """

    host: str
    used_bytes: int
    budget_bytes: int | None = None
    by_run: tuple[tuple[int, int], ...] = ()


class TenantOpened(Told, frozen=True, kw_only=True):
    """A survey's part on one host: it wants so many credits, each some interviews' worth of `credit_bytes`."""

    tenant: str
    host: str
    wanted: int
    priority: Priority = Priority.NORMAL
    credit_bytes: int = 0


class TenantUsed(Told, frozen=True, kw_only=True):
    tenant: str
    in_use: int
    credit_bytes: int


class TenantClosed(Told, frozen=True, kw_only=True):
    tenant: str


class BeatAdded(Told, frozen=True, kw_only=True):
    """`jitter` (0 to 1) says where in its period it beats."""

    name: str
    host: str
    every_s: float
    limit_s: float
    jitter: float


class BeatRemoved(Told, frozen=True, kw_only=True):
    name: str


class BeatEnded(Told, frozen=True, kw_only=True):
    name: str
    epoch: int


class Tick(Told, frozen=True, kw_only=True):
    """Time has passed; due at `Scheduler.next_tick_s`, earlier and later does no harm."""


class Closing(Told, frozen=True, kw_only=True):
    pass


Event: TypeAlias = (
    HostJoined
    | HostLost
    | Submitted
    | Cancelled
    | Started
    | StepDone
    | EffectStarting
    | EffectEnded
    | Ended
    | MemoryRead
    | TenantOpened
    | TenantUsed
    | TenantClosed
    | BeatAdded
    | BeatRemoved
    | BeatEnded
    | Tick
    | Closing
)


class Asked(Struct, frozen=True, kw_only=True, gc=False):
    """Nothing here or in `Told` can be part of a cycle: the collector need not look at them."""


class Start(Asked, frozen=True, kw_only=True):
    """`slot` is the same for a run and its children, and for nobody else. `preemptions` and `deaths` are what is to be
    known of it after a crash.
    """

    id: int
    epoch: int
    host: str
    memory_bytes: int
    slot: int = 0
    is_alone: bool = False
    preemptions: int = 0
    deaths: int = 0


class Preempt(Asked, frozen=True, kw_only=True):
    id: int
    epoch: int
    host: str
    why: Why
    reading: Reading | None = None


class Kill(Asked, frozen=True, kw_only=True):
    id: int
    epoch: int
    host: str
    why: Why
    reading: Reading | None = None


class Skip(Asked, frozen=True, kw_only=True):
    id: int
    why: Why
    reading: Reading | None = None


class Settle(Asked, frozen=True, kw_only=True):
    id: int
    epoch: int
    verdict: Verdict


class Park(Asked, frozen=True, kw_only=True):
    """`epoch`, `preemptions`, `deaths` and `executed_s` go on record, for when it comes back: its time limit counts
    what it has executed in all.
    """

    id: int
    epoch: int
    preemptions: int
    deaths: int
    executed_s: float


class Reject(Asked, frozen=True, kw_only=True):
    """`wait_s` is a guess at how long until there is room; `retry_at_s` when a probe is due, None while one is out."""

    id: int
    refusal: Refusal
    depth: int = 0
    wait_s: float = 0.0
    retry_at_s: float | None = None


class Grant(Asked, frozen=True, kw_only=True):
    tenant: str
    host: str
    credits: int


class StartBeat(Asked, frozen=True, kw_only=True):
    name: str
    epoch: int


class KillBeat(Asked, frozen=True, kw_only=True):
    name: str
    epoch: int


class SkipBeat(Asked, frozen=True, kw_only=True):
    """`skips` in a row by now."""

    name: str
    skips: int
    why: Why
    reading: Reading | None = None


class Reclaim(Asked, frozen=True, kw_only=True):
    host: str


class Note(Asked, frozen=True, kw_only=True):
    """`subject` is a host, a heartbeat or a kind of task."""

    notice: Notice
    subject: str
    reading: Reading | None = None


Command: TypeAlias = (
    Start | Preempt | Kill | Skip | Settle | Park | Reject | Grant | StartBeat | KillBeat | SkipBeat | Reclaim | Note
)
