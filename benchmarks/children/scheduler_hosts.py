"""What the scheduler takes for each kind of event with so many runs and hosts: `scheduler_hosts RUNS HOSTS ROUNDS`. CPU
time, with the garbage collector's for what is new.

Each host has sixteen slots; runs that have none wait. Each kind comes sixteen times in a round, on hosts drawn at
random: an `AttemptEnded` starts the next run, a reading tells what each run of its host uses, and what is cancelled
waits anywhere in the queue. With many hosts, some also leave, are lost with all their runs, and join again, which
starts sixteen.
"""

import gc
import random
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
    EndRun,
    HostJoined,
    HostLeaving,
    HostLost,
    MemoryMeasured,
    PreemptRun,
    SchedulerEvent,
    StartRun,
    StepJournaled,
    Submitted,
    Tick,
    WaitBegan,
    WaitOver,
)
from headrace.agents.scheduler.scheduler import Scheduler
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, MemoryLimits, QueueLimits
from headrace.priority import Priority

_SLOTS = 16
_AT_ONCE = 16
_HOSTS_GO_EVERY = 10
_LEVELS = (Priority.LOW, Priority.NORMAL, Priority.HIGH)
_MB = 1_000_000
_LIMITS = MemoryLimits(budget_bytes=512 * _MB)


class Clocked:
    """A scheduler, and how long it took over events of each kind."""

    def __init__(self, runs: int, hosts: int) -> None:
        self.scheduler = Scheduler(QueueLimits(queue_depth=2 * runs), BreakerLimits())
        self.took_s: Counter[str] = Counter()
        self.handled: Counter[str] = Counter()
        self.running: dict[int, StartRun] = {}
        self.on_host: dict[str, dict[int, None]] = {}  # runs, by host
        self.waiting: list[int] = []
        self.stopping: dict[int, PreemptRun] = {}
        self.chance = random.Random(1)
        self.now_s = 0.0
        self.ids = 0
        self.names = [f"host{number}" for number in range(hosts)]

    def tell(self, events: list[SchedulerEvent]) -> None:
        handle = self.scheduler.handle
        if not events:
            return
        began_s = time.thread_time()
        answers = [handle(event) for event in events]
        name = type(events[0]).__name__
        self.took_s[name] += time.thread_time() - began_s
        self.handled[name] += len(events)
        for commands in answers:
            for command in commands:
                self._note(command)

    def _note(self, command: object) -> None:
        if isinstance(command, EndRun | StartRun) and (before := self.running.pop(command.id, None)):
            self.on_host[before.host].pop(command.id, None)
        if isinstance(command, PreemptRun):
            self.stopping[command.id] = command
        if isinstance(command, StartRun):
            self.stopping.pop(command.id, None)
            self.running[command.id] = command
            self.on_host[command.host][command.id] = None

    def stop_what_was_told(self) -> None:
        while self.stopping:
            stopping, self.stopping = self.stopping, {}
            told = [run for run in stopping.values() if run.id in self.running]
            for run in told:
                self.on_host[self.running.pop(run.id).host].pop(run.id)
            if told:
                self.tell([_ended(self.now_s, run, ExitCause.PREEMPTED) for run in told])

    def submit(self) -> SchedulerEvent:
        self.ids += 1
        self.waiting.append(self.ids)
        level = _LEVELS[self.ids % 3]
        return Submitted(now_s=self.now_s, id=self.ids, kind="k", priority=level, memory_bytes=_MB)

    def join(self, name: str) -> SchedulerEvent:
        self.on_host[name] = {}
        return HostJoined(now_s=self.now_s, host=name, slots=_SLOTS, limits=_LIMITS, silent_after_s=30.0)

    def read(self, name: str) -> SchedulerEvent:
        by_run = tuple((run, _MB // 2) for run in self.on_host[name])
        return MemoryMeasured(now_s=self.now_s, host=name, used_bytes=100 * _MB, by_run=by_run)

    def some_names(self) -> list[str]:
        return [self.chance.choice(self.names) for _ in range(_AT_ONCE)]

    def some_running(self) -> list[StartRun]:
        """As many different ones, each the first of a host."""
        hosts = dict.fromkeys(self.chance.choices(self.names, k=4 * _AT_ONCE))
        found = [run for name in hosts for run in list(self.on_host[name])[: max(1, _AT_ONCE // len(hosts))]]
        return [self.running[run] for run in found[:_AT_ONCE]]

    def a_waiting_one(self) -> SchedulerEvent:
        while True:
            place = self.chance.randrange(len(self.waiting))
            self.waiting[place], self.waiting[-1] = self.waiting[-1], self.waiting[place]
            if (run := self.waiting.pop()) not in self.running:
                return Cancelled(now_s=self.now_s, id=run)

    def one_round(self) -> None:
        self.now_s += 0.01
        now_s, runs = self.now_s, self.some_running()
        self.tell([self.submit() for _ in range(_AT_ONCE)])
        for kind in (AttemptStarted, EffectStarting, EffectEnded, StepJournaled, WaitBegan, WaitOver):
            self.tell([kind(now_s=now_s, id=run.id, epoch=run.epoch) for run in runs])
        self.tell([self.read(name) for name in self.some_names()])
        self.tell([Tick(now_s=now_s) for _ in range(_AT_ONCE)])
        runs = self.some_running()
        self.tell([_ended(now_s, run, ExitCause.DONE) for run in runs])
        self.tell([self.submit() for _ in range(_AT_ONCE)])
        self.tell([self.a_waiting_one() for _ in range(_AT_ONCE)])
        self.stop_what_was_told()

    def hosts_come_and_go(self) -> None:
        names = self.chance.sample(self.names, _AT_ONCE)
        self.tell([HostLeaving(now_s=self.now_s, host=name) for name in names])
        self.tell([HostLost(now_s=self.now_s, host=name) for name in names])
        self.tell([self.join(name) for name in names])
        self.tell([self.read(name) for name in names])


def _ended(now_s: float, run: StartRun | PreemptRun, cause: ExitCause) -> AttemptEnded:
    return AttemptEnded(now_s=now_s, id=run.id, epoch=run.epoch, cause=cause)


def main(runs: int, hosts: int, rounds: int) -> None:
    clocked = Clocked(runs, hosts)
    for name in clocked.names:
        clocked.tell([clocked.join(name)])
        clocked.tell([clocked.read(name)])
    clocked.tell([clocked.submit() for _ in range(runs)])
    clocked.stop_what_was_told()
    gc.collect()
    gc.freeze()  # one full pass over all runs, in some ten thousand events, would count for whichever event it hits
    clocked.took_s.clear()
    clocked.handled.clear()
    for number in range(rounds):
        clocked.one_round()
        if hosts > _AT_ONCE and number % _HOSTS_GO_EVERY == 0:
            clocked.hosts_come_and_go()
    mean_us = {name: took_s / clocked.handled[name] * 1e6 for name, took_s in clocked.took_s.items()}
    handled = sum(clocked.handled.values())
    all_us = sum(clocked.took_s.values()) / handled * 1e6
    print_figures(mean_us=mean_us, all_us=all_us, events=handled, runs=len(clocked.scheduler), loop_ms=loop_ms())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
