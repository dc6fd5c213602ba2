"""Everything the scheduler knows, in one place. Covers: the data, looking things up. Does not cover: decisions."""

from __future__ import annotations

import heapq

from headrace.agents.scheduler.circuits import Circuits
from headrace.agents.scheduler.events import Command, Kill, Preempt, Why
from headrace.agents.scheduler.heartbeats import Heartbeats
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.reservations import Reservations
from headrace.agents.scheduler.task_states import RUNNING, Family, Task
from headrace.agents.scheduler.waiting import Waiting
from headrace.limits import BreakerLimits, QueueLimits
from headrace.priority import Priority

_FORGET = 0.9
_DEAD_ALLOWED = 64
FINAL = (Why.CANCELLED, Why.TIMED_OUT)


class Board:
    def __init__(self, limits: QueueLimits, breaker_limits: BreakerLimits) -> None:
        self.limits = limits
        self.hosts: dict[str, Host] = {}
        self.tasks: dict[int, Task] = {}  # waiting, held and running; bounded by the queue's depth and the slots
        self.waiting = Waiting(limits.aging_s)
        self.circuits = Circuits(breaker_limits)
        self.reservations = Reservations()
        self.heartbeats = Heartbeats(limits)
        self.commands: list[Command] = []
        self.is_closing = False
        self.arrivals = 0
        self.starts = 0
        self._deadlines: list[tuple[float, int, int]] = []
        self._run_s = 0.0

    def running(self, id: int, epoch: int) -> Task | None:
        """The task if this is its attempt: what an older one tells is ignored."""
        task = self.tasks.get(id)
        return task if task is not None and task.state is RUNNING and task.epoch == epoch else None

    def knows(self, task: Task) -> bool:
        """Whether it has not ended; another of its id may have come since."""
        return self.tasks.get(task.id) is task

    def expected_wait_s(self, level: Priority) -> float:
        """A guess: those before it, as long as runs took lately, in so many slots."""
        before = sum(self.waiting.count(other) for other in Priority if other >= level)
        return before * self._run_s / max(1, sum(host.slots for host in self.hosts.values()))

    def note_run(self, executed_s: float) -> None:
        self._run_s = executed_s if not self._run_s else self._run_s * _FORGET + executed_s * (1 - _FORGET)

    def set_deadline(self, task: Task, at_s: float) -> None:
        heapq.heappush(self._deadlines, (at_s, task.id, task.epoch))
        if len(self._deadlines) > 2 * len(self.tasks) + _DEAD_ALLOWED:  # most are of runs that ended in time
            self._deadlines = [entry for entry in self._deadlines if self.running(*entry[1:])]
            heapq.heapify(self._deadlines)

    def next_deadline_s(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def overdue(self, now_s: float) -> list[Task]:
        """At most one for each run whose time is up."""
        found: list[Task] = []
        while self._deadlines and self._deadlines[0][0] <= now_s:
            if task := self.running(*heapq.heappop(self._deadlines)[1:]):
                found.append(task)
        return found

    def stop_family(self, family: Family, what: type[Preempt | Kill], why: Why, now_s: float) -> None:
        """Tell all of a family to stop; what stops with its parent comes back with it."""
        family.stop_sent_s = now_s
        family.was_killed = family.was_killed or what is Kill
        for task in list(family.running.values()):
            has_parent = task is not family.root and self.knows(family.root)
            self.stop(task, what, Why.WITH_PARENT if has_parent and why not in FINAL else why)

    def stop(self, task: Task, what: type[Preempt | Kill], why: Why) -> None:
        """A reason to end for good is never replaced by one to come back."""
        if task.stopping in FINAL:
            return
        assert task.family is not None
        task.stopping = why
        host = self.hosts[task.family.host]
        self.commands.append(what(id=task.id, epoch=task.epoch, host=host.name, why=why, reading=host.reading))
