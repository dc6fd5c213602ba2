"""A run and a slot as the scheduler holds them: `ScheduledRun`, `Slot`. Does not cover: any decision.

Both are msgspec structs: one of each is made for every run, and a dataclass takes twice the time.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.agents.scheduler.events import StopReason
from headrace.memory.governor import Pressure
from headrace.priority import Priority

if TYPE_CHECKING:
    from headrace.agents.scheduler.hosts.host import Host

NEVER_KEPT_OUT = Pressure.EMERGENCY + 1


class RunPhase(Enum):
    WAITING = "waiting"
    HELD = "held"  # by the circuit of its kind, or by a parent that is not running
    RUNNING = "running"


# Module constants, since most decisions read them: in Python 3.11, `RunPhase.HELD` costs as much as two calls.
WAITING, HELD, RUNNING = RunPhase.WAITING, RunPhase.HELD, RunPhase.RUNNING


class ScheduledRun(Struct, eq=False):
    """`submitted_s` and `arrival` never change. `queued_s` is where its age counts from, which makes its place in the
    queue: a run that comes back keeps it, except for the time that it ran ahead of higher ones or until it made room.
    """

    id: int
    kind: str
    priority: Priority
    declared_bytes: int | None
    limit_s: float | None
    submitted_s: float
    arrival: int
    epoch: int
    preemptions: int
    deaths: int
    losses: int = 0
    warden_ends: int = 0  # in a row, of attempts in which it computed and journaled nothing
    phase: RunPhase = WAITING
    slot: Slot | None = None
    started_s: float | None = None
    executed_s: float = 0.0
    has_progress: bool = False
    side_effects: int = 0  # in flight
    stopping: StopReason | None = None
    retries_oom: bool = True
    needs_bytes: int = 0  # more than its kind is known to: others had the memory that it needed
    returns_below: int = NEVER_KEPT_OUT  # the pressure level that stopped it, below which it may start again
    out_since_s: float = 0.0  # when it was submitted, or came back
    too_large_bytes: int = 0  # in the queue: what it needs, which no host has now even beside nothing else
    is_shortage_told: bool = False
    skipped_in: int = 0  # the latest episode of pressure in which it was recorded as skipped
    parent: ScheduledRun | None = None
    held_by: ScheduledRun | None = None  # the ancestor that it starts with
    children: dict[int, ScheduledRun] = {}  # those that start with it
    is_isolated: bool = False  # a child with a slot of its own
    isolated_children: dict[int, ScheduledRun] = {}  # those that have not ended
    queued_s: float = 0.0
    is_blameless: bool = False  # its end says nothing of its kind: a model's endpoint failed, or its parent was lost
    is_aside: bool = False  # in the queue: it needs more than others leave, and lets them pass for a while
    claim: Host | None = None  # in the queue: the host that it waits for, while others start elsewhere

    @property
    def has_died(self) -> bool:
        """Whether the run, or a child that starts with it, ran out of memory."""
        if self.deaths or not self.children:
            return self.deaths > 0
        return any(child.deaths for child in self.children.values())

    @property
    def known_need_bytes(self) -> int:
        """What the run and the children that start with it need, where others had that memory before."""
        if not self.children:
            return self.needs_bytes
        return max(self.needs_bytes, *(child.needs_bytes for child in self.children.values()))


class Slot(Struct, eq=False):
    """A run (`root`) and its children, in one worker. The root may end first; the last one to end frees the slot.

    While all of them wait, for models, programs or isolated children, it `is_waiting`: it keeps its memory, and another
    may compute in its place.
    """

    root: ScheduledRun
    host: str
    number: int
    started_s: float
    reserved_bytes: int
    is_alone: bool
    pauses_surveys: bool
    is_after_death: bool  # after a run in it ran out of memory: with more
    charged_bytes: int = 0  # of its host's budget: what is reserved, or in use where that is more
    in_use_bytes: int = 0
    peak_bytes: int = 0
    stop_sent_s: float | None = None
    was_killed: bool = False
    is_waiting: bool = False
    wait_over_s: float = 0.0  # since when one of its runs could go on; 0 while none can
    resuming: dict[int, ScheduledRun] = {}  # of its runs, those that could go on
    running: dict[int, ScheduledRun] = {}
    is_patient: bool = False  # its runs were told to stop at their next step, however long that takes
    is_estimate: bool = False  # what it reserved at its start
    promised_bytes: int = 0  # the same, however it has grown since
    was_joined: bool = False  # though it is alone, by CRITICAL work or a child
    steady_bytes: int = 0  # its use when it last grew noticeably
    steady_since_s: float = 0.0
    is_measured: bool = False
    is_short: bool = False  # it went on after its last wait with less memory than it was promised
    keeps_until_s: float = 0.0  # its age gave it a turn before higher ones: until then, it makes room for CRITICAL only

    @property
    def priority(self) -> Priority:
        return self.root.priority

    @property
    def leader(self) -> ScheduledRun:
        """The root, or where that has ended, the first of the children that still run."""
        return self.root if self.root.id in self.running else next(iter(self.running.values()), self.root)

    @property
    def is_promised(self) -> bool:
        """Whether what it started with is a promise: declared, or reserved for a second try."""
        return self.is_after_death or self.root.declared_bytes is not None

    def is_stopping(self) -> bool:
        return self.stop_sent_s is not None

    def could_compute(self) -> bool:
        """Whether a slot that waits has something to compute: a run whose wait is over, or a child that starts."""
        return bool(self.resuming) or (self.stop_sent_s is None and any(run.children for run in self.running.values()))

    def is_inside_effect(self) -> bool:
        for run in self.running.values():  # noqa: SIM110 - any() takes thrice the time where there is one run
            if run.side_effects:
                return True
        return False
