"""`HostBudget`: one host's memory budget. Covers: what runs and surveys are charged, the room that is left, the floor.

    budget  ┌───────────────────────────────┐
            │ room                          │  kept free from estimates and surveys: what is above `preempt_at`
            ├───────────────────────────────┤
            │ surveys: permits x their size │
            ├───────────────────────────────┤
            │ slots: reserved, or in use    │  while all its runs wait: what it uses, and a margin
            │   where that is more          │
            ├───────────────────────────────┤
            │ floor: in use with no run     │  the controller, its caches, memory that was never given back
            └───────────────────────────────┘

Where workers are held to limits, these are lent out of what the executor measures as lendable: the budget up to
`emergency_at`, without all that is in use outside workers. Room is never more than that leaves, so that each start gets
the memory that it was admitted with.

Does not cover: which run gets the room (`placing`), which run must stop (`preemption`).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import MemoryMeasured
from headrace.agents.scheduler.hosts.survey_permits import HostSurveys
from headrace.agents.scheduler.scheduled_runs import Slot
from headrace.limits import MemoryLimits, QueueLimits
from headrace.memory.governor import Governor
from headrace.workers.lending import LITTLE_SHARE, NEARLY_FULL

_IN_FORCE = 0.9
_LEFT_BY_GROWTH = 0.95


class HostBudget:
    """`slots` and `surveys` are the host's own, and hold its memory."""

    def __init__(
        self,
        limits: MemoryLimits,
        slots: dict[int, Slot],
        surveys: HostSurveys,
        queue_limits: QueueLimits,
        kept_back_bytes: int = 0,
    ) -> None:
        self.governor = Governor(limits)
        self.used_bytes = 0
        self.floor_bytes = 0
        self._limits = limits
        self._slots = slots
        self._surveys = surveys
        self._wait_margin_bytes = queue_limits.wait_margin_bytes
        self._least_bytes = queue_limits.least_run_bytes
        self._charged_bytes = 0  # to slots
        self._undeclared = 0  # slots whose first run has not declared what it needs
        self.kept_back_bytes = kept_back_bytes  # for each worker that computes, beside its limit
        self.waiting = 0  # of the slots, those whose workers wait
        self._lendable_bytes: int | None = None  # to all workers together
        self._most_to_lend_bytes: int | None = None  # to one, if nothing else ran
        self._was_reclaimed = False
        self.room_alone_bytes = limits.budget_bytes  # what a run could have if nothing else ran, by the last reading
        self.best_room_bytes: int | None = None  # the most of that by any reading

    # Room.

    def room_bytes(self) -> int:
        """The budget without what is reserved, or without what is in use where that is more; at most what is left to
        lend.
        """
        return min(self._unreserved_bytes(), self._left_to_lend_bytes())

    def room_beside_surveys_bytes(self) -> int:
        """What a run could have here beside surveys with one permit each."""
        return self.room_alone_bytes - self._surveys.least_bytes

    def share_bytes(self, slot_count: int) -> int:
        """An equal share of what runs can have here, such that so many fit beside each other: what is kept back for
        each worker is left out, and a little by which the controller may grow between two starts.
        """
        room_bytes = max(0, self.room_beside_surveys_bytes())
        if self._lendable_bytes is None:
            return room_bytes // slot_count
        share_bytes = (room_bytes + self.kept_back_bytes) // slot_count - self.kept_back_bytes
        return max(0, int(share_bytes * _LEFT_BY_GROWTH))

    def room_beside_others_bytes(self, *, is_estimate: bool) -> int:
        """What a run could have beside those that run now: not the part that surveys are owed, and for a run whose need
        is an estimate, not the part above `preempt_at`, since it may need more than was seen.
        """
        room_bytes, left_bytes = self._unreserved_bytes(), self._left_to_lend_bytes()
        if is_estimate:
            room_bytes -= self.kept_free_bytes
        if left_bytes < room_bytes:  # here and below not min() and max(), which take thrice the time: most events ask
            room_bytes = left_bytes
        return room_bytes - self._surveys.owed_bytes

    @property
    def has_limits(self) -> bool:
        """Whether workers are held to limits. Where none is, what slots hold may be taken for a part of the floor: that
        is not measured while they are in use.
        """
        return self._lendable_bytes is not None

    @property
    def kept_free_bytes(self) -> int:
        return self.governor.budget_bytes - self.governor.bytes_at(self._limits.preempt_at)

    def owed_bytes(self, slot: Slot, slot_memory_bytes: int) -> int:
        """What the runs of a slot may use before a death of theirs counts as their own: what it started with where that
        is declared, or for a second try, else a slot's memory, as far as one slot can have it here. Limits in force lag
        a little behind readings: of what one slot can have, nine tenths.
        """
        is_promised = slot.is_promised
        owed_bytes, most_bytes = slot.promised_bytes if is_promised else slot_memory_bytes, self._most_to_lend_bytes
        if most_bytes is None:
            most_bytes = self.governor.bytes_at(self._limits.emergency_at) - self.floor_bytes
        elif is_promised:  # it was there when the slot was entered, whatever has come since
            return int(owed_bytes * _IN_FORCE) if slot.is_after_death else owed_bytes
        return min(owed_bytes, int(most_bytes * _IN_FORCE))

    def _unreserved_bytes(self) -> int:
        taken_bytes = self.floor_bytes + self._charged_bytes + self._surveys.charged_bytes
        if self.used_bytes > taken_bytes:
            taken_bytes = self.used_bytes
        return self.governor.budget_bytes - taken_bytes

    def _left_to_lend_bytes(self) -> int:
        """What one more worker could be lent."""
        if self._lendable_bytes is None:
            return self.governor.budget_bytes
        return self._lendable_bytes - self._charged_bytes - self.kept_back_bytes * (len(self._slots) - self.waiting + 1)

    # Charges.

    def charge(self, slot: Slot) -> None:
        slot.charged_bytes = slot.reserved_bytes
        self._charged_bytes += slot.charged_bytes
        self._undeclared += slot.root.declared_bytes is None
        self._was_reclaimed = False

    def charge_anew(self, slot: Slot) -> None:
        """The slot has begun or ended to wait, or reserves something else."""
        self._charged_bytes -= slot.charged_bytes
        slot.charged_bytes = self._charge_of(slot)
        self._charged_bytes += slot.charged_bytes

    def more_to_resume_bytes(self, slot: Slot) -> int:
        """What a slot that waits is charged more when it computes again."""
        return self._charge_in_full(slot) - slot.charged_bytes

    def release(self, slot: Slot) -> None:
        self._charged_bytes -= slot.charged_bytes
        self.waiting -= slot.is_waiting
        self._undeclared -= slot.root.declared_bytes is None

    def reserve_more(self, slot: Slot, slot_memory_bytes: int) -> None:
        """The slot has outgrown its reservation: reserve twice what it uses, at most a slot's memory."""
        more_bytes = min(2 * slot.in_use_bytes, slot_memory_bytes)
        slot.reserved_bytes = max(slot.reserved_bytes, more_bytes)
        self.charge_anew(slot)

    # Readings.

    def observe(self, read: MemoryMeasured) -> None:
        governor = self.governor
        self.used_bytes = read.used_bytes
        self._note_lendable(read.lendable_bytes)
        governor.budget_bytes = min(read.budget_bytes or governor.limits.budget_bytes, governor.limits.budget_bytes)
        self._note_floor(read.used_bytes)
        room_bytes, most_bytes = governor.budget_bytes - self.floor_bytes, self._most_to_lend_bytes
        self.room_alone_bytes = room_bytes if most_bytes is None else min(room_bytes, most_bytes)
        if self.best_room_bytes is None or self.room_alone_bytes > self.best_room_bytes:
            self.best_room_bytes = self.room_alone_bytes
        self._note_slots(read.by_run)
        governor.observe(read.used_bytes, read.now_s)

    def has_undeclared(self) -> bool:
        """Whether there is a slot whose first run has not declared what it needs: something to learn from."""
        return self._undeclared > 0

    @property
    def is_held_by_one_slot(self) -> bool:
        """Whether a single slot holds all memory above the floor."""
        return len(self._slots) == 1 and self._surveys.are_at_rest

    def begin_reclaim(self) -> bool:
        """Return True at the first call since a slot was last charged, and note it. The caller has found that nothing
        runs and pressure stays; memory that is still held after this one reclaim is the floor.
        """
        was_reclaimed, self._was_reclaimed = self._was_reclaimed, True
        return not was_reclaimed

    def make_floor_the_zero(self) -> None:
        self.governor.start_over(self.used_bytes)

    def _note_floor(self, used_bytes: int) -> None:
        governor, surveys_bytes = self.governor, self._surveys.in_use_bytes
        own_bytes = max(0, used_bytes - surveys_bytes)
        if self._lendable_bytes is not None:  # measured, also while workers run, or have ended and are not yet gone
            lent_below_bytes = governor.bytes_at(self._limits.emergency_at)
            self.floor_bytes = max(0, lent_below_bytes - self._lendable_bytes - surveys_bytes)
        else:
            self.floor_bytes = min(own_bytes, self.floor_bytes) if self._slots else own_bytes

    def _note_lendable(self, lendable_bytes: int | None) -> None:
        self._lendable_bytes = lendable_bytes
        if lendable_bytes is not None:  # surveys are outside workers: one that rests gives its memory back
            self._most_to_lend_bytes = lendable_bytes + self._surveys.in_use_bytes - self.kept_back_bytes

    def _note_slots(self, by_run: tuple[tuple[int, int], ...]) -> None:
        slots = self._slots.values()
        if by_run:
            used = dict(by_run)
            for slot in slots:
                if len(slot.running) == 1:  # nearly all, and each reading looks at all slots
                    self._note_use(slot, used.get(next(iter(slot.running)), 0))
                else:
                    self._note_use(slot, sum(used.get(member, 0) for member in slot.running))
        elif self.is_held_by_one_slot:  # runs are not measured one by one here, but there is only one
            self._note_use(next(iter(slots)), self.used_bytes - self.floor_bytes)
        elif self._undeclared:
            self._note_together(self.used_bytes - self.floor_bytes - self._surveys.in_use_bytes)
        else:  # what each uses is not known, and as each run has declared its need, there is nothing to learn
            self._charge_all_anew()
            return
        self._charged_bytes = sum([slot.charged_bytes for slot in slots])

    def _charge_all_anew(self) -> None:
        charged_bytes = 0
        for slot in self._slots.values():
            slot.in_use_bytes = 0  # it may have been the only one at the last reading
            # The usual case first, without a call: each reading looks at all slots.
            slot.charged_bytes = self._charge_of(slot) if slot.is_waiting else slot.reserved_bytes
            charged_bytes += slot.charged_bytes
        self._charged_bytes = charged_bytes

    def _note_together(self, in_use_bytes: int) -> None:
        """Runs that are not measured one by one, and together use more than is reserved for them, use more each on
        average. Without this, a kind whose first run was a small one would stay small for good.
        """
        slots = self._slots.values()
        reserved_bytes = sum(slot.reserved_bytes for slot in slots)
        is_more = in_use_bytes > reserved_bytes > 0
        for slot in slots:
            self._note_use(slot, in_use_bytes * slot.reserved_bytes // reserved_bytes if is_more else 0)

    def _note_use(self, slot: Slot, in_use_bytes: int) -> None:
        if in_use_bytes > self._limits.budget_bytes:  # a host's slip must not teach that runs of this kind are huge
            in_use_bytes = self._limits.budget_bytes
        elif in_use_bytes < 0:
            in_use_bytes = 0
        slot.in_use_bytes = in_use_bytes
        if in_use_bytes > slot.peak_bytes:
            slot.peak_bytes = in_use_bytes
        if slot.is_waiting or self._lendable_bytes is not None or in_use_bytes > slot.reserved_bytes:
            slot.charged_bytes = self._charge_of(slot)
        else:
            slot.charged_bytes = slot.reserved_bytes

    def _charge_of(self, slot: Slot) -> int:
        full_bytes = self._charge_in_full(slot)
        if not slot.is_waiting:
            return full_bytes
        # Where runs are not measured one by one: a slot uses at most what all of them use.
        used_bytes = slot.in_use_bytes or max(0, self.used_bytes - self.floor_bytes)
        enough_bytes = used_bytes + max(self._wait_margin_bytes, used_bytes // LITTLE_SHARE)
        return min(full_bytes, max(enough_bytes, self._least_bytes))  # no worker's limit comes down below the least

    def _charge_in_full(self, slot: Slot) -> int:
        """What is reserved, and no less than what the lender leaves to the slot when it lends to another."""
        used_bytes = slot.in_use_bytes
        if self._lendable_bytes is None:
            return max(used_bytes, slot.reserved_bytes)
        if used_bytes > slot.reserved_bytes:
            return int(used_bytes / NEARLY_FULL)  # it grows: a lower one would soon have to make way
        return max(slot.reserved_bytes, self._enough_to_go_on(used_bytes))

    def _enough_to_go_on(self, used_bytes: int) -> int:
        return used_bytes + max(self._wait_margin_bytes, used_bytes // LITTLE_SHARE) if used_bytes else 0
