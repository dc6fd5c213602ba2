"""Chooses the slot that must stop when memory or slots are short: of the lowest priority, the newest.

    for whom                     which slots may be chosen
    a higher priority            all below it, outside side effects
    equal or lower priority,     those that lose nothing by it: with a step journaled since their start, outside side
    under pressure               effects, past their minimum run time, not preempted too often, not CRITICAL, not alone
    an emergency                 all

Does not cover: when to choose (`relief`, `making_room`).
"""

from __future__ import annotations

from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.scheduled_runs import Slot
from headrace.limits import MemoryLimits
from headrace.priority import Priority


def to_preempt(host: Host, now_s: float) -> Slot | None:
    """The slot to stop under pressure; None where no slot may be preempted. The highest one that runs is for whom."""
    slots, limits = host.slots.values(), host.limits
    highest = max(slot.priority for slot in slots)
    return lowest_of([slot for slot in slots if gives_way_to(slot, highest) or may_be_preempted(slot, limits, now_s)])


def lowest_below(host: Host, level: Priority, *, is_patient: bool = False) -> Slot | None:
    """The slot to stop for work of a priority; None where none gives way to it."""
    return lowest_of([slot for slot in host.slots.values() if gives_way_to(slot, level, is_patient=is_patient)])


def to_preempt_for(host: Host, short: Slot, owed_bytes: int, now_s: float) -> Slot | None:
    """The slot to stop before this one meets its memory limit: the lowest below it, whatever protects that from its
    equals; or while this one uses less than it is owed, by the usual rule the newest of its equals, maybe itself.
    """
    lower = lowest_below(host, short.priority)
    if lower is not None or short.in_use_bytes >= owed_bytes:
        return lower
    equals = [slot for slot in host.slots.values() if slot.priority is short.priority]
    if len(equals) < 2:
        return None
    return lowest_of([slot for slot in equals if may_be_preempted(slot, host.limits, now_s)])


def to_kill_for(host: Host, short: Slot, now_s: float) -> Slot | None:
    """The slot that was told to stop, and goes behind one that is about to meet its limit; None while one is being
    killed and still has time to end.
    """
    if any(_is_being_killed(slot, host.limits, now_s) for slot in host.slots.values()):
        return None
    stopping = [slot for slot in host.slots.values() if slot.is_stopping() and not slot.was_killed]
    return lowest_of([slot for slot in stopping if slot.priority < short.priority and not slot.is_inside_effect()])


def to_kill(host: Host, now_s: float) -> Slot | None:
    """The slot to stop at once; None while one is being killed and still has time to end."""
    slots = list(host.slots.values())
    if any(_is_being_killed(slot, host.limits, now_s) for slot in slots):
        return None
    return lowest_of([slot for slot in slots if not slot.was_killed])


def gives_way_to(slot: Slot, level: Priority, *, is_patient: bool = False) -> bool:
    """Whether the slot may be stopped for work of a priority, whatever it has journaled. One that was told to stop
    patiently may be told again, with a deadline.
    """
    if slot.priority >= level or (slot.is_stopping() and (is_patient or not slot.is_patient)):
        return False
    return not slot.is_inside_effect()


def may_be_preempted(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    if slot.priority is Priority.CRITICAL or slot.is_alone or (slot.is_stopping() and not slot.is_patient):
        return False
    leader = slot.leader
    has_run = not leader.preemptions or now_s - slot.started_s >= limits.min_run_s
    may_again = has_run and leader.preemptions < limits.most_preemptions
    return may_again and leader.has_progress and not slot.is_inside_effect()


def may_preempt_another(host: Host, now_s: float) -> bool:
    """Whether pressure may preempt another slot: one at a time, and `calm_s` after the last one left, since memory may
    be given back slowly and one slot too many would have stopped.
    """
    if host.preempted_at_s is not None and now_s - host.preempted_at_s < host.limits.calm_s:
        return False
    return not is_one_stopping(host, now_s)


def is_one_stopping(host: Host, now_s: float, *, is_patient: bool = False) -> bool:
    """Whether a slot was told to stop and still has time; one that stops patiently keeps only patient ones waiting."""
    for slot in host.stopping.values():  # not any(...): there is one, or none
        if (is_patient or not slot.is_patient) and _still_has_time(slot, host.limits, now_s):
            return True
    return False


def leaving_soon(host: Host, now_s: float, *, is_patient: bool = False) -> list[Slot]:
    """The slots that were told to stop and still have time; only patient work waits for those that stop patiently."""
    return [
        slot
        for slot in host.stopping.values()
        if _still_has_time(slot, host.limits, now_s) and (is_patient or not slot.is_patient)
    ]


def _still_has_time(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    return slot.stop_sent_s is not None and now_s - slot.stop_sent_s < limits.stop_s


def _is_being_killed(slot: Slot, limits: MemoryLimits, now_s: float) -> bool:
    return slot.was_killed and _still_has_time(slot, limits, now_s)


def lowest_of(slots: list[Slot]) -> Slot | None:
    """Of the lowest priority, the newest."""
    return min(slots, key=lowest_first, default=None)


def lowest_first(slot: Slot) -> tuple[Priority, int]:
    return slot.priority, -slot.number
