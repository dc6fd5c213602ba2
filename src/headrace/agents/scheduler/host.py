"""One memory budget and what holds it. Covers: charges, whether one more run fits, the floor that becomes a new zero.

Does not cover: who is next (agents.scheduler.run_queue), or who has to go (agents.scheduler.preemption).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import GrantPermits, MemoryMeasured, MemoryReading
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.survey_permits import HostSurveys, SurveyThrottle
from headrace.limits import MemoryLimits
from headrace.memory.governor import NO_PRESSURE, Governor, Pressure
from headrace.priority import CRITICAL, Priority

# The lowest priority that may start at each level.
_ADMITTED = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL)


class Host:
    """`floor_bytes` is what was in use when nothing ran: the controller, its caches, what was never given back."""

    def __init__(self, name: str, slots: int, limits: MemoryLimits, turn_s: float) -> None:
        self.name = name
        self.slot_count = slots
        self.limits = limits
        self.governor = Governor(limits)
        self.slots: dict[int, Slot] = {}  # by number; at most `slots`
        self.surveys = HostSurveys(name, turn_s)
        self.throttle = SurveyThrottle.NONE
        self.used_bytes = 0
        self.floor_bytes = 0
        self.preempted_at_s: float | None = None
        self._was_reclaimed = False
        self._charged_bytes = 0  # to runs
        self._alone = 0

    @property
    def pressure(self) -> Pressure:
        return self.governor.pressure

    def slots_now(self) -> int:
        """Fewer under pressure, and one above a floor that never falls."""
        governor = self.governor
        if governor.zero_bytes:
            return 1
        return self.slot_count if governor.pressure is NO_PRESSURE else max(1, self.slot_count // 2)

    @property
    def whole_room_bytes(self) -> int:
        """What a run could have here if it were alone."""
        return self.governor.budget_bytes - self.floor_bytes

    def room_beside_surveys_bytes(self) -> int:
        """The same where each survey goes on with one permit."""
        return self.governor.budget_bytes - self.floor_bytes - self.surveys.least_bytes

    def room_bytes(self) -> int:
        """By what runs may use or by what is really in use, whichever leaves less; surveys are charged as such."""
        reserved_bytes = self.floor_bytes + self._charged_bytes + self.surveys.charged_bytes
        return self.governor.budget_bytes - max(reserved_bytes, self.used_bytes)

    @property
    def reading(self) -> MemoryReading:
        governor = self.governor
        return MemoryReading(self.name, self.used_bytes, governor.budget_bytes, governor.zero_bytes, governor.pressure)

    def has_alone(self) -> bool:
        return self._alone > 0

    def has_only_one(self) -> bool:
        """Whether nothing but one slot can be blamed for what is in use."""
        return len(self.slots) == 1 and self.surveys.are_at_rest

    def admits_level(self, level: Priority) -> bool:
        return level >= _ADMITTED[self.pressure]

    def admits(self, run: ScheduledRun) -> bool:
        """Whether its level may start, and it may return to the pressure that pushed it out: when that has fallen, or
        the reading has and nobody is there to suffer if it rises again.
        """
        pressure = self.governor.pressure
        if run.priority < _ADMITTED[pressure]:
            return False
        return pressure < run.returns_below or (not self.slots and self.governor.share < self.limits.preempt_until)

    def fits(self, run: ScheduledRun, need_bytes: int, needs_alone: bool) -> bool:
        if not self.slots:
            return need_bytes <= self.room_bytes()
        if needs_alone or len(self.slots) >= self.slots_now():
            return False
        if self._alone and run.priority is not CRITICAL:
            return False
        return need_bytes <= self.room_beside_others_bytes(run)

    def room_beside_others_bytes(self, run: ScheduledRun) -> int:
        """Not what surveys are owed. What was only seen of its kind may be too little: such a run gets no further than
        the level where the next thing would be preemption.
        """
        is_estimate = run.declared_bytes is None and run.priority is not CRITICAL
        return self.room_bytes() - self.surveys.owed_bytes - (self._kept_free_bytes() if is_estimate else 0)

    def enter(self, slot: Slot) -> None:
        self.slots[slot.number] = slot
        slot.charged_bytes = slot.reserved_bytes
        self._charged_bytes += slot.charged_bytes
        self._alone += slot.is_alone
        self._was_reclaimed = False

    def let_others_in(self, slot: Slot) -> None:
        """It has shown what it needs."""
        slot.is_alone = slot.is_alone_until_seen = False
        self._alone -= 1
        self._charged_bytes -= slot.charged_bytes
        slot.charged_bytes = slot.reserved_bytes = max(slot.reserved_bytes, slot.peak_bytes)
        self._charged_bytes += slot.charged_bytes

    def leave(self, slot: Slot, now_s: float) -> None:
        del self.slots[slot.number]
        self._charged_bytes -= slot.charged_bytes
        self._alone -= slot.is_alone
        if slot.pauses_surveys:
            self.surveys.pause_ended(now_s)
        if slot.is_stopping():
            self.preempted_at_s = now_s

    def observe(self, read: MemoryMeasured) -> None:
        governor = self.governor
        self.used_bytes = read.used_bytes
        governor.budget_bytes = min(read.budget_bytes or governor.limits.budget_bytes, governor.limits.budget_bytes)
        self._note_floor(read.used_bytes)
        self._note_runs(read.by_run)
        governor.observe(read.used_bytes, read.now_s)

    def should_reclaim(self) -> bool:
        """Once, when nothing runs and pressure stays: only memory that is held after that is a floor."""
        was_reclaimed, self._was_reclaimed = self._was_reclaimed, True
        return not was_reclaimed

    def is_stuck(self) -> bool:
        """Whether pressure is high with nothing running and is not about to fall."""
        return (
            self.pressure is not NO_PRESSURE
            and not self.slots
            and self.surveys.are_at_rest
            and not self.governor.is_falling
        )

    def start_over(self) -> None:
        self.governor.start_over(self.used_bytes)

    def regrant(self) -> list[GrantPermits]:
        """Surveys grow no further than the level where the next thing would be preemption."""
        if not self.surveys.by_id:
            return []
        return self.surveys.regrant(self.pressure, self._throttled(), self.room_bytes() - self._kept_free_bytes())

    def _kept_free_bytes(self) -> int:
        return int(self.governor.budget_bytes * (1 - self.limits.preempt_at))

    def _throttled(self) -> SurveyThrottle:
        if any(slot.pauses_surveys for slot in self.slots.values()):
            return SurveyThrottle.PAUSE
        if self.governor.zero_bytes or self.has_alone():
            return max(SurveyThrottle.ONE_PERMIT, self.throttle)
        return self.throttle

    def _note_floor(self, used_bytes: int) -> None:
        own_bytes = max(0, used_bytes - self.surveys.in_use_bytes)
        self.floor_bytes = min(own_bytes, self.floor_bytes) if self.slots else own_bytes
        governor = self.governor
        if used_bytes < governor.limits.shrink_until * governor.budget_bytes:
            governor.zero_bytes = 0
        else:
            governor.zero_bytes = min(governor.zero_bytes, used_bytes)

    def _note_runs(self, by_run: tuple[tuple[int, int], ...]) -> None:
        if by_run:
            used = dict(by_run)
            for slot in self.slots.values():
                _note_use(slot, sum(used.get(member, 0) for member in slot.running))
        elif self.has_only_one():  # nobody can tell runs apart here, but there is only one
            _note_use(next(iter(self.slots.values())), self.used_bytes - self.floor_bytes)
        elif any(slot.root.declared_bytes is None for slot in self.slots.values()):
            self._note_together(self.used_bytes - self.floor_bytes - self.surveys.in_use_bytes)
        else:
            return  # what is declared needs no learning
        self._charged_bytes = sum(slot.charged_bytes for slot in self.slots.values())

    def _note_together(self, in_use_bytes: int) -> None:
        """Nobody can tell who uses how much; but where all use more than they were promised, on average each does. A
        kind whose first run was a small one would otherwise stay small for good.
        """
        slots = list(self.slots.values())
        promised_bytes = sum(slot.reserved_bytes for slot in slots)
        is_more = in_use_bytes > promised_bytes > 0
        for slot in slots:
            _note_use(slot, in_use_bytes * slot.reserved_bytes // promised_bytes if is_more else 0)


def _note_use(slot: Slot, in_use_bytes: int) -> None:
    slot.in_use_bytes = max(0, in_use_bytes)
    slot.charged_bytes = max(slot.in_use_bytes, slot.reserved_bytes)
    slot.peak_bytes = max(slot.peak_bytes, in_use_bytes)
