"""Events into the scheduler one at a time, commands out to whoever acts on them. Covers: that neither overtakes.

Acting on a command may lead to the next event: it waits until all commands of the last one are carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from headrace.agents.scheduler.events import RejectRun, SchedulerCommand, SchedulerEvent, Submitted
from headrace.agents.scheduler.scheduler import Scheduler


class SchedulerDriver:
    """`act` carries out a command; `rested` is asked when nothing is left to tell, and may `offer` new work."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.act: Callable[[SchedulerCommand], None] = lambda _: None
        self.rested: Callable[[], bool] = lambda: False
        self._told: deque[SchedulerEvent] = deque()  # as many as one event's commands lead to
        self._is_busy = False

    def tell(self, *events: SchedulerEvent) -> None:
        self._told.extend(events)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            self._drain()
        finally:
            self._is_busy = False

    def offer(self, submitted: Submitted) -> RejectRun | None:
        """Submit at once; only from `rested`."""
        refused: RejectRun | None = None
        for command in self.scheduler.handle(submitted):
            if isinstance(command, RejectRun):
                refused = command
            else:
                self.act(command)
        return refused

    def _drain(self) -> None:
        while True:
            while self._told:
                for command in self.scheduler.handle(self._told.popleft()):
                    self.act(command)
            if not self.rested():
                return
