"""A scheduler with one host and a clock that tests set, for tests of single rules."""

from typing import Any

from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    EndRun,
    HostJoined,
    KillRun,
    MemoryMeasured,
    PreemptRun,
    RejectRun,
    SchedulerCommand,
    SchedulerEvent,
    SkipRun,
    StartRun,
    StepJournaled,
    Submitted,
    Tick,
)
from headrace.agents.scheduler.scheduler import Scheduler
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, MemoryLimits, QueueLimits
from headrace.priority import Priority

LIMITS = MemoryLimits(budget_bytes=1000)


class Driver:
    """`ids` of runs count up from 1; `sent` is everything the scheduler asked for, in order."""

    def __init__(self, slots: int = 2, floor: int = 0, **queue: float) -> None:
        limits = {"slot_memory_bytes": 400, "least_run_bytes": 10, **queue}
        self.scheduler = Scheduler(QueueLimits(**limits), BreakerLimits())
        self.now_s = 0.0
        self.sent: list[SchedulerCommand] = []
        self.epochs: dict[int, int] = {}
        self._ids = 0
        self.tell(HostJoined(now_s=0.0, host="here", slots=slots, limits=LIMITS))
        self.read(floor)

    def tell(self, event: SchedulerEvent) -> list[SchedulerCommand]:
        commands = self.scheduler.handle(event)
        self.sent += commands
        for command in commands:
            if isinstance(command, StartRun):
                self.epochs[command.id] = command.epoch
        return commands

    def submit(
        self, priority: Priority = Priority.HIGH, kind: str = "known", memory: int | None = 100, **more: Any
    ) -> int:
        self._ids += 1
        self.tell(Submitted(now_s=self.now_s, id=self._ids, kind=kind, priority=priority, memory_bytes=memory, **more))
        return self._ids

    def started(self, run: int) -> None:
        self.tell(AttemptStarted(now_s=self.now_s, id=run, epoch=self.epochs[run]))

    def step(self, run: int) -> list[SchedulerCommand]:
        return self.tell(StepJournaled(now_s=self.now_s, id=run, epoch=self.epochs[run]))

    def end(self, run: int, cause: ExitCause = ExitCause.DONE, peak: int = 0, **more: Any) -> list[SchedulerCommand]:
        ended = AttemptEnded(now_s=self.now_s, id=run, epoch=self.epochs[run], cause=cause, peak_bytes=peak, **more)
        return self.tell(ended)

    def read(self, used: int, **by_run: int) -> list[SchedulerCommand]:
        told = tuple((int(name[1:]), memory) for name, memory in by_run.items())
        return self.tell(MemoryMeasured(now_s=self.now_s, host="here", used_bytes=used, by_run=told))

    def wait(self, seconds: float, used: int | None = None) -> list[SchedulerCommand]:
        """Time passes, with a reading every half second."""
        commands: list[SchedulerCommand] = []
        for _ in range(max(1, int(seconds * 2))):
            self.now_s += seconds / max(1, int(seconds * 2))
            if used is not None:
                commands += self.read(used)
            commands += self.tell(Tick(now_s=self.now_s))
        return commands


def starts(commands: list[SchedulerCommand]) -> list[int]:
    return [command.id for command in commands if isinstance(command, StartRun)]


def preempts(commands: list[SchedulerCommand]) -> list[int]:
    return [command.id for command in commands if isinstance(command, PreemptRun)]


def kills(commands: list[SchedulerCommand]) -> list[int]:
    return [command.id for command in commands if isinstance(command, KillRun)]


def skips(commands: list[SchedulerCommand]) -> list[int]:
    return [command.id for command in commands if isinstance(command, SkipRun)]


def settled(commands: list[SchedulerCommand]) -> list[tuple[int, str]]:
    return [(command.id, command.cause.name) for command in commands if isinstance(command, EndRun)]


def refused(commands: list[SchedulerCommand]) -> list[RejectRun]:
    return [command for command in commands if isinstance(command, RejectRun)]
