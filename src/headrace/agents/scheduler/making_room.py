"""Decides whether lower work stops for the run that is next: it lacks a slot or memory, and stopping others helps.

The first run in line makes room with the priority of the highest one that waits behind it (priority inheritance): its
age may have put it before that one. As many slots stop as that run needs and no more, each at its next step. Only for
CRITICAL work they have a deadline, after which the step is cut. So do slots that only wait, for one before them that
goes on with the memory that it was promised. Does not cover: which slot gives way (`preemption`).
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.agents.scheduler.events import NeedsRoom, PreemptRun, StopReason
from headrace.agents.scheduler.hosts.host import LOWEST_ADMITTED, Host
from headrace.agents.scheduler.hosts.needs import Need
from headrace.agents.scheduler.ordered_line import Entry
from headrace.agents.scheduler.preemption import (
    gives_way_to,
    is_one_stopping,
    leaving_soon,
    lowest_first,
    lowest_of,
    may_be_preempted,
)
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.priority import CRITICAL, Priority


def highest_in_line(state: SchedulerState, run: ScheduledRun, behind: Sequence[Entry]) -> Priority:
    """The highest priority of a run and of those behind it, without runs that could not start now either."""
    highest = run.priority
    for _, _, other in behind:
        if other.priority > highest and not state.circuits.holds(other) and is_admitted(state, other):
            highest = other.priority
    return highest


def is_admitted(state: SchedulerState, run: ScheduledRun) -> bool:
    """Whether memory pressure lets the run start on some host. One that pressure has stopped may have to find a host
    without runs: of these a few are looked at.
    """
    calmest = state.index.calmest()
    if calmest is None or run.priority < LOWEST_ADMITTED[calmest.pressure]:
        return False
    return calmest.pressure < run.returns_below or any(host.admits(run) for host in state.index.largest_first())


def make_room(state: SchedulerState, host: Host, run: ScheduledRun, need: Need, level: Priority, now_s: float) -> bool:
    """Stop slots for the run, with the rights of a priority; return whether room is made here, now or soon. A run that
    has waited aside has its turn: its equals make room too.
    """
    is_patient = level is not CRITICAL
    leaving = leaving_soon(host, now_s, is_patient=is_patient)
    if awaits_reading(host, need) or (leaving and host.fits(run, need, leaving)):
        return True
    may_go = _who_may_go(host, level, now_s)
    if run.is_aside:
        may_go += [slot for slot in host.slots.values() if slot not in may_go and _is_equal(slot, run, host, now_s)]
    all_that_leave = may_go + [slot for slot in host.stopping.values() if slot not in may_go]
    if not all_that_leave or not host.fits(run, need, all_that_leave):
        return False
    going = _enough_for(host, run, need, may_go, leaving)
    why, for_whom = StopReason.MAKES_ROOM, NeedsRoom(id=run.id, lacks_slot=not host.has_free_slot(leaving))
    for slot in going:
        state.stop_slot(slot, PreemptRun, why, now_s, is_patient=is_patient, for_whom=for_whom)
    return True


def awaits_reading(host: Host, need: Need) -> bool:
    """Whether the run lacks memory, and no reading shows yet what the last slot that was stopped has left."""
    if not host.has_unread_exit:
        return False
    return need.is_alone or need.memory_bytes > host.memory.room_beside_others_bytes(is_estimate=need.is_estimate)


def _enough_for(host: Host, run: ScheduledRun, need: Need, may_go: list[Slot], leaving: list[Slot]) -> list[Slot]:
    """Of the slots that may go, the lowest, until the run fits once they and those already stopping have left. Where a
    slot is lacking, one that waits gives none.
    """
    going: list[Slot] = []
    while not host.fits(run, need, leaving + going):
        has_slot = host.has_free_slot(leaving + going)
        slot = lowest_of([slot for slot in may_go if slot not in going and (has_slot or not slot.is_waiting)])
        if slot is None:
            break
        going.append(slot)
    return going


def _is_equal(slot: Slot, run: ScheduledRun, host: Host, now_s: float) -> bool:
    """Whether the slot makes room for an equal: not one that has waited for its own turn."""
    if slot.priority > run.priority or slot.is_after_death or slot.is_stopping() or now_s < slot.keeps_until_s:
        return False
    return may_be_preempted(slot, host.limits, now_s)


def make_room_to_resume(state: SchedulerState, host: Host, now_s: float) -> None:
    """Stop one slot that computes, where a higher one whose wait is over finds none free."""
    if host.has_free_slot():
        return
    highest = max(
        (slot for slot in host.resuming.values() if slot.could_compute()), key=lambda slot: slot.priority, default=None
    )
    if highest is None:
        return
    level, for_whom = highest.priority, NeedsRoom(id=highest.root.id, lacks_slot=True)
    is_patient = level is not CRITICAL
    if is_one_stopping(host, now_s, is_patient=is_patient):
        return
    if slot := lowest_of([slot for slot in _who_may_go(host, level, now_s) if not slot.is_waiting]):
        state.stop_slot(slot, PreemptRun, StopReason.MAKES_ROOM, now_s, is_patient=is_patient, for_whom=for_whom)


def make_memory_to_resume(state: SchedulerState, host: Host, slot: Slot, now_s: float) -> bool:
    """Stop slots that only wait, for one before them whose wait is over: it was promised memory that they hold. Return
    whether room is made, now or soon. Of its own priority, the newer ones are behind it. Memory that is in use outside
    of runs, by what arrives for them for instance, may soon be back too: for `stop_s` it is waited for.
    """
    if not host.memory.has_limits or not slot.is_promised:
        return False  # nothing keeps it from the memory that it needs, or it may need less than was reserved
    leaving = [each for each in leaving_soon(host, now_s, is_patient=True) if each is not slot]
    if host.has_unread_exit or (leaving and host.has_memory_to_resume(slot, leaving)):
        return True
    may_go = sorted([each for each in host.slots.values() if _only_waits_behind(each, slot)], key=lowest_first)
    if not host.has_memory_to_resume(slot, leaving + may_go):
        is_outside = slot.promised_bytes > host.memory.room_alone_bytes
        return is_outside and now_s - slot.wait_over_s < host.limits.stop_s
    for each in may_go:
        if host.has_memory_to_resume(slot, leaving):
            break
        for_whom = NeedsRoom(id=slot.root.id)
        state.stop_slot(each, PreemptRun, StopReason.PROMISED_BEFORE, now_s, is_patient=True, for_whom=for_whom)
        leaving.append(each)
    return True


def _only_waits_behind(slot: Slot, first: Slot) -> bool:
    if not slot.is_waiting or slot.wait_over_s or slot.is_stopping() or slot.priority is CRITICAL:
        return False
    return lowest_first(slot) < lowest_first(first) and not slot.is_inside_effect()


def _who_may_go(host: Host, level: Priority, now_s: float) -> list[Slot]:
    """As many as there are slots."""
    if not host.has_below(level):
        return []
    is_patient = level is not CRITICAL
    return [slot for slot in host.slots.values() if _makes_room(slot, level, now_s, is_patient=is_patient)]


def _makes_room(slot: Slot, level: Priority, now_s: float, *, is_patient: bool) -> bool:
    return gives_way_to(slot, level, is_patient=is_patient) and (now_s >= slot.keeps_until_s or not is_patient)
