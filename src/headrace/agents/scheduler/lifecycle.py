"""What happens to a run in the scheduler: submission, steps, each way to end or to come back, cancelling, closing.

Does not cover: when and where a run starts (`placing`), what an exit cause means (`exits`).
"""

from __future__ import annotations

from msgspec.structs import replace

from headrace.agents.scheduler.child_runs import enter_slot, join_parent, live_ancestor
from headrace.agents.scheduler.circuits import goes_on
from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    EffectEnded,
    EffectStarting,
    EndRun,
    KillRun,
    ParkRun,
    PreemptRun,
    PriorityRaised,
    RecordShortage,
    Refusal,
    RejectRun,
    SetPriority,
    StepJournaled,
    StopReason,
    Submitted,
)
from headrace.agents.scheduler.exits import FINAL_CAUSES, ComesBack, decide_after_exit
from headrace.agents.scheduler.scheduled_runs import HELD, NEVER_KEPT_OUT, RUNNING, WAITING, ScheduledRun, Slot
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.exit_causes import ExitCause
from headrace.memory.governor import Pressure
from headrace.priority import Priority

_TAKES_CHILDREN_ALONG = (ExitCause.CANCELLED, ExitCause.TIMED_OUT)
_TAKES_SLOT_ALONG = (*_TAKES_CHILDREN_ALONG, ExitCause.LOST)  # what kills its worker kills it with all runs in it
_AHEAD_OF_PARENT_S = 0.001  # in the queue: a parent that was preempted for its isolated child waits for it
_DONE = ExitCause.DONE  # by itself: see `scheduled_runs`
_IS_OVER = (ExitCause.DONE, ExitCause.FAILED, ExitCause.OUT_OF_MEMORY)
_SHOWS_NEED = (*_IS_OVER, ExitCause.PARKED)


def submitted(state: SchedulerState, event: Submitted) -> None:
    run = _scheduled(state, event)
    run.parent = parent = state.runs.get(event.parent) if event.parent is not None else None
    if note := state.circuits.learn(event.kind, event.breaker):
        state.commands.append(note)
    refusal = _refusal(state, run)
    if refusal is not None:
        state.commands.append(_reject(state, run, refusal))
        return
    state.runs[run.id] = run
    if parent is None:
        state.enqueue(run)
    elif run.is_isolated:
        parent.isolated_children[run.id] = run
        run.priority, run.queued_s = parent.priority, parent.queued_s - _AHEAD_OF_PARENT_S
        state.enqueue(run)
    else:
        join_parent(state, run, parent, event.now_s)


def started(state: SchedulerState, event: AttemptStarted) -> None:
    run = state.running(event.id, event.epoch)
    if run is None or run.started_s is not None:
        return
    run.started_s = event.now_s
    if run.limit_s is not None:
        state.set_deadline(run, event.now_s + run.limit_s - run.executed_s)


def step_done(state: SchedulerState, event: StepJournaled) -> None:
    if run := state.running(event.id, event.epoch):
        run.has_progress = True


def effect_starting(state: SchedulerState, event: EffectStarting) -> None:
    if run := state.running(event.id, event.epoch):
        run.side_effects += 1


def effect_ended(state: SchedulerState, event: EffectEnded) -> None:
    run = state.running(event.id, event.epoch)
    if run is not None and run.side_effects:  # an end without a beginning says nothing
        run.side_effects -= 1


def ended(state: SchedulerState, event: AttemptEnded) -> None:
    run = state.running(event.id, event.epoch)
    if run is None or run.slot is None:
        return
    now_s, slot = event.now_s, run.slot
    host = state.hosts[slot.host]
    budget_bytes = host.limits.budget_bytes
    if event.peak_bytes > budget_bytes or event.limit_bytes > budget_bytes:
        event = _within(event, budget_bytes)
    was_alone = run.stopping is not None and host.memory.is_held_by_one_slot
    del slot.running[run.id]
    slot.resuming.pop(run.id, None)
    is_parents_end = run.stopping is StopReason.PARENT_LOST and event.cause is not ExitCause.DONE
    run.is_blameless = event.is_endpoints or is_parents_end
    _count(state, run, slot, event)
    if event.cause is _DONE:  # most are, and nothing else need be known then
        decided = _DONE
    else:
        owed_bytes = host.memory.owed_bytes(slot, state.limits.slot_memory_bytes)
        decided = decide_after_exit(run, event, state.limits, slot, owed_bytes, was_alone=was_alone)
    if not slot.running:
        host.leave(slot, now_s)
    if isinstance(decided, ExitCause):
        settle(state, run, decided, now_s)
    elif decided is ComesBack.LATER:
        _park(state, run, event.cause, now_s)
        _leave_children(state, run, now_s)
    else:
        _note_crash(state, run, event)
        _come_back(state, run, slot, now_s)
    root = slot.root
    if not slot.running and root.slot is slot and root.phase is HELD:
        _wait(state, root, now_s)  # the slot's last run has ended: its root may wait for its next start


def _within(event: AttemptEnded, budget_bytes: int) -> AttemptEnded:
    """The same event, with no more memory than there is: runs of this kind elsewhere would be thought as large."""
    peak_bytes, limit_bytes = min(event.peak_bytes, budget_bytes), min(event.limit_bytes, budget_bytes)
    return replace(event, peak_bytes=peak_bytes, limit_bytes=limit_bytes)


def settle(
    state: SchedulerState,
    run: ScheduledRun,
    cause: ExitCause,
    now_s: float,
    shortage: RecordShortage | None = None,
) -> None:
    """End a run for good; a cancelled, timed-out or lost one takes the children that wait for it along, and a lost one
    those that still run in its slot: one of them may be what kills its worker.
    """
    if run.children and cause in _TAKES_SLOT_ALONG:
        while run.children:
            child = run.children.popitem()[1]
            child.is_blameless = cause is ExitCause.LOST
            settle(state, child, cause, now_s)
    if cause is ExitCause.LOST and run.slot is not None and run.slot.root is run and run.slot.running:
        state.stop_slot(run.slot, KillRun, StopReason.PARENT_LOST, now_s)
    state.commands.append(EndRun(id=run.id, epoch=run.epoch, cause=cause, shortage=shortage))
    _forget(state, run, cause, now_s)
    if run.children:
        _leave_children(state, run, now_s)
    if run.isolated_children and cause in _TAKES_CHILDREN_ALONG:
        for child in list(run.isolated_children.values()):
            if state.knows(child):
                stop_for_good(state, child, StopReason.CANCELLED, now_s)


def park(state: SchedulerState, run: ScheduledRun, now_s: float) -> None:
    """Leave a run, and the children that wait for it, on disk only."""
    while run.children:
        park(state, run.children.popitem()[1], now_s)
    _park(state, run, None, now_s)


def stop_for_good(state: SchedulerState, run: ScheduledRun, why: StopReason, now_s: float) -> None:
    """Cancel a run, or end it for its timeout; a running parent takes its children along."""
    if run.phase is RUNNING:
        assert run.slot is not None
        if run is run.slot.root:
            state.stop_slot(run.slot, KillRun, why, now_s)
        else:
            state.stop(run, KillRun, why)
        return
    if run.phase is WAITING:
        state.queue.remove(run)
    elif run.held_by is not None:
        del run.held_by.children[run.id]
    elif run.slot is not None:
        state.stop_slot(run.slot, KillRun, why, now_s)  # it has stopped and comes back; its children still run
    else:
        state.circuits.release(run)
    settle(state, run, FINAL_CAUSES[why], now_s)


def raise_priority(state: SchedulerState, event: PriorityRaised) -> None:
    """Raise a run and its children: those that wait move in the queue, those that run keep their slot."""
    run = state.runs.get(event.id)
    if run is None or event.priority <= run.priority:
        return
    for each in _with_children(run):
        if each.priority < event.priority:
            _raise(state, each, event.priority, event.now_s)


def close(state: SchedulerState, now_s: float) -> None:
    """Park all runs that wait; preempt those that run, which are parked when they have stopped."""
    state.is_closing = True
    for run in state.queue.drain() + state.circuits.drain():
        park(state, run, now_s)
    for host in state.hosts.values():
        for slot in host.slots.values():
            if not slot.is_stopping() or slot.is_patient:
                state.stop_slot(slot, PreemptRun, StopReason.CLOSING, now_s)


def _scheduled(state: SchedulerState, event: Submitted) -> ScheduledRun:
    state.arrivals += 1
    return ScheduledRun(
        event.id,
        event.kind,
        event.priority,
        event.memory_bytes,
        event.limit_s,
        event.now_s,
        state.arrivals,
        event.epoch,
        event.preemptions,
        event.deaths,
        executed_s=event.executed_s,
        is_isolated=event.is_isolated,
        retries_oom=event.retries_oom,
        queued_s=event.now_s,
        out_since_s=event.now_s,
    )


def _refusal(state: SchedulerState, run: ScheduledRun) -> Refusal | None:
    """Why a submission is refused, None where it is accepted. The circuit comes last: it may make the run a probe."""
    if state.is_closing:
        return Refusal.CLOSING
    if run.id in state.runs:
        return Refusal.ALREADY_KNOWN
    if run.parent is not None and not run.is_isolated:
        return None  # a child has its parent's slot and memory
    if run.parent is None and state.queue.count(run.priority) >= state.limits.queue_depth:
        return Refusal.QUEUE_FULL
    if run.declared_bytes and state.index.has_slots and not state.index.could_ever_hold(run, run.declared_bytes):
        return Refusal.BUDGET_TOO_SMALL
    return None if state.circuits.accepts(run, run.submitted_s) else Refusal.CIRCUIT_OPEN


def _reject(state: SchedulerState, run: ScheduledRun, refusal: Refusal) -> RejectRun:
    return RejectRun(
        id=run.id,
        refusal=refusal,
        depth=state.queue.count(run.priority),
        wait_s=state.expected_wait_s(run.priority),
        retry_at_s=state.circuits.next_probe_s(run.kind) if refusal is Refusal.CIRCUIT_OPEN else None,
    )


def _count(state: SchedulerState, run: ScheduledRun, slot: Slot, event: AttemptEnded) -> None:
    """Count the time and memory that the attempt took."""
    if run.started_s is not None:
        run.executed_s += event.now_s - run.started_s
    if run is not slot.root:
        return
    if event.cause in _SHOWS_NEED:
        # One request may have been refused far below the limit: what it had says more than what it used.
        peak_bytes = max(event.peak_bytes, slot.peak_bytes, event.limit_bytes)
        state.reservations.ended(run.kind, slot.number, peak_bytes)
    else:
        state.reservations.cut_short(run.kind, slot.number)
    if event.cause in _IS_OVER:
        state.note_run(run.executed_s)


def _note_crash(state: SchedulerState, run: ScheduledRun, event: AttemptEnded) -> None:
    """Count a crash of the run's worker as a failure of its kind, though the run is started again."""
    is_crash = event.cause is ExitCause.LOST and run.stopping is None and event.is_own
    if is_crash and (note := state.circuits.count(run, event.cause, event.now_s)):
        state.commands.append(note)


def _come_back(state: SchedulerState, run: ScheduledRun, slot: Slot, now_s: float) -> None:
    root = slot.root
    run.returns_below, run.out_since_s = _returns_below(run), now_s
    if (ran_s := _time_not_waited_s(run, slot, now_s)) > 0:
        age_from(state, run, run.queued_s + ran_s)
    run.started_s = run.stopping = None  # of this attempt; the next starts anew
    run.has_progress, run.side_effects = False, 0
    if run is root:
        run.phase = HELD
        _stop_with_root(state, slot, now_s)
    elif ancestor := live_ancestor(state, run):
        join_parent(state, run, ancestor, now_s)
    elif slot.running and not slot.is_stopping() and not slot.is_waiting and not run.deaths:
        enter_slot(state, run, slot)
    else:
        _wait(state, run, now_s)


def _stop_with_root(state: SchedulerState, slot: Slot, now_s: float) -> None:
    """Children in the same worker start again with their root. Those that were told to stop when it was are not told
    again: they do so at their next step, once a side effect that is in flight is over.
    """
    if slot.running and not slot.is_stopping():
        state.stop_slot(slot, PreemptRun, StopReason.WITH_PARENT, now_s)


def age_from(state: SchedulerState, run: ScheduledRun, queued_s: float) -> None:
    """Count the age of a run from then on. The parent that waits for an isolated child stays behind it."""
    run.queued_s = queued_s
    parent = run.parent if run.is_isolated else None
    if parent is None or parent.queued_s > queued_s or not state.knows(parent):
        return
    if is_in_line := parent.phase is WAITING and not parent.too_large_bytes:
        state.queue.remove(parent)
    age_from(state, parent, queued_s + _AHEAD_OF_PARENT_S)
    if is_in_line:
        state.queue.add(parent)


def _time_not_waited_s(run: ScheduledRun, slot: Slot, now_s: float) -> float:
    """For how long a run that made room for a higher one does not age: while it ran, or it would be first again."""
    return now_s - slot.started_s if run.stopping is StopReason.MAKES_ROOM else 0.0


def _wait_no_longer_with(state: SchedulerState, parent: ScheduledRun) -> None:
    """Put a run in line again that was stopped for an isolated child, which fitted nowhere and has ended."""
    head = parent.held_by or parent
    is_in_queue = head.phase is WAITING and state.knows(head) and not state.is_closing
    if head.too_large_bytes and is_in_queue:
        state.queue.bring_back(head)
        state.enqueue(head)


def _wait(state: SchedulerState, run: ScheduledRun, now_s: float) -> None:
    run.slot = None
    if state.is_closing:
        park(state, run, now_s)
    else:
        state.enqueue(run)


def _leave_children(state: SchedulerState, run: ScheduledRun, now_s: float) -> None:
    """Children that waited for a run that has ended go on with an ancestor, or by themselves."""
    children, run.children = run.children, {}
    for child in children.values():
        child.held_by = None
    for child in children.values():
        if ancestor := live_ancestor(state, child):
            join_parent(state, child, ancestor, now_s)
        else:
            _wait(state, child, now_s)


def _with_children(run: ScheduledRun) -> list[ScheduledRun]:
    """A run and its children, theirs too: in its slot, in slots of their own, or waiting for it."""
    if run.slot is None and not run.children and not run.isolated_children:
        return [run]  # nearly all that wait
    found, unseen = dict[int, ScheduledRun](), [run]
    while unseen:
        each = unseen.pop()
        if each.id not in found:
            found[each.id] = each
            in_slot = each.slot.running if each.slot is not None and each.slot.root is each else {}
            unseen += [*in_slot.values(), *each.children.values(), *each.isolated_children.values()]
    return list(found.values())


def _raise(state: SchedulerState, run: ScheduledRun, priority: Priority, now_s: float) -> None:
    is_in_queue = run.phase is WAITING
    if is_in_queue:
        state.queue.bring_back(run)
    before, run.priority = run.priority, priority
    if run.slot is not None and run.slot.root is run:
        state.hosts[run.slot.host].note_priority(run.slot, before)
    if priority is Priority.CRITICAL:  # the pressure that stopped it does not keep CRITICAL runs out
        run.returns_below = max(run.returns_below, Pressure.EMERGENCY)
    state.commands.append(SetPriority(id=run.id, epoch=run.epoch, priority=priority))
    if is_in_queue and not goes_on(run) and state.queue.count(priority) >= state.limits.queue_depth:
        park(state, run, now_s)  # there is no room for it at that level: it waits on disk, as a new one would
    elif is_in_queue:
        state.enqueue(run)


def _returns_below(run: ScheduledRun) -> int:
    """The level below which a stopped run may start again, where memory pressure stopped it."""
    if run.stopping not in (StopReason.PRESSURE, StopReason.EMERGENCY):
        return NEVER_KEPT_OUT
    return Pressure.EMERGENCY if run.priority is Priority.CRITICAL else Pressure.PREEMPTING


def _park(state: SchedulerState, run: ScheduledRun, cause: ExitCause | None, now_s: float) -> None:
    state.commands.append(
        ParkRun(
            id=run.id,
            epoch=run.epoch,
            preemptions=run.preemptions,
            deaths=run.deaths,
            executed_s=run.executed_s,
        )
    )
    _forget(state, run, cause, now_s)


def _forget(state: SchedulerState, run: ScheduledRun, cause: ExitCause | None, now_s: float) -> None:
    del state.runs[run.id]
    if run.is_isolated and run.parent is not None:
        run.parent.isolated_children.pop(run.id, None)
        _wait_no_longer_with(state, run.parent)
    run.slot = None  # a cycle: without this, only the garbage collector would free both
    if note := state.circuits.count(run, None if run.is_blameless else cause, now_s):
        state.commands.append(note)
