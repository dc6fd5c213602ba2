"""How a child enters its parent's slot, or waits for its parent to run again.

A child has its parent's slot, memory and worker, and starts at once, since its parent may be waiting for it. Where the
parent has been stopped, the child is held and starts with it; the same where the child ran out of memory, since it
needs more than the slot has. An isolated child has a slot of its own. Does not cover: which slot a first run or an
isolated child gets (`placing`).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import PreemptRun, StartRun, StopReason
from headrace.agents.scheduler.scheduled_runs import HELD, RUNNING, ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState


def live_ancestor(state: SchedulerState, run: ScheduledRun) -> ScheduledRun | None:
    """The nearest ancestor of a child that has not ended, and may be waiting for it; None where all have."""
    ancestor = run.parent
    while ancestor is not None and not state.knows(ancestor):
        ancestor = None if ancestor.is_isolated else ancestor.parent
    return ancestor


def join_parent(state: SchedulerState, run: ScheduledRun, parent: ScheduledRun, now_s: float) -> None:
    """Start a child in its parent's slot, or hold it until its parent starts again. For a child that ran out of memory,
    stop the slot: all of its runs start again, with more. Once for a death of its own; and where others had the memory,
    while the slot has reserved less than it needs.
    """
    head, slot = _head(state, parent), parent.slot if parent.phase is RUNNING else None
    run.priority = head.priority
    if slot is not None and not slot.is_stopping() and _needs_more(run, slot):
        state.stop_slot(slot, PreemptRun, StopReason.FOR_CHILD, now_s)
    if slot is not None and not slot.is_stopping() and not slot.is_waiting:
        enter_slot(state, run, slot)
        return
    run.phase, run.held_by, run.slot = HELD, head, None
    head.children[run.id] = run
    if slot is not None and slot.is_waiting and not slot.is_stopping():
        want_to_resume(state, slot, now_s)


def want_to_resume(state: SchedulerState, slot: Slot, now_s: float) -> None:
    """Put a slot that waits in line for computing again."""
    slot.wait_over_s = slot.wait_over_s or now_s
    host = state.hosts[slot.host]
    host.resuming[slot.number] = slot
    host.touch()


def _needs_more(run: ScheduledRun, slot: Slot) -> bool:
    return (run.deaths > 0 and not slot.is_after_death) or run.needs_bytes > slot.reserved_bytes


def enter_slot(state: SchedulerState, run: ScheduledRun, slot: Slot) -> None:
    """Start the next attempt of a run in a slot: of its first run, or of a child that shares its memory."""
    run.epoch += 1
    run.phase, run.slot, run.held_by = RUNNING, slot, None
    slot.running[run.id] = run
    state.commands.append(
        StartRun(
            id=run.id,
            epoch=run.epoch,
            host=slot.host,
            memory_bytes=slot.reserved_bytes,
            slot=slot.number,
            is_alone=slot.is_alone,
            preemptions=run.preemptions,
            deaths=run.deaths,
        )
    )


def _head(state: SchedulerState, parent: ScheduledRun) -> ScheduledRun:
    """The run that the child is to start with: the slot's root, or where that has ended, the parent itself."""
    if parent.held_by is not None:
        return parent.held_by
    if parent.slot is not None and state.knows(parent.slot.root):
        return parent.slot.root
    return parent
