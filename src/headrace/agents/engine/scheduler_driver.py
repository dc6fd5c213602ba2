"""`SchedulerDriver` hands events to the scheduler one at a time and has its commands carried out in order.

Carrying out a command may cause the next event: that waits until all commands of the event before are carried out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from headrace.agents.scheduler.events import RejectRun, SchedulerCommand, SchedulerEvent, Submitted
from headrace.agents.scheduler.scheduler import Scheduler


class SchedulerDriver:
    """`act` carries out a command. `on_idle` is called when no event is left, and says whether it offered runs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.act: Callable[[SchedulerCommand], None] = lambda _: None
        self.on_idle: Callable[[], bool] = lambda: False
        self._events: deque[SchedulerEvent] = deque()  # as many as one event's commands lead to
        self._is_busy = False

    def send(self, *events: SchedulerEvent) -> None:
        """Handle these events, and runs that `on_idle` offers; without an event, only those runs."""
        self._events.extend(events)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            self._drain()
        finally:
            self._is_busy = False

    def offer(self, submitted: Submitted) -> RejectRun | None:
        """Submit a run at once, only from `on_idle`; return the refusal, None where the run was accepted."""
        refused: RejectRun | None = None
        for command in self.scheduler.handle(submitted):
            if isinstance(command, RejectRun):
                refused = command
            else:
                self.act(command)
        return refused

    def _drain(self) -> None:
        while True:
            while self._events:
                for command in self.scheduler.handle(self._events.popleft()):
                    self.act(command)
            if not self.on_idle():
                return
