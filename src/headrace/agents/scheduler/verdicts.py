"""What the end of an attempt means for its run. Covers: again, for good, or parked. Does not cover: acting on it.

done, failed                      for good
told to stop: cancelled, too long for good, however the attempt ended
preempted, killed beside others   again: journaled work is never repeated
out of memory, killed alone       again once, alone and with more memory where there is more; then for good. A child
                                  with all of its family (agents.scheduler.families)
lost                              again, a few times: the next may be lost for its own fault
parked                            on disk until its time or its message comes
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from headrace.agents.scheduler.events import Ending, Verdict, Why
from headrace.agents.scheduler.task_states import Task
from headrace.limits import QueueLimits

_MOST_DEATHS = 1
_ENDED_WELL, _DONE = Ending.DONE, Verdict.DONE  # by themselves: see agents.scheduler.task_states


class Again(Enum):
    AGAIN = "again"
    PARKED = "parked"


def judge(task: Task, ending: Ending, limits: QueueLimits, *, was_alone: bool) -> Verdict | Again:
    """Also counts what led to it."""
    if ending is _ENDED_WELL:
        return _DONE
    if task.stopping is Why.CANCELLED:
        return Verdict.CANCELLED
    if task.stopping is Why.TIMED_OUT:
        return Verdict.TIMED_OUT
    match ending:
        case Ending.FAILED:
            return Verdict.FAILED
        case Ending.PARKED:
            return Again.PARKED
        case Ending.OUT_OF_MEMORY:
            return _died(task)
        case Ending.PREEMPTED | Ending.LOST:
            return _stopped(task, ending, limits, was_alone=was_alone)
        case _:
            assert_never(ending)


def _died(task: Task) -> Verdict | Again:
    task.deaths += 1
    return Again.AGAIN if task.deaths <= _MOST_DEATHS else Verdict.OUT_OF_MEMORY


def _stopped(task: Task, ending: Ending, limits: QueueLimits, *, was_alone: bool) -> Verdict | Again:
    if task.stopping is Why.EMERGENCY and was_alone:
        return _died(task)  # there was nobody else to blame
    if task.stopping is None and ending is Ending.LOST:
        task.losses += 1
        return Again.AGAIN if task.losses <= limits.most_losses else Verdict.LOST
    if task.stopping in (Why.PRESSURE, Why.EMERGENCY, Why.MAKES_ROOM):
        task.preemptions += 1
    return Again.AGAIN
