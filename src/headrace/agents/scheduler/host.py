"""One memory budget and what holds it. Covers: charges, whether one more run fits, the floor that becomes a new zero.

Does not cover: who is next (agents.scheduler.waiting), or who has to go (agents.scheduler.preemption).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import Grant, MemoryRead, Reading
from headrace.agents.scheduler.task_states import Family, Task
from headrace.agents.scheduler.tenants import Squeeze, Tenants
from headrace.limits import MemoryLimits
from headrace.memory.governor import CALM, Governor, Pressure
from headrace.priority import CRITICAL, Priority

# The lowest priority that may start at each level.
_ADMITTED = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL)


class Host:
    """`floor_bytes` is what was in use when nothing ran: the controller, its caches, what was never given back."""

    def __init__(self, name: str, slots: int, limits: MemoryLimits, turn_s: float) -> None:
        self.name = name
        self.slots = slots
        self.limits = limits
        self.governor = Governor(limits)
        self.families: dict[int, Family] = {}  # by serial; at most `slots`
        self.tenants = Tenants(name, turn_s)
        self.squeeze = Squeeze.NONE
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
        return self.slots if governor.pressure is CALM else max(1, self.slots // 2)

    @property
    def whole_room_bytes(self) -> int:
        """What a run could have here if it were alone."""
        return self.governor.budget_bytes - self.floor_bytes

    def room_beside_surveys_bytes(self) -> int:
        """The same where each survey goes on with one credit."""
        return self.governor.budget_bytes - self.floor_bytes - self.tenants.least_bytes

    def room_bytes(self) -> int:
        """By what runs may use or by what is really in use, whichever leaves less; surveys are charged as such."""
        reserved_bytes = self.floor_bytes + self._charged_bytes + self.tenants.charged_bytes
        return self.governor.budget_bytes - max(reserved_bytes, self.used_bytes)

    @property
    def reading(self) -> Reading:
        governor = self.governor
        return Reading(self.name, self.used_bytes, governor.budget_bytes, governor.zero_bytes, governor.pressure)

    def has_alone(self) -> bool:
        return self._alone > 0

    def has_only_one(self) -> bool:
        """Whether nothing but one family can be blamed for what is in use."""
        return len(self.families) == 1 and self.tenants.are_at_rest

    def admits_level(self, level: Priority) -> bool:
        return level >= _ADMITTED[self.pressure]

    def admits(self, task: Task) -> bool:
        """Whether its level may start, and it may return to the pressure that pushed it out: when that has fallen, or
        the reading has and nobody is there to suffer if it rises again.
        """
        pressure = self.governor.pressure
        if task.priority < _ADMITTED[pressure]:
            return False
        return pressure < task.returns_below or (not self.families and self.governor.share < self.limits.preempt_until)

    def fits(self, task: Task, need_bytes: int, needs_alone: bool) -> bool:
        if not self.families:
            return need_bytes <= self.room_bytes()
        if needs_alone or len(self.families) >= self.slots_now():
            return False
        if self._alone and task.priority is not CRITICAL:
            return False
        return need_bytes <= self.room_beside_others_bytes(task)

    def room_beside_others_bytes(self, task: Task) -> int:
        """Not what surveys are owed. What was only seen of its kind may be too little: such a run gets no further than
        the level where the next thing would be preemption.
        """
        is_estimate = task.declared_bytes is None and task.priority is not CRITICAL
        return self.room_bytes() - self.tenants.owed_bytes - (self._kept_free_bytes() if is_estimate else 0)

    def enter(self, family: Family) -> None:
        self.families[family.serial] = family
        family.charged_bytes = family.reserved_bytes
        self._charged_bytes += family.charged_bytes
        self._alone += family.is_alone
        self._was_reclaimed = False

    def let_others_in(self, family: Family) -> None:
        """It has shown what it needs."""
        family.is_alone = family.is_alone_until_seen = False
        self._alone -= 1
        self._charged_bytes -= family.charged_bytes
        family.charged_bytes = family.reserved_bytes = max(family.reserved_bytes, family.peak_bytes)
        self._charged_bytes += family.charged_bytes

    def leave(self, family: Family, now_s: float) -> None:
        del self.families[family.serial]
        self._charged_bytes -= family.charged_bytes
        self._alone -= family.is_alone
        if family.pauses_tenants:
            self.tenants.pause_ended(now_s)
        if family.is_stopping():
            self.preempted_at_s = now_s

    def observe(self, read: MemoryRead) -> None:
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
            self.pressure is not CALM
            and not self.families
            and self.tenants.are_at_rest
            and not self.governor.is_falling
        )

    def start_over(self) -> None:
        self.governor.start_over(self.used_bytes)

    def regrant(self) -> list[Grant]:
        """Surveys grow no further than the level where the next thing would be preemption."""
        if not self.tenants.by_id:
            return []
        return self.tenants.regrant(self.pressure, self._squeezed(), self.room_bytes() - self._kept_free_bytes())

    def _kept_free_bytes(self) -> int:
        return int(self.governor.budget_bytes * (1 - self.limits.preempt_at))

    def _squeezed(self) -> Squeeze:
        if any(family.pauses_tenants for family in self.families.values()):
            return Squeeze.PAUSE
        if self.governor.zero_bytes or self.has_alone():
            return max(Squeeze.ONE, self.squeeze)
        return self.squeeze

    def _note_floor(self, used_bytes: int) -> None:
        own_bytes = max(0, used_bytes - self.tenants.in_use_bytes)
        self.floor_bytes = min(own_bytes, self.floor_bytes) if self.families else own_bytes
        governor = self.governor
        if used_bytes < governor.limits.shrink_until * governor.budget_bytes:
            governor.zero_bytes = 0
        else:
            governor.zero_bytes = min(governor.zero_bytes, used_bytes)

    def _note_runs(self, by_run: tuple[tuple[int, int], ...]) -> None:
        if by_run:
            used = dict(by_run)
            for family in self.families.values():
                _note_use(family, sum(used.get(member, 0) for member in family.running))
        elif self.has_only_one():  # nobody can tell runs apart here, but there is only one
            _note_use(next(iter(self.families.values())), self.used_bytes - self.floor_bytes)
        elif any(family.root.declared_bytes is None for family in self.families.values()):
            self._note_together(self.used_bytes - self.floor_bytes - self.tenants.in_use_bytes)
        else:
            return  # what is declared needs no learning
        self._charged_bytes = sum(family.charged_bytes for family in self.families.values())

    def _note_together(self, in_use_bytes: int) -> None:
        """Nobody can tell who uses how much; but where all use more than they were promised, on average each does. A
        kind whose first run was a small one would otherwise stay small for good.
        """
        families = list(self.families.values())
        promised_bytes = sum(family.reserved_bytes for family in families)
        is_more = in_use_bytes > promised_bytes > 0
        for family in families:
            _note_use(family, in_use_bytes * family.reserved_bytes // promised_bytes if is_more else 0)


def _note_use(family: Family, in_use_bytes: int) -> None:
    family.in_use_bytes = max(0, in_use_bytes)
    family.charged_bytes = max(family.in_use_bytes, family.reserved_bytes)
    family.peak_bytes = max(family.peak_bytes, in_use_bytes)
