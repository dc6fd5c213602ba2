"""One run and one slot of runs, as the scheduler keeps them. Covers: their data. Does not cover: any decision.

Structs: some are made for every run, and a dataclass takes twice the time.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from headrace.agents.scheduler.events import StopReason
from headrace.memory.governor import Pressure
from headrace.priority import Priority

NEVER_KEPT_OUT = Pressure.EMERGENCY + 1


class RunPhase(Enum):
    WAITING = "waiting"
    HELD = "held"  # by the circuit of its kind, or by a parent that is not running
    RUNNING = "running"


# By themselves, like others that most decisions ask for: in Python 3.11 a look into the enum takes two calls' time.
WAITING, HELD, RUNNING = RunPhase.WAITING, RunPhase.HELD, RunPhase.RUNNING


class ScheduledRun(Struct, eq=False):
    """`submitted_s` and `arrival` stay what they first were: a run that comes back keeps its place in line."""

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
    phase: RunPhase = WAITING
    slot: Slot | None = None
    started_s: float | None = None
    executed_s: float = 0.0
    has_progress: bool = False
    side_effects: int = 0  # under way now
    stopping: StopReason | None = None
    is_probe: bool = False
    returns_below: int = NEVER_KEPT_OUT  # a level of pressure that pushed it out, and where it does not come back
    out_since_s: float = 0.0  # when that was
    hopeless_since_s: float | None = None
    skipped_in: int = 0  # the latest episode of pressure in which it was told so
    parent: ScheduledRun | None = None
    held_by: ScheduledRun | None = None  # the one it starts with
    children: dict[int, ScheduledRun] = {}  # those that wait for it to run again

    @property
    def has_died(self) -> bool:
        """Whether it ran out of memory, or one that starts with it did."""
        if self.deaths or not self.children:
            return self.deaths > 0
        return any(child.deaths for child in self.children.values())


class Slot(Struct, eq=False):
    """What holds one slot: a run and its children. The root may end first; the slot stays until the last one ends."""

    root: ScheduledRun
    host: str
    number: int
    started_s: float
    reserved_bytes: int
    is_alone: bool
    is_alone_until_seen: bool
    pauses_surveys: bool
    is_after_death: bool  # alone, and with all there is
    charged_bytes: int = 0  # to its host: what is reserved, or in use where that is more
    in_use_bytes: int = 0
    peak_bytes: int = 0
    stop_sent_s: float | None = None
    was_killed: bool = False
    running: dict[int, ScheduledRun] = {}

    @property
    def priority(self) -> Priority:
        return self.root.priority

    @property
    def leader(self) -> ScheduledRun:
        """The root, or where that has ended, the first of those it left."""
        return self.root if self.root.id in self.running else next(iter(self.running.values()), self.root)

    def is_stopping(self) -> bool:
        return self.stop_sent_s is not None
