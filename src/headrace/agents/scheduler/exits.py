"""Decides what follows when an attempt ends: the run ends for good, starts again, or is parked.

    the attempt's exit cause                what follows
    done, failed                            the run ends so
    any, after a cancellation or timeout    the run ends as cancelled or timed out
    preempted, killed beside others, or     it starts again: journaled work is never repeated
      out of memory while it makes way
    out of memory, or killed alone,         it starts again once, with more memory where there is more, and a child
      after it used what it was owed        together with its parent (`child_runs`); then it ends as out of memory. One
                                            that is not to be tried again ends at once
    out of memory, or killed alone,         it starts again, and reserves more: others had that memory, and this counts
      and it used less than it was owed     as a preemption, but not where it had to go on after a wait with less
    lost                                    it starts again a few times, as the fault may be its own; then ends as lost,
                                            and its children in the same worker with it
    lost with the warden                    it starts again: any run may have ended it, or none. One that computed then
                                            and had journaled nothing is suspected: after a few times in a row it starts
                                            alone, and if the warden ends again, the run ends as lost
    parked, undecided                       it waits on disk for its time, its message or a decision

What a run is owed is what it declares, else a slot's memory as far as the host has it; on its second try, what it
reserved for that (`hosts.host_budget`).
Does not cover: carrying that out (`lifecycle`).
"""

from __future__ import annotations

from enum import Enum

from headrace.agents.scheduler.events import AttemptEnded, StopReason
from headrace.agents.scheduler.scheduled_runs import ScheduledRun, Slot
from headrace.exit_causes import ExitCause
from headrace.limits import QueueLimits

_MOST_DEATHS = 1
_NO_LESS = 0.9  # of what the first try had: with less, the second would be in vain
_MAKES_WAY = (StopReason.PRESSURE, StopReason.MAKES_ROOM, StopReason.OTHERS_NEED_IT, StopReason.PROMISED_BEFORE)
_FOR_MEMORY = (StopReason.PRESSURE, StopReason.EMERGENCY, StopReason.OTHERS_NEED_IT)
_DONE = ExitCause.DONE  # by itself: see `scheduled_runs`
FINAL_CAUSES = {
    StopReason.CANCELLED: ExitCause.CANCELLED,
    StopReason.TIMED_OUT: ExitCause.TIMED_OUT,
    StopReason.PARENT_LOST: ExitCause.LOST,
}


class ComesBack(Enum):
    """The run has not ended: it waits for its next start here, or on disk."""

    AGAIN = "again"
    LATER = "later"


def decide_after_exit(
    run: ScheduledRun, event: AttemptEnded, limits: QueueLimits, slot: Slot, owed_bytes: int, *, was_alone: bool
) -> ExitCause | ComesBack:
    """Return how the run ends, or that it comes back; count the death, loss or preemption that led to it. `slot` is the
    one that it left, where it `was_alone` on its host, and its runs were owed so much memory.
    """
    cause = event.cause
    if cause is _DONE:
        return _DONE
    owed_bytes = max(owed_bytes, limits.least_run_bytes)  # a host that has nothing left proves nothing
    if run.stopping in FINAL_CAUSES:
        return FINAL_CAUSES[run.stopping]
    match cause:
        case ExitCause.PARKED | ExitCause.UNDECIDED:
            return ComesBack.LATER
        case ExitCause.OUT_OF_MEMORY if run.stopping in _MAKES_WAY:  # its limit came down before it could stop
            return _stopped(run, cause, limits)
        case ExitCause.OUT_OF_MEMORY:
            run.needs_bytes = max(run.needs_bytes, int(event.limit_bytes * _NO_LESS))
            return _out_of_memory(run, slot, event.limit_bytes or owed_bytes, owed_bytes)
        case ExitCause.PREEMPTED | ExitCause.LOST:
            if run.stopping is StopReason.EMERGENCY and was_alone:  # no other run held that memory
                return _out_of_memory(run, slot, max(event.peak_bytes, slot.in_use_bytes), owed_bytes)
            if not _is_counted(run, event):
                return _lost_with_warden(run, slot, limits)
            return _stopped(run, cause, limits)
        case _:
            return cause


def _out_of_memory(run: ScheduledRun, slot: Slot, had_bytes: int, owed_bytes: int) -> ExitCause | ComesBack:
    if not _is_its_own(had_bytes, owed_bytes):
        run.preemptions += _is_like_a_preemption(slot)
        run.needs_bytes = max(run.needs_bytes, min(2 * had_bytes, owed_bytes))
        return ComesBack.AGAIN
    run.deaths += 1
    return ComesBack.AGAIN if _is_tried_again(run) else ExitCause.OUT_OF_MEMORY


def _is_like_a_preemption(slot: Slot) -> bool:
    """Whether a run that met a limit below what it was owed is the sooner alone for it: not where it had to go on after
    a wait with less than its promise. It comes back with its promise.
    """
    return not slot.is_short


def _is_tried_again(run: ScheduledRun) -> bool:
    return run.retries_oom and run.deaths <= _MOST_DEATHS


def _is_its_own(had_bytes: int, owed_bytes: int) -> bool:
    """Whether a run that ran out of memory had all that it was owed."""
    return had_bytes >= owed_bytes


def _is_counted(run: ScheduledRun, event: AttemptEnded) -> bool:
    """Whether a stop or a loss counts: not where all workers ended with the warden."""
    return event.is_own or run.stopping is not None


def _lost_with_warden(run: ScheduledRun, slot: Slot, limits: QueueLimits) -> ExitCause | ComesBack:
    """Blame a run for the end of the warden only where it computed alone (`hosts.needs`): others may be the cause."""
    if slot.is_waiting:
        return ComesBack.AGAIN
    if run.has_progress or any(other.has_progress for other in slot.running.values()):
        run.warden_ends = 0
        return ComesBack.AGAIN
    run.warden_ends += 1
    return ExitCause.LOST if _ends_the_warden(run, slot, limits) else ComesBack.AGAIN


def _ends_the_warden(run: ScheduledRun, slot: Slot, limits: QueueLimits) -> bool:
    return slot.is_alone and not slot.was_joined and run.warden_ends > limits.most_losses


def _stopped(run: ScheduledRun, cause: ExitCause, limits: QueueLimits) -> ExitCause | ComesBack:
    if run.stopping is None and cause is ExitCause.LOST:
        run.losses += 1
        return ComesBack.AGAIN if run.losses <= limits.most_losses else ExitCause.LOST
    if run.stopping in _FOR_MEMORY:
        run.preemptions += 1
    return ComesBack.AGAIN
