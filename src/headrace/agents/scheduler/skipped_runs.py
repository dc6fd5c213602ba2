"""`SkippedRuns`: LOW runs that memory pressure keeps out, each recorded as skipped once in an episode of pressure.

They stay in the queue, lose nothing, and start when the pressure has fallen. Does not cover: heartbeats, whose period
is skipped for good (`heartbeats`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from headrace.agents.scheduler.scheduled_runs import ScheduledRun
from headrace.priority import Priority

_MOST_AT_ONCE = 16  # an event leads to few commands, however many wait; the next reading comes soon


class SkippedRuns:
    """An episode begins when a LOW run is first passed over, and ends when a host is calm again."""

    def __init__(self) -> None:
        self._episode = 1
        self._unrecorded: dict[int, ScheduledRun] | None = None  # LOW runs that wait; None outside an episode

    def came(self, run: ScheduledRun) -> None:
        """Note that a run enters the queue, new or back from a preemption: a LOW one will be recorded as skipped."""
        if self._unrecorded is not None and run.priority is Priority.LOW and run.skipped_in != self._episode:
            self._unrecorded[run.id] = run

    def left(self, run: ScheduledRun) -> None:
        if self._unrecorded is not None:
            self._unrecorded.pop(run.id, None)

    def take(self, waiting: Iterable[ScheduledRun]) -> list[ScheduledRun]:
        """Take some runs to record now; `waiting` are all LOW ones, read when an episode begins."""
        if self._unrecorded is None:
            self._unrecorded = {run.id: run for run in waiting}
        taken = list(islice(self._unrecorded.values(), _MOST_AT_ONCE))
        for run in taken:
            del self._unrecorded[run.id]
            run.skipped_in = self._episode
        return taken

    def end(self) -> None:
        self._unrecorded = None
        self._episode += 1
