"""Runs and their children. Covers: how one joins what runs, or waits for its parent to run again.

A child has its parent's slot, memory and worker: it starts at once, since its parent may be waiting for it. Where the
parent has been stopped, the child waits for it and starts with it; so it does where it needs more memory than they
have. Does not cover: the first of a slot (agents.scheduler.placing).
"""

from __future__ import annotations

from headrace.agents.scheduler.events import PreemptRun, StartRun, StopReason
from headrace.agents.scheduler.scheduled_runs import HELD, RUNNING, ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState


def live_ancestor(state: SchedulerState, run: ScheduledRun) -> ScheduledRun | None:
    """The nearest of its parents that has not ended, and may be waiting for it."""
    ancestor = run.parent
    while ancestor is not None and not state.knows(ancestor):
        ancestor = ancestor.parent
    return ancestor


def join_parent(state: SchedulerState, run: ScheduledRun, parent: ScheduledRun, now_s: float) -> None:
    """Now, where the slot runs and is not stopping; else when it starts again. What ran out of memory needs more
    than the slot has: all of it starts again, alone and with all there is, once.
    """
    head, slot = _head(state, parent), parent.slot if parent.phase is RUNNING else None
    run.priority = head.priority
    if slot is not None and run.deaths and not slot.is_after_death and not slot.is_stopping():
        state.stop_slot(slot, PreemptRun, StopReason.FOR_CHILD, now_s)
    if slot is not None and not slot.is_stopping():
        enter_slot(state, run, slot)
    else:
        run.phase, run.held_by, run.slot = HELD, head, None
        head.children[run.id] = run


def enter_slot(state: SchedulerState, run: ScheduledRun, slot: Slot) -> None:
    """A run starts its slot; a child joins it, in the same slot and the same memory."""
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
    """The run that brings the slot back: the root, or where that has ended, the parent itself."""
    if parent.held_by is not None:
        return parent.held_by
    if parent.slot is not None and state.knows(parent.slot.root):
        return parent.slot.root
    return parent
