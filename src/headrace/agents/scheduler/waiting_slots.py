"""Slots whose runs all wait: they give their turn to compute away, and take it back when a wait is over.

A run that waits for a model, a program or an isolated child computes nothing, so its slot is free for another; its
worker stays, charged for what it uses. When its wait is over it stands in line ahead of new starts, by priority and
age, and goes on with the memory that it was promised: those behind it that only wait make room for that.

An isolated child that finds no memory because its parents hold it would never start: where nothing computes, the lowest
and newest parent that waits for such a child is preempted, and comes back later. So is one whose child no host can hold
now even beside nothing else, if others need what it holds, or what it holds may be taken for memory that is in use
outside of runs: it comes back when its child fits, or has ended.

Does not cover: new starts (`placing`), what waiting slots are charged (`hosts.host_budget`).
"""

from __future__ import annotations

from headrace.agents.scheduler.child_runs import enter_slot, want_to_resume
from headrace.agents.scheduler.events import PreemptRun, ResumeRun, StopReason, WaitBegan, WaitOver
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.making_room import make_memory_to_resume
from headrace.agents.scheduler.ordered_line import Entry
from headrace.agents.scheduler.preemption import lowest_of
from headrace.agents.scheduler.scheduled_runs import WAITING, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState

_UNTIL_THE_NEXT_READING_S = 0.5  # which shows what those that have begun to wait use now


def wait_began(state: SchedulerState, event: WaitBegan) -> None:
    run = state.running(event.id, event.epoch)
    if run is None or run.slot is None or run.slot.is_waiting:
        return
    state.hosts[run.slot.host].begin_wait(run.slot)


def wait_over(state: SchedulerState, event: WaitOver) -> None:
    run = state.running(event.id, event.epoch)
    if run is None or run.slot is None:
        return
    if not run.slot.is_waiting:
        state.commands.append(ResumeRun(id=run.id, epoch=run.epoch))
        return
    run.slot.resuming[run.id] = run
    want_to_resume(state, run.slot, event.now_s)


def resume_next(state: SchedulerState, hosts: list[Host], ahead_of: Entry | None, now_s: float) -> bool:
    """Let the first slot whose wait is over compute again, on one of these hosts, of those that stand ahead of this run
    in the queue; return whether one does.
    """
    for host in hosts:
        if not host.resuming:
            continue
        place, slot = min(((_place(state, slot), slot) for slot in host.resuming.values()), key=lambda each: each[0])
        stands_behind = ahead_of is not None and slot.priority < ahead_of[2].priority and ahead_of[0] <= place[0]
        if not stands_behind and _may_resume(state, host, slot, now_s):
            _resume(state, host, slot)
            return True
    return False


def _may_resume(state: SchedulerState, host: Host, slot: Slot, now_s: float) -> bool:
    """Whether a slot may compute again: there is a free one, with the memory that it was promised. Where nothing
    computes and nobody makes room for that, it goes on with the memory there is.
    """
    if not host.has_free_slot():
        return False
    if host.has_memory_to_resume(slot):
        return True
    if host.computing:
        return False
    if make_memory_to_resume(state, host, slot, now_s):
        host.kept_for = slot.priority
        return False
    return True


def stop_waiting_parent(state: SchedulerState, host: Host, now_s: float) -> None:
    """Preempt one slot that waits for a run in the queue, where nothing has computed for a while: for long where others
    wait for models or programs, since they go on by themselves.
    """
    if host.computing or not host.slots or host.resuming:
        host.idle_since_s = None
    elif host.idle_since_s is None:
        host.idle_since_s = now_s
    elif slot := _to_stop(state, host, now_s - host.idle_since_s):
        state.stop_slot(slot, PreemptRun, StopReason.FOR_ISOLATED_CHILD, now_s)
        host.idle_since_s = None


def _to_stop(state: SchedulerState, host: Host, idle_s: float) -> Slot | None:
    if idle_s < _UNTIL_THE_NEXT_READING_S:
        return None
    is_hopeless = idle_s >= host.limits.hopeless_after_s
    go_on_by_themselves = any(_awaited_bytes(slot) is None for slot in host.slots.values())
    if (is_hopeless or not go_on_by_themselves) and (slot := _parent_in_the_way(host)):
        return slot
    may_help = not host.memory.has_limits or bool(state.queue.heads())
    if is_hopeless and may_help and (slot := _parent_of_too_large(host)):
        slot.leader.too_large_bytes = _awaited_bytes(slot) or 0  # it comes back with its child
        return slot
    return None


def _resume(state: SchedulerState, host: Host, slot: Slot) -> None:
    if not slot.could_compute():
        # The run whose wait was over has ended, or the child that was to start there starts later, with its parent: the
        # others in the slot still wait.
        del host.resuming[slot.number]
        slot.wait_over_s = 0.0
        return
    host.end_wait(slot)
    for run in slot.resuming.values():
        state.commands.append(ResumeRun(id=run.id, epoch=run.epoch, is_short=slot.is_short))
    slot.resuming.clear()
    if slot.is_stopping():
        return
    for run in list(slot.running.values()):
        while run.children:
            enter_slot(state, run.children.popitem()[1], slot)


def _place(state: SchedulerState, slot: Slot) -> tuple[float, int]:
    return state.queue.place_s(slot.wait_over_s, slot.priority), slot.number


def _parent_in_the_way(host: Host) -> Slot | None:
    """The lowest and newest slot with a run that waits for an isolated child in the queue."""
    return lowest_of([slot for slot in host.slots.values() if not slot.is_stopping() and _awaited_bytes(slot) == 0])


def _parent_of_too_large(host: Host) -> Slot | None:
    """The same of those whose children no host can hold now."""
    return lowest_of([slot for slot in host.slots.values() if not slot.is_stopping() and _awaited_bytes(slot)])


def _awaited_bytes(slot: Slot) -> int | None:
    """What the isolated child in the queue that a run of the slot waits for needs, where no host can hold it now, else
    0; None where the slot waits for none, or is not to be stopped.
    """
    if slot.is_inside_effect():
        return None
    children = [child for run in slot.running.values() for child in run.isolated_children.values()]
    return min((child.too_large_bytes for child in children if child.phase is WAITING), default=None)
