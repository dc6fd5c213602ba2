"""Chooses the slot that must stop when memory is short.

The lowest priority stops first, and within it the newest slot. Below the emergency level, only one that loses nothing
by it: with a step journaled since its start, outside a side effect, past its minimum run time, not preempted too often,
not CRITICAL. Does not cover: when to choose (`relief`, `placing`).
"""

from __future__ import annotations

from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.scheduled_runs import Slot
from headrace.limits import MemoryLimits
from headrace.priority import Priority


def to_preempt(host: Host, now_s: float) -> Slot | None:
    """The slot to stop at its next step; None where no slot may be preempted."""
    limits = host.limits
    return _lowest_newest([slot for slot in host.slots.values() if may_be_preempted(slot, limits, now_s)])


def to_preempt_for(host: Host, short: Slot, owed_bytes: int, now_s: float) -> Slot | None:
    """The slot to stop before this one meets its memory limit: the lowest below it, whatever protects that from its
    equals; or while this one uses less than it is owed, by the usual rule the newest of its equals, maybe itself.
    """
    lower = [slot for slot in host.slots.values() if slot.priority < short.priority and _can_stop(slot)]
    if lower or short.in_use_bytes >= owed_bytes:
        return _lowest_newest(lower)
    equals = [slot for slot in host.slots.values() if slot.priority is short.priority]
    if len(equals) < 2:
        return None
    return _lowest_newest([slot for slot in equals if may_be_preempted(slot, host.limits, now_s)])


def to_kill(host: Host, now_s: float) -> Slot | None:
    """The slot to stop at once; None while one is being killed and still has time to end."""
    slots = list(host.slots.values())
    if any(_is_being_killed(slot, host.limits, now_s) for slot in slots):
        return None
    return _lowest_newest([slot for slot in slots if not slot.was_killed])


def may_be_preempted(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    if slot.priority is Priority.CRITICAL or slot.is_stopping() or slot.is_alone:
        return False
    leader = slot.leader
    has_run = not leader.preemptions or now_s - slot.started_s >= limits.min_run_s
    return has_run and leader.preemptions < limits.most_preemptions and leader.has_progress and _can_stop(slot)


def _can_stop(slot: Slot) -> bool:
    """Whether nothing in the slot is inside a side effect, and it has not been told to stop yet."""
    return not slot.is_stopping() and not any(run.side_effects for run in slot.running.values())


def is_one_stopping(host: Host, now_s: float) -> bool:
    """Whether a slot was told to stop and still has time to."""
    return any(_still_has_time(slot, host.limits, now_s) for slot in host.slots.values())


def may_preempt_another(host: Host, now_s: float) -> bool:
    """Whether another slot may be preempted: one at a time, and the last one's memory must show in a reading first."""
    if host.preempted_at_s is not None and now_s - host.preempted_at_s < host.limits.calm_s:
        return False
    return not is_one_stopping(host, now_s)


def _still_has_time(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    return slot.stop_sent_s is not None and now_s - slot.stop_sent_s < limits.stop_s


def _is_being_killed(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    return slot.was_killed and _still_has_time(slot, limits, now_s)


def _lowest_newest(slots: list[Slot]) -> Slot | None:
    return min(slots, key=lambda slot: (slot.priority, -slot.number), default=None)
