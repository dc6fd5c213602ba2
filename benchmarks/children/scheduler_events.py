"""What the scheduler takes for each kind of event while so many runs wait: `scheduler_events WAITING`. CPU time.

Each kind comes sixteen times in a row, once for each slot: every `AttemptEnded` starts the next run.
"""

import sys
import time
from collections import Counter

from benchmarks.processes import loop_ms, print_figures
from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    Cancelled,
    EffectEnded,
    EffectStarting,
    HostJoined,
    MemoryMeasured,
    SchedulerEvent,
    StartRun,
    StepJournaled,
    Submitted,
    Tick,
)
from headrace.agents.scheduler.scheduler import Scheduler
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, MemoryLimits, QueueLimits
from headrace.priority import Priority

_SLOTS = 16
_ROUNDS = 200
_LEVELS = (Priority.LOW, Priority.NORMAL, Priority.HIGH)
_MB = 1_000_000


class Clocked:
    """A scheduler, and how long it took over events of each kind."""

    def __init__(self, waiting: int) -> None:
        self.scheduler = Scheduler(QueueLimits(queue_depth=waiting + _ROUNDS * _SLOTS), BreakerLimits())
        self.took_s: Counter[str] = Counter()
        self.running: list[tuple[int, int]] = []  # run, epoch
        self.now_s = 0.0
        self.ids = 0

    def tell(self, events: list[SchedulerEvent]) -> None:
        handle = self.scheduler.handle
        began_s = time.thread_time()
        answers = [handle(event) for event in events]
        self.took_s[type(events[0]).__name__] += time.thread_time() - began_s
        started = [command for commands in answers for command in commands if isinstance(command, StartRun)]
        self.running += [(command.id, command.epoch) for command in started]

    def submit(self) -> SchedulerEvent:
        self.ids += 1
        level = _LEVELS[self.ids % 3]
        return Submitted(now_s=self.now_s, id=self.ids, kind="k", priority=level, memory_bytes=_MB)

    def one_round(self) -> None:
        self.now_s += 0.01
        now_s, running = self.now_s, self.running
        self.running = []
        self.tell([self.submit() for _ in range(_SLOTS)])
        self.tell([AttemptStarted(now_s=now_s, id=run, epoch=epoch) for run, epoch in running])
        self.tell([EffectStarting(now_s=now_s, id=run, epoch=epoch) for run, epoch in running])
        self.tell([EffectEnded(now_s=now_s, id=run, epoch=epoch) for run, epoch in running])
        self.tell([StepJournaled(now_s=now_s, id=run, epoch=epoch) for run, epoch in running])
        self.tell([MemoryMeasured(now_s=now_s, host="h", used_bytes=100 * _MB) for _ in running])
        self.tell([Tick(now_s=now_s) for _ in running])
        self.tell([AttemptEnded(now_s=now_s, id=run, epoch=epoch, cause=ExitCause.DONE) for run, epoch in running])
        self.tell([self.submit() for _ in range(_SLOTS)])
        self.tell([Cancelled(now_s=now_s, id=self.ids - place) for place in range(_SLOTS)])


def main(waiting: int) -> None:
    clocked = Clocked(waiting)
    joined = HostJoined(now_s=0.0, host="h", slots=_SLOTS, limits=MemoryLimits(budget_bytes=512 * _MB))
    clocked.tell([joined])
    clocked.tell([clocked.submit() for _ in range(waiting + _SLOTS)])
    clocked.took_s.clear()
    for _ in range(_ROUNDS):
        clocked.one_round()
    clocked.took_s["Submitted"] /= 2
    mean_us = {name: took_s / (_ROUNDS * _SLOTS) * 1e6 for name, took_s in clocked.took_s.items()}
    print_figures(mean_us=mean_us, loop_ms=loop_ms())


if __name__ == "__main__":
    main(int(sys.argv[1]))
