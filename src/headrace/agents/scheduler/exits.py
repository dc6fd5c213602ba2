"""Decides what follows when an attempt ends: the run ends for good, starts again, or is parked.

    the attempt's exit cause                what follows
    done, failed                            the run ends so
    any, after a cancellation or timeout    the run ends as cancelled or timed out
    preempted, or killed beside others      it starts again: journaled work is never repeated
    out of memory, or killed alone          it starts again once, alone and with more memory where there is more, and a
                                            child together with its parent (`child_runs`); then it ends as out of memory
    lost                                    it starts again a few times, as the fault may be its own; then ends as lost
    parked, undecided                       it waits on disk for its time, its message or a decision

Does not cover: carrying that out (`lifecycle`).
"""

from __future__ import annotations

from enum import Enum

from headrace.agents.scheduler.events import StopReason
from headrace.agents.scheduler.scheduled_runs import ScheduledRun
from headrace.exit_causes import ExitCause
from headrace.limits import QueueLimits

_MOST_DEATHS = 1
_DONE = ExitCause.DONE  # by itself: see `scheduled_runs`
FINAL_CAUSES = {StopReason.CANCELLED: ExitCause.CANCELLED, StopReason.TIMED_OUT: ExitCause.TIMED_OUT}


class ComesBack(Enum):
    """The run has not ended: it waits for its next start here, or on disk."""

    AGAIN = "again"
    LATER = "later"


def decide_after_exit(
    run: ScheduledRun, cause: ExitCause, limits: QueueLimits, *, was_alone: bool
) -> ExitCause | ComesBack:
    """Return how the run ends, or that it comes back; count the death, loss or preemption that led to it."""
    if cause is _DONE:
        return _DONE
    if run.stopping in FINAL_CAUSES:
        return FINAL_CAUSES[run.stopping]
    match cause:
        case ExitCause.PARKED | ExitCause.UNDECIDED:
            return ComesBack.LATER
        case ExitCause.OUT_OF_MEMORY:
            return _out_of_memory(run)
        case ExitCause.PREEMPTED | ExitCause.LOST:
            return _stopped(run, cause, limits, was_alone=was_alone)
        case _:
            return cause


def _out_of_memory(run: ScheduledRun) -> ExitCause | ComesBack:
    run.deaths += 1
    return ComesBack.AGAIN if run.deaths <= _MOST_DEATHS else ExitCause.OUT_OF_MEMORY


def _stopped(run: ScheduledRun, cause: ExitCause, limits: QueueLimits, *, was_alone: bool) -> ExitCause | ComesBack:
    if run.stopping is StopReason.EMERGENCY and was_alone:
        return _out_of_memory(run)  # no other run held that memory
    if run.stopping is None and cause is ExitCause.LOST:
        run.losses += 1
        return ComesBack.AGAIN if run.losses <= limits.most_losses else ExitCause.LOST
    if run.stopping in (StopReason.PRESSURE, StopReason.EMERGENCY, StopReason.MAKES_ROOM):
        run.preemptions += 1
    return ComesBack.AGAIN
