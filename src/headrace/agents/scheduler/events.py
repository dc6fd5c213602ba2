"""The events that the scheduler takes and the commands that it returns, as plain values, for one host or many.

    event (each has `now_s`)                      usual commands
    HostJoined                                    StartRun
    HostLeaving                                   none: its runs end there, others start elsewhere
    HostLost                                      StartRun elsewhere for its runs, or EndRun
    Submitted                                     StartRun now or later; or RejectRun, and nothing more for this id
    Cancelled                                     KillRun; EndRun where the run was waiting
    PriorityRaised                                SetPriority for the run and its children; StartRun, PreemptRun
    AttemptStarted, StepJournaled                 none: preemption chooses by them
    EffectStarting, EffectEnded                   none: a run inside a side effect is not preempted
    WaitBegan                                     StartRun for another: the slot is free while its runs wait
    WaitOver                                      ResumeRun, now or when a slot is free
    AttemptEnded                                  EndRun; ParkRun; or StartRun later (preempted, lost, out of memory)
    MemoryMeasured                                StartRun, PreemptRun, KillRun, SkipRun, Reclaim, GrantPermits
    MemoryWanted                                  PreemptRun, KillRun for a lower one, before this one meets its limit
    SurveyOpened, SurveyUsage, SurveyClosed       GrantPermits: the survey's new total; a lower one revokes permits
    HeartbeatAdded, HeartbeatRemoved, -Ended      StartHeartbeat
    Tick                                          StartHeartbeat, SkipHeartbeat, KillHeartbeat, KillRun (timeout),
                                                  DropHost (silence)
    Closing                                       PreemptRun for what runs, ParkRun for what waits: all goes on later

    command          what the engine does
    StartRun         runs attempt `epoch` on `host` with `memory_bytes` lent to it; sends AttemptStarted
    PreemptRun       stops the attempt at its next step, or where it is not patient after the grace period; sends
                     AttemptEnded
    KillRun          stops the attempt at once; sends AttemptEnded
    ResumeRun        gives the run what it waited for: it computes again
    SkipRun          records that memory pressure keeps a LOW run waiting; once in each episode of pressure
    RecordShortage   records, once for each run, that it waits for memory that is in use outside of all runs
    EndRun           records how the run ended: once for each accepted submission that was not parked
    ParkRun          leaves the run on disk only; Submitted with its epoch brings it back
    SetPriority      records the run's priority; where it runs, memory is lent to it by that
    ReserveLess      lends to others what the run's slot was promised beyond `memory_bytes`
    RejectRun        refuses the submission, with the reason
    GrantPermits     sets how many interviews the survey may have in flight
    StartHeartbeat, KillHeartbeat, SkipHeartbeat: the same for heartbeats, by name
    Reclaim          collects garbage, returns free memory to the system, measures again
    DropHost         ends the connection to a host that fell silent, and what it may still run: HostLost is not needed
    RecordNotice     records what happened

The scheduler ignores events of an attempt that was replaced (an older epoch) or has ended. Each start of a run, by this
controller or an earlier one, has a higher epoch than the start before. A child runs in its parent's slot and worker,
with its parent's priority and memory; an isolated one has a slot of its own, at its parent's place in the queue. A run
that waits for a model, a program or an isolated child keeps its worker and gives its slot away. One that waits for a
time or a message ends its attempt as parked: it holds neither slot nor memory, and comes back by `Submitted`.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from headrace.exit_causes import ExitCause
from headrace.limits import KindBreaker, MemoryLimits
from headrace.memory.governor import Pressure
from headrace.priority import Priority


class Refusal(Enum):
    """Why a submission was not accepted."""

    QUEUE_FULL = "queue full"
    CIRCUIT_OPEN = "this kind of task fails"
    BUDGET_TOO_SMALL = "it declares more memory than the budget has beside an idle engine"
    ALREADY_KNOWN = "it is waiting or running"
    CLOSING = "the engine is closing"


class StopReason(Enum):
    """Why something was stopped or skipped."""

    PRESSURE = "memory pressure"
    EMERGENCY = "memory is nearly exhausted"
    MAKES_ROOM = "makes room for work of a higher priority"
    OTHERS_NEED_IT = "a run that goes before it is about to meet its memory limit"
    CANCELLED = "cancelled"
    TIMED_OUT = "time limit"
    WITH_PARENT = "its parent stopped"
    PARENT_LOST = "its parent, in the same worker, was lost for good"
    PROMISED_BEFORE = "a run that goes before it was promised the memory that it holds while it waits"
    FOR_CHILD = "its child ran out of memory, and is tried again with it and more memory"
    FOR_ISOLATED_CHILD = "the isolated child that it waits for needs its memory"
    HOST_LOST = "its host was lost"
    CLOSING = "the engine is closing"
    STILL_RUNNING = "the last beat is still running"
    LANE_FULL = "other heartbeats took its whole period"


# What work of a higher priority lacked, behind MAKES_ROOM in an event's reason.
SLOT_LACKED, MEMORY_LACKED = ", which lacked a slot", ", which lacked memory"
# How the reasons of events begin, or end behind a heartbeat's name, that memory did not cause.
NOT_FOR_MEMORY = (
    f"{StopReason.MAKES_ROOM.value}{SLOT_LACKED}",
    StopReason.CANCELLED.value,
    StopReason.TIMED_OUT.value,
    StopReason.WITH_PARENT.value,
    StopReason.PARENT_LOST.value,
    StopReason.HOST_LOST.value,
    StopReason.CLOSING.value,
    StopReason.STILL_RUNNING.value,
    StopReason.LANE_FULL.value,
)


class Notice(Enum):
    """Events worth recording that no command shows."""

    LEVEL = "the memory level changed"
    NEW_ZERO = "memory that no work holds became the new zero"
    MEASURED = "the first run of a kind has shown what it needs"
    IMPOSSIBLE_READING = "a host sends memory readings that cannot be"
    CIRCUIT_OPENED = "a kind of task is refused for a while"
    CIRCUIT_CLOSED = "a kind of task is accepted again"


class MemoryReading(Struct, frozen=True):
    """The memory reading that a decision was based on."""

    host: str
    used_bytes: int
    budget_bytes: int
    zero_bytes: int
    pressure: Pressure


class _TimedEvent(Struct, frozen=True, kw_only=True, gc=False):
    now_s: float


class HostJoined(_TimedEvent, frozen=True, kw_only=True):
    """`kept_back_bytes` is what each worker that computes may pass its limit by, before it is killed: of no use to
    any run. A host without slots takes surveys only. One of which no reading comes for `silent_after_s` is lost; None
    for one that cannot fall silent, as this process. One that joins again has lost what it had.
    """

    host: str
    slots: int
    limits: MemoryLimits
    kept_back_bytes: int = 0
    silent_after_s: float | None = None


class HostLeaving(_TimedEvent, frozen=True, kw_only=True):
    """A host takes no more starts. Its runs go on and end there; HostLost follows when it is gone."""

    host: str


class HostLost(_TimedEvent, frozen=True, kw_only=True):
    """A host is gone: all its runs are lost at once, its surveys are closed."""

    host: str


class Submitted(_TimedEvent, frozen=True, kw_only=True):
    """`epoch`, `preemptions`, `deaths` and `executed_s` come from the file, for a run that was here before: one with an
    epoch has started before, and the circuit of its kind neither refuses nor holds it. A run that `retries_oom` is
    tried once more, with more memory, after it ran out of it. `breaker` is its kind's.
    """

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
    is_isolated: bool = False  # a child with a slot of its own
    retries_oom: bool = True
    breaker: KindBreaker = "engine"


class Cancelled(_TimedEvent, frozen=True, kw_only=True):
    id: int


class PriorityRaised(_TimedEvent, frozen=True, kw_only=True):
    """The run was submitted again with a higher priority. A lower one than it has changes nothing."""

    id: int
    priority: Priority


class AttemptStarted(_TimedEvent, frozen=True, kw_only=True):
    id: int
    epoch: int


class EffectStarting(_TimedEvent, frozen=True, kw_only=True):
    """A side effect begins; others of the same run may be in flight beside it."""

    id: int
    epoch: int


class EffectEnded(_TimedEvent, frozen=True, kw_only=True):
    """A side effect is over: its result is journaled, or it raised."""

    id: int
    epoch: int


class WaitBegan(_TimedEvent, frozen=True, kw_only=True):
    """Nothing in the run's slot computes: all of its runs wait for models, programs or isolated children."""

    id: int
    epoch: int


class WaitOver(_TimedEvent, frozen=True, kw_only=True):
    """What a run of the slot waited for is there: it wants to compute again."""

    id: int
    epoch: int


class StepJournaled(_TimedEvent, frozen=True, kw_only=True):
    """A step or a checkpoint is journaled."""

    id: int
    epoch: int


class AttemptEnded(_TimedEvent, frozen=True, kw_only=True):
    """`peak_bytes` is the most memory that the attempt was seen to use, 0 where it was not measured; `limit_bytes` the
    limit that its worker had when it ran out of memory, 0 where it had none. A loss that is not `is_own` says nothing
    about the run: all workers ended with the warden.
    `is_endpoints`: it failed because a model could not be reached or used, for which the model's endpoint has a breaker
    of its own.
    """

    id: int
    epoch: int
    cause: ExitCause
    peak_bytes: int = 0
    limit_bytes: int = 0
    is_own: bool = True
    is_endpoints: bool = False


class MemoryMeasured(_TimedEvent, frozen=True, kw_only=True):
    """`budget_bytes` is the budget in effect, None for the host's limit. `by_run` is the memory of each run, where runs
    are measured one by one; children share a worker with their parent, and one entry may stand for all of them.
    `lendable_bytes` is what all workers together may be lent, None where none is held to a limit.
    """

    host: str
    used_bytes: int
    budget_bytes: int | None = None
    by_run: tuple[tuple[int, int], ...] = ()
    lendable_bytes: int | None = None


class MemoryWanted(_TimedEvent, frozen=True, kw_only=True):
    """The run's worker is nearly full, and there is nothing left to lend to it. `is_urgent`: it is about to meet its
    limit.
    """

    id: int
    epoch: int
    is_urgent: bool = False


class SurveyOpened(_TimedEvent, frozen=True, kw_only=True):
    """A survey opens on one host. It wants `wanted` permits; an interview takes `permit_bytes`."""

    survey: str
    host: str
    wanted: int
    priority: Priority = Priority.NORMAL
    permit_bytes: int = 0


class SurveyUsage(_TimedEvent, frozen=True, kw_only=True):
    survey: str
    in_use: int
    permit_bytes: int


class SurveyClosed(_TimedEvent, frozen=True, kw_only=True):
    survey: str


class HeartbeatAdded(_TimedEvent, frozen=True, kw_only=True):
    """`jitter` (0 to 1) is the moment within its period when it runs."""

    name: str
    host: str
    every_s: float
    limit_s: float
    jitter: float


class HeartbeatRemoved(_TimedEvent, frozen=True, kw_only=True):
    name: str


class HeartbeatEnded(_TimedEvent, frozen=True, kw_only=True):
    name: str
    epoch: int


class Tick(_TimedEvent, frozen=True, kw_only=True):
    """Time has passed. Due at `Scheduler.next_tick_s`; earlier or later does no harm."""


class Closing(_TimedEvent, frozen=True, kw_only=True):
    pass


SchedulerEvent: TypeAlias = (
    HostJoined
    | HostLeaving
    | HostLost
    | Submitted
    | Cancelled
    | PriorityRaised
    | AttemptStarted
    | StepJournaled
    | EffectStarting
    | EffectEnded
    | WaitBegan
    | WaitOver
    | AttemptEnded
    | MemoryMeasured
    | MemoryWanted
    | SurveyOpened
    | SurveyUsage
    | SurveyClosed
    | HeartbeatAdded
    | HeartbeatRemoved
    | HeartbeatEnded
    | Tick
    | Closing
)


class _Command(Struct, frozen=True, kw_only=True, gc=False):
    """Neither commands nor events can be part of a reference cycle, so the garbage collector does not track them."""


class StartRun(_Command, frozen=True, kw_only=True):
    """`slot` is one number for a run and its children. `preemptions` and `deaths` go to the file, for after a crash."""

    id: int
    epoch: int
    host: str
    memory_bytes: int
    slot: int = 0
    is_alone: bool = False
    preemptions: int = 0
    deaths: int = 0


class NeedsRoom(_Command, frozen=True, kw_only=True):
    """The run that others stop for: it lacks a slot, or memory."""

    id: int
    lacks_slot: bool = False


class PreemptRun(_Command, frozen=True, kw_only=True):
    """Where it `is_patient`, the attempt has no deadline: the step that it is in is not cut. A second command, with a
    deadline, may follow.
    """

    id: int
    epoch: int
    host: str
    why: StopReason
    reading: MemoryReading | None = None
    is_patient: bool = False
    for_whom: NeedsRoom | None = None


class KillRun(_Command, frozen=True, kw_only=True):
    id: int
    epoch: int
    host: str
    why: StopReason
    reading: MemoryReading | None = None
    for_whom: NeedsRoom | None = None


class ResumeRun(_Command, frozen=True, kw_only=True):
    """Sent once for each WaitOver, unless the attempt ends before. Where it `is_short`, the run goes on with less than
    it was promised: nothing else computes, and other runs that wait hold the rest.
    """

    id: int
    epoch: int
    is_short: bool = False


class SkipRun(_Command, frozen=True, kw_only=True):
    id: int
    why: StopReason
    reading: MemoryReading | None = None


class RecordShortage(_Command, frozen=True, kw_only=True):
    """The run needs more than the budget has for it even beside nothing else: `room_bytes` now, `best_room_bytes` at
    best, since its host joined.
    """

    id: int
    needs_bytes: int
    room_bytes: int
    best_room_bytes: int
    reading: MemoryReading


class EndRun(_Command, frozen=True, kw_only=True):
    """`shortage` is the memory that was lacking, where the run ends as BUDGET_TOO_SMALL."""

    id: int
    epoch: int
    cause: ExitCause
    shortage: RecordShortage | None = None


class ParkRun(_Command, frozen=True, kw_only=True):
    """`epoch`, `preemptions`, `deaths` and `executed_s` go to the file, for when the run comes back: its timeout counts
    all seconds that it has executed.
    """

    id: int
    epoch: int
    preemptions: int
    deaths: int
    executed_s: float


class SetPriority(_Command, frozen=True, kw_only=True):
    id: int
    epoch: int
    priority: Priority


class ReserveLess(_Command, frozen=True, kw_only=True):
    """The slot of this run was promised more than runs of its kind need: the rest may be lent to others."""

    id: int
    epoch: int
    memory_bytes: int


class RejectRun(_Command, frozen=True, kw_only=True):
    """`wait_s` estimates how long until there is room; `retry_at_s` is when a probe is due, None while those there may
    be are in flight.
    """

    id: int
    refusal: Refusal
    depth: int = 0
    wait_s: float = 0.0
    retry_at_s: float | None = None


class GrantPermits(_Command, frozen=True, kw_only=True):
    survey: str
    host: str
    permits: int


class StartHeartbeat(_Command, frozen=True, kw_only=True):
    name: str
    epoch: int


class KillHeartbeat(_Command, frozen=True, kw_only=True):
    name: str
    epoch: int


class SkipHeartbeat(_Command, frozen=True, kw_only=True):
    """`skips` counts the periods skipped in a row."""

    name: str
    skips: int
    why: StopReason
    reading: MemoryReading | None = None


class DropHost(_Command, frozen=True, kw_only=True):
    host: str


class Reclaim(_Command, frozen=True, kw_only=True):
    host: str


class RecordNotice(_Command, frozen=True, kw_only=True):
    """`subject` is a host or a kind of run."""

    notice: Notice
    subject: str
    reading: MemoryReading | None = None


SchedulerCommand: TypeAlias = (
    StartRun
    | PreemptRun
    | KillRun
    | ResumeRun
    | SkipRun
    | RecordShortage
    | EndRun
    | ParkRun
    | SetPriority
    | ReserveLess
    | RejectRun
    | GrantPermits
    | StartHeartbeat
    | KillHeartbeat
    | SkipHeartbeat
    | DropHost
    | Reclaim
    | RecordNotice
)
