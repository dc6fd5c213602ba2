"""Decides whether lower work stops for the run that is next: it lacks a slot or memory, and stopping others helps.

The first run in line makes room with the priority of the highest one that waits behind it (priority inheritance): its
age may have put it before that one. One slot at a time stops, at its next step. Only for CRITICAL work it has a
deadline, after which its step is cut. Does not cover: which slot gives way (`preemption`).
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.agents.scheduler.events import PreemptRun, StopReason
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.needs import Need
from headrace.agents.scheduler.preemption import (
    gives_way_to,
    is_one_stopping,
    lowest_of,
    may_be_preempted,
    may_preempt_another,
)
from headrace.agents.scheduler.run_queue import Entry
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.priority import CRITICAL, Priority


def highest_in_line(state: SchedulerState, run: ScheduledRun, behind: Sequence[Entry]) -> Priority:
    """The highest priority of a run and of those behind it, without runs that could not start now either."""
    highest = run.priority
    for _, _, other in behind:
        if other.priority > highest and not state.circuits.holds(other) and _is_admitted(state, other):
            highest = other.priority
    return highest


def _is_admitted(state: SchedulerState, run: ScheduledRun) -> bool:
    for host in state.hosts.values():  # noqa: SIM110 - any() takes thrice the time where there is one host
        if host.admits(run):
            return True
    return False


def make_room(state: SchedulerState, host: Host, run: ScheduledRun, need: Need, level: Priority, now_s: float) -> bool:
    """Stop one slot for the run, with the rights of a priority; return whether room is made here, now or soon. Where a
    slot is lacking, one that waits gives none. A run that has waited aside has its turn: its equals make room too.
    """
    is_patient = level is not CRITICAL
    may_go = _who_may_go(host, level, now_s)
    if run.is_aside:
        may_go += [slot for slot in host.slots.values() if slot not in may_go and _is_equal(slot, run, host, now_s)]
    leaving = may_go + [slot for slot in host.stopping.values() if slot not in may_go]
    if not leaving or not host.fits(run, need, leaving):
        return False
    if may_stop_one(host, need, level, now_s):
        _stop_one(state, may_go if host.has_free_slot() else _computing(may_go), now_s, is_patient=is_patient)
    return True


def may_stop_one(host: Host, need: Need, level: Priority, now_s: float) -> bool:
    """Whether a slot may be told to stop: none is stopping, and where memory is lacking, a reading shows what the last
    one has left.
    """
    is_patient = level is not CRITICAL
    if is_one_stopping(host, now_s, is_patient=is_patient):
        return False
    if need.is_alone or need.memory_bytes > host.memory.room_beside_others_bytes(is_estimate=need.is_estimate):
        return may_preempt_another(host, now_s, is_patient=is_patient)
    return True  # only a slot is lacking: no reading shows that


def _is_equal(slot: Slot, run: ScheduledRun, host: Host, now_s: float) -> bool:
    """Whether the slot makes room for an equal: not one that has waited for its own turn."""
    if slot.priority > run.priority or slot.is_after_death or slot.is_stopping() or now_s < slot.keeps_until_s:
        return False
    return may_be_preempted(slot, host.limits, now_s)


def make_room_to_resume(state: SchedulerState, host: Host, now_s: float) -> None:
    """Stop one slot that computes, where a higher one whose wait is over finds none free."""
    if host.has_free_slot() or not host.resuming:
        return
    level = max(slot.priority for slot in host.resuming.values())
    is_patient = level is not CRITICAL
    if not is_one_stopping(host, now_s, is_patient=is_patient):
        _stop_one(state, _computing(_who_may_go(host, level, now_s)), now_s, is_patient=is_patient)


def _stop_one(state: SchedulerState, slots: list[Slot], now_s: float, *, is_patient: bool) -> None:
    if slot := lowest_of(slots):
        state.stop_slot(slot, PreemptRun, StopReason.MAKES_ROOM, now_s, is_patient=is_patient)


def _who_may_go(host: Host, level: Priority, now_s: float) -> list[Slot]:
    """As many as there are slots."""
    if not host.has_below(level):
        return []
    is_patient = level is not CRITICAL
    return [slot for slot in host.slots.values() if _makes_room(slot, level, now_s, is_patient=is_patient)]


def _computing(slots: list[Slot]) -> list[Slot]:
    return [slot for slot in slots if not slot.is_waiting]


def _makes_room(slot: Slot, level: Priority, now_s: float, *, is_patient: bool) -> bool:
    return gives_way_to(slot, level, is_patient=is_patient) and (now_s >= slot.keeps_until_s or not is_patient)
