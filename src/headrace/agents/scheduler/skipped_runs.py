"""LOW runs that memory pressure keeps out. Covers: who is told so, once in each episode.

They stay in line, lose nothing, and start when the pressure has fallen. Does not cover: heartbeats, whose beat is
skipped for good (agents.scheduler.heartbeats).
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
        self._untold: dict[int, ScheduledRun] | None = (
            None  # LOW runs that wait and do not know; None outside an episode
        )

    def came(self, run: ScheduledRun) -> None:
        """Note that a run joins the queue, new or back from a preemption: a LOW one will be reported as skipped."""
        if self._untold is not None and run.priority is Priority.LOW and run.skipped_in != self._episode:
            self._untold[run.id] = run

    def left(self, run: ScheduledRun) -> None:
        if self._untold is not None:
            self._untold.pop(run.id, None)

    def take(self, waiting: Iterable[ScheduledRun]) -> list[ScheduledRun]:
        """Some to tell now; `waiting` are all LOW ones, looked at when an episode begins."""
        if self._untold is None:
            self._untold = {run.id: run for run in waiting}
        taken = list(islice(self._untold.values(), _MOST_AT_ONCE))
        for run in taken:
            del self._untold[run.id]
            run.skipped_in = self._episode
        return taken

    def end(self) -> None:
        self._untold = None
        self._episode += 1
