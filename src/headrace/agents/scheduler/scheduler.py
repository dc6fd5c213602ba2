"""The scheduler: told what happened, it says what to do. Covers: who hears of which event.

A pure state machine. The same events in the same order give the same commands: time comes with the events, and nothing
here waits, reads or draws lots. agents.scheduler.events has the table of both sides; the decisions are in

    placing      which run starts where           relief       what a memory reading leads to
    lifecycle    what becomes of a run            preemption   who has to go
    verdicts     what an ending means             tenants      how many interviews surveys may have in flight
    host         one budget and what holds it     heartbeats   their lane
    circuits     kinds of task that fail          reservations what runs of a kind need
    passed_over  LOW runs that pressure keeps out
"""

from __future__ import annotations

from typing import assert_never

from headrace.agents.scheduler import lifecycle
from headrace.agents.scheduler.board import FINAL, Board
from headrace.agents.scheduler.events import (
    BeatAdded,
    BeatEnded,
    BeatRemoved,
    Cancelled,
    Closing,
    Command,
    EffectEnded,
    EffectStarting,
    Ended,
    Ending,
    Event,
    HostJoined,
    HostLost,
    MemoryRead,
    Reading,
    Started,
    StepDone,
    Submitted,
    TenantClosed,
    TenantOpened,
    TenantUsed,
    Tick,
    Verdict,
    Why,
)
from headrace.agents.scheduler.host import Host
from headrace.agents.scheduler.placing import dispatch
from headrace.agents.scheduler.relief import take_reading
from headrace.agents.scheduler.snapshot import Snapshot, snapshot_of
from headrace.agents.scheduler.tenants import Tenants
from headrace.limits import BreakerLimits, QueueLimits
from headrace.priority import Priority


class Scheduler:
    def __init__(self, limits: QueueLimits, breaker_limits: BreakerLimits) -> None:
        self._board = Board(limits, breaker_limits)

    def handle(self, event: Event) -> list[Command]:
        """What to do now, in order; bounded by the slots, but for `Closing`, which parks everything."""
        board = self._board
        board.commands = []
        match event:  # the most frequent ones first
            case StepDone():
                lifecycle.step_done(board, event)
                return board.commands
            case Ended():
                lifecycle.ended(board, event)
            case Submitted():
                lifecycle.submitted(board, event)
            case Started():
                lifecycle.started(board, event)
                return board.commands
            case EffectStarting():
                lifecycle.effect_starting(board, event)
                return board.commands
            case EffectEnded():
                lifecycle.effect_ended(board, event)
                return board.commands
            case MemoryRead():
                self._read(event)
                return board.commands
            case Tick():
                self._tick(event.now_s)
            case Cancelled():
                if task := board.tasks.get(event.id):
                    lifecycle.stop_for_good(board, task, Why.CANCELLED, Verdict.CANCELLED, event.now_s)
            case TenantOpened() | TenantUsed() | TenantClosed():
                self._tenant(event)
            case BeatAdded() | BeatRemoved() | BeatEnded():
                self._beat(event)
            case HostJoined():
                self._join(event)
            case HostLost():
                self._lose(event.host, event.now_s)
            case Closing():
                lifecycle.close(board, event.now_s)
            case _:
                assert_never(event)
        dispatch(board, event.now_s)
        return board.commands

    def __len__(self) -> int:
        """Runs that wait, are held or run: each was accepted and has not ended."""
        return len(self._board.tasks)

    def has_room(self, level: Priority) -> bool:
        """Whether a submission would not be refused for the queue's depth."""
        return not self._board.is_closing and self._board.waiting.count(level) < self._board.limits.queue_depth

    def refuses(self, kind: str, now_s: float) -> bool:
        """Whether the circuit of a kind is open: a submission need not wait for room to hear that."""
        return self._board.circuits.refuses(kind, now_s)

    def next_probe_s(self, kind: str) -> float | None:
        return self._board.circuits.next_probe_s(kind)

    def expected_wait_s(self, level: Priority) -> float:
        return self._board.expected_wait_s(level)

    def next_tick_s(self) -> float | None:
        """When time alone will have changed something: a heartbeat, a time limit, a probe."""
        board = self._board
        times = (board.heartbeats.next_tick_s(), board.next_deadline_s(), board.circuits.next_tick_s())
        return min((at_s for at_s in times if at_s is not None), default=None)

    def snapshot(self) -> Snapshot:
        return snapshot_of(self._board)

    def _read(self, event: MemoryRead) -> None:
        """Runs have their choice first: surveys get what is left, or give back what the next run needs."""
        if host := self._board.hosts.get(event.host):
            take_reading(self._board, host, event)
            dispatch(self._board, event.now_s)
            self._board.commands += host.regrant()

    def _tick(self, now_s: float) -> None:
        board = self._board
        for task in board.overdue(now_s):
            lifecycle.stop_for_good(board, task, Why.TIMED_OUT, Verdict.TIMED_OUT, now_s)
        if not board.is_closing:
            board.commands += board.heartbeats.tick(now_s, self._reading_of)

    def _reading_of(self, name: str) -> Reading | None:
        host = self._board.hosts.get(name)
        return host.reading if host else None

    def _tenant(self, event: TenantOpened | TenantUsed | TenantClosed) -> None:
        if isinstance(event, TenantOpened):
            if host := self._board.hosts.get(event.host):
                host.tenants.open(event)
            return
        tenants = self._tenants_with(event.tenant)
        if tenants is None:
            return
        if isinstance(event, TenantUsed):
            tenants.used(event)
        else:
            tenants.close(event.tenant)

    def _tenants_with(self, tenant: str) -> Tenants | None:
        return next((host.tenants for host in self._board.hosts.values() if tenant in host.tenants.by_id), None)

    def _beat(self, event: BeatAdded | BeatRemoved | BeatEnded) -> None:
        heartbeats = self._board.heartbeats
        match event:
            case BeatAdded():
                heartbeats.add(event)
            case BeatRemoved():
                heartbeats.remove(event.name)
            case BeatEnded():
                heartbeats.ended(event.name, event.epoch)
        self._tick(event.now_s)

    def _join(self, event: HostJoined) -> None:
        self._lose(event.host, event.now_s)  # one of that name is no longer what it was
        turn_s = self._board.limits.aging_s
        self._board.hosts[event.host] = Host(event.host, event.slots, event.limits, turn_s)
        self._board.waiting.passed_over.end()

    def _lose(self, name: str, now_s: float) -> None:
        host = self._board.hosts.get(name)
        if host is None:
            return
        for family in list(host.families.values()):
            family.stop_sent_s = now_s  # nothing joins it any more
            for task in reversed(list(family.running.values())):  # children first: nobody is left to be told to stop
                task.stopping = task.stopping if task.stopping in FINAL else Why.HOST_LOST  # not the run's fault
                ended = Ended(now_s=now_s, id=task.id, epoch=task.epoch, ending=Ending.LOST)
                lifecycle.ended(self._board, ended)
        del self._board.hosts[name]
