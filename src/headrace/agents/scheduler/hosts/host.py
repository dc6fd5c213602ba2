"""`Host`: the slots and surveys that share one memory budget. Covers: whether a run may start here, entering, leaving.

Does not cover: how much memory is left (`host_budget`), which run is next (`run_queue`), which must stop
(`preemption`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.agents.scheduler.events import GrantPermits, MemoryReading
from headrace.agents.scheduler.hosts.host_budget import HostBudget
from headrace.agents.scheduler.hosts.survey_permits import HostSurveys, SurveyThrottle
from headrace.agents.scheduler.ordered_line import Entry
from headrace.agents.scheduler.scheduled_runs import RUNNING, ScheduledRun, Slot
from headrace.limits import MemoryLimits, QueueLimits
from headrace.memory.governor import NO_PRESSURE, Pressure
from headrace.priority import CRITICAL, Priority

if TYPE_CHECKING:
    from headrace.agents.scheduler.hosts.needs import Need

# The lowest priority that may start at each level.
LOWEST_ADMITTED = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL)


class Host:
    """`throttle` is how far surveys must give way to the run that is next; `preempted_at_s` when a slot that
    was told to stop last left; `has_unread_exit` whether no reading came since. `claims` are runs that fit nowhere yet
    and wait for this host, in their order in the queue: no run behind the first of them starts here. `heard_s` is when
    the last reading that could be believed was taken.
    """

    def __init__(
        self,
        name: str,
        slots: int,
        limits: MemoryLimits,
        queue_limits: QueueLimits,
        kept_back_bytes: int = 0,
        silent_after_s: float | None = None,
        now_s: float = 0.0,
    ) -> None:
        self.name = name
        self.number = 0  # of all that have joined
        self.slot_count = slots
        self.limits = limits
        self.silent_after_s = silent_after_s
        self.heard_s = now_s
        self.claims: list[Entry] = []
        self._changed: dict[int, Host] = {}
        self.slots: dict[int, Slot] = {}  # by number; at most `slot_count` of them compute, the others wait
        self.computing = 0
        self.resuming: dict[int, Slot] = {}  # of those that wait, the ones that could go on
        # Kept beside `slots`, since most events ask for them and a look at each slot takes microseconds:
        self.stopping: dict[int, Slot] = {}  # those that were told to stop
        self.per_priority = [0] * len(Priority)  # how many there are of each
        self.idle_since_s: float | None = None  # since when slots wait and none computes
        self.kept_for: Priority | None = None  # whose promise room is being made for: no start up to it takes that
        self.surveys = HostSurveys(name, queue_limits.aging_s)
        self.memory = HostBudget(limits, self.slots, self.surveys, queue_limits, kept_back_bytes)
        self.governor = self.memory.governor
        self.throttle = SurveyThrottle.NONE
        self.preempted_at_s: float | None = None
        self.has_unread_exit = False
        self.is_leaving = False  # its runs go on and end here, and no other starts
        self.is_lost = False
        self.is_disbelieved = False  # its last reading was impossible
        self.is_read_anew = True  # since it was last ranked
        self._alone = 0

    @property
    def pressure(self) -> Pressure:
        return self.governor.pressure

    @property
    def reading(self) -> MemoryReading:
        governor = self.governor
        return MemoryReading(
            self.name, self.memory.used_bytes, governor.budget_bytes, governor.zero_bytes, governor.pressure
        )

    def slots_now(self) -> int:
        """How many slots may be in use: fewer under pressure, one above a floor that never falls."""
        governor = self.governor
        if governor.has_started_over:
            return 1
        return self.slot_count if governor.pressure is NO_PRESSURE else max(1, self.slot_count // 2)

    def admits(self, run: ScheduledRun) -> bool:
        """Whether the run's level may start. A run that pressure stopped must wait until that level is left, or
        until the reading has fallen and no other run would suffer if it rises again.
        """
        pressure = self.governor.pressure
        if run.priority < LOWEST_ADMITTED[pressure]:
            return False
        return pressure < run.returns_below or (not self.slots and self.governor.share < self.limits.preempt_until)

    def fits(self, run: ScheduledRun, need: Need, leaving: Sequence[Slot] = ()) -> bool:
        """Whether a run may start here now, or once some of the slots have been left."""
        need_bytes, left, alone = need.memory_bytes, len(self.slots), self._alone
        for slot in leaving:
            need_bytes -= slot.charged_bytes
            if not slot.is_waiting and self.memory.has_limits:
                need_bytes -= self.memory.kept_back_bytes
            left -= 1
            alone -= slot.is_alone
        if not left:
            return need_bytes <= self.memory.room_bytes()
        if need.is_alone or not self.has_free_slot(leaving):
            return False
        if alone and run.priority is not CRITICAL and not self._is_waited_for(run):
            return False
        return need_bytes <= self.memory.room_beside_others_bytes(is_estimate=need.is_estimate)

    def has_below(self, level: Priority) -> bool:
        """Whether a slot of a lower priority is here."""
        return any(self.per_priority[:level])

    def enter_index(self, number: int, changed: dict[int, Host]) -> None:
        """Note changes there from now on."""
        self.number, self._changed = number, changed
        self.touch()

    def touch(self) -> None:
        """Note that what can be decided about this host has changed."""
        self._changed[self.number] = self

    def has_free_slot(self, leaving: Sequence[Slot] = ()) -> bool:
        computing = self.computing
        for slot in leaving:
            computing -= not slot.is_waiting
        return computing < self.slots_now()

    def enter(self, slot: Slot) -> None:
        self._changed[self.number] = self
        if self._alone:
            for other in self.slots.values():
                other.was_joined = True
        self.slots[slot.number] = slot
        self.per_priority[slot.root.priority] += 1
        self.computing += 1
        self.memory.charge(slot)
        self._alone += slot.is_alone

    def begin_wait(self, slot: Slot) -> None:
        self._changed[self.number] = self
        slot.is_waiting = True
        self.computing -= 1
        self.memory.waiting += 1
        self.memory.charge_anew(slot)

    def end_wait(self, slot: Slot) -> None:
        self._changed[self.number] = self
        slot.is_waiting, slot.wait_over_s = False, 0.0
        self.resuming.pop(slot.number, None)
        slot.is_short = not self.has_memory_to_resume(slot)
        self.computing += 1
        self.memory.waiting -= 1
        self.memory.charge_anew(slot)

    def has_memory_to_resume(self, slot: Slot, leaving: Sequence[Slot] = ()) -> bool:
        """Whether a slot that waits could have the memory that it was promised now, or once others that wait left."""
        freed_bytes = sum([other.charged_bytes for other in leaving])
        return self.memory.more_to_resume_bytes(slot) - freed_bytes <= self.memory.room_bytes()

    def leave(self, slot: Slot, now_s: float) -> None:
        self._changed[self.number] = self
        del self.slots[slot.number]
        self.per_priority[slot.root.priority] -= 1
        if slot.is_waiting:
            self.resuming.pop(slot.number, None)
        self.computing -= not slot.is_waiting
        self.memory.release(slot)
        self._alone -= slot.is_alone
        if slot.pauses_surveys:
            self.surveys.pause_ended(now_s)
        if slot.stop_sent_s is not None:
            del self.stopping[slot.number]
            self.preempted_at_s, self.has_unread_exit = now_s, True

    def note_stop(self, slot: Slot, now_s: float) -> None:
        """The slot is told to stop."""
        self._changed[self.number] = self
        slot.stop_sent_s = now_s
        self.stopping[slot.number] = slot

    def note_priority(self, slot: Slot, before: Priority) -> None:
        """The slot had another priority before."""
        self._changed[self.number] = self
        self.per_priority[before] -= 1
        self.per_priority[slot.priority] += 1

    @property
    def is_stuck(self) -> bool:
        """Whether pressure is high with nothing running and is not about to fall."""
        is_idle = not self.slots and self.surveys.are_at_rest
        return is_idle and self.pressure is not NO_PRESSURE and not self.governor.is_falling

    def regrant(self) -> list[GrantPermits]:
        """Set the surveys' permits by the last reading: they leave free what is above `preempt_at`."""
        if not self.surveys.by_id:
            return []
        room_bytes = self.memory.room_bytes() - self.memory.kept_free_bytes
        return self.surveys.regrant(self.pressure, self._throttled(), room_bytes)

    def _is_waited_for(self, run: ScheduledRun) -> bool:
        """Whether the run that is alone here waits for this one, its isolated child."""
        parent = run.parent if run.is_isolated else None
        if parent is None or parent.phase is not RUNNING or parent.slot is None:
            return False
        return parent.slot.is_waiting

    def _throttled(self) -> SurveyThrottle:
        if self.is_leaving or any(slot.pauses_surveys for slot in self.slots.values()):
            return SurveyThrottle.PAUSE
        if self.governor.has_started_over or self._alone:
            return max(SurveyThrottle.ONE_PERMIT, self.throttle)
        return self.throttle
