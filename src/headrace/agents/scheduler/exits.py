"""What the end of an attempt means for its run. Covers: again, for good, or parked. Does not cover: acting on it.

done, failed                      for good
told to stop: cancelled, too long for good, however the attempt ended
preempted, killed beside others   again: journaled work is never repeated
out of memory, killed alone       again once, alone and with more memory where there is more; then for good. A child
                                  with all of its slot (agents.scheduler.children)
lost                              again, a few times: the next may be lost for its own fault
parked                            on disk until its time or its message comes
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from headrace.agents.scheduler.events import Ending, StopReason, Verdict
from headrace.agents.scheduler.scheduled_runs import ScheduledRun
from headrace.limits import QueueLimits

_MOST_DEATHS = 1
_ENDED_WELL, _DONE = Ending.DONE, Verdict.DONE  # by themselves: see agents.scheduler.scheduled_runs


class Again(Enum):
    AGAIN = "again"
    PARKED = "parked"


def judge(run: ScheduledRun, ending: Ending, limits: QueueLimits, *, was_alone: bool) -> Verdict | Again:
    """Also counts what led to it."""
    if ending is _ENDED_WELL:
        return _DONE
    if run.stopping is StopReason.CANCELLED:
        return Verdict.CANCELLED
    if run.stopping is StopReason.TIMED_OUT:
        return Verdict.TIMED_OUT
    match ending:
        case Ending.FAILED:
            return Verdict.FAILED
        case Ending.PARKED:
            return Again.PARKED
        case Ending.OUT_OF_MEMORY:
            return _died(run)
        case Ending.PREEMPTED | Ending.LOST:
            return _stopped(run, ending, limits, was_alone=was_alone)
        case _:
            assert_never(ending)


def _died(run: ScheduledRun) -> Verdict | Again:
    run.deaths += 1
    return Again.AGAIN if run.deaths <= _MOST_DEATHS else Verdict.OUT_OF_MEMORY


def _stopped(run: ScheduledRun, ending: Ending, limits: QueueLimits, *, was_alone: bool) -> Verdict | Again:
    if run.stopping is StopReason.EMERGENCY and was_alone:
        return _died(run)  # there was nobody else to blame
    if run.stopping is None and ending is Ending.LOST:
        run.losses += 1
        return Again.AGAIN if run.losses <= limits.most_losses else Verdict.LOST
    if run.stopping in (StopReason.PRESSURE, StopReason.EMERGENCY, StopReason.MAKES_ROOM):
        run.preemptions += 1
    return Again.AGAIN
