"""`Heartbeats` decides when each heartbeat runs, is skipped or is stopped. Heartbeats take no slot from runs.

At most `heartbeats_at_once` run at a time, and never two of one name. Periods that were missed, because the loop was
busy or the last call took long, make one call. A heartbeat that is stopped makes room for others at once, since it may
never end. Does not cover: calling them (agents.engine.heartbeat_calls).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headrace.agents.scheduler.events import (
    HeartbeatAdded,
    KillHeartbeat,
    MemoryReading,
    SchedulerCommand,
    SkipHeartbeat,
    StartHeartbeat,
    StopReason,
)
from headrace.limits import QueueLimits
from headrace.memory.governor import Pressure

_IS_DUE = -1


@dataclass(slots=True, eq=False)
class ScheduledHeartbeat:
    name: str
    host: str
    every_s: float
    limit_s: float
    due_s: float
    epoch: int = 0
    skips: int = 0
    is_running: bool = False
    is_owed: bool = False  # due, while the last call was running or too many others were
    is_removed: bool = False
    was_killed: bool = False


class Heartbeats:
    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self._by_name: dict[str, ScheduledHeartbeat] = {}
        self._due: list[tuple[float, str, int]] = []  # the epoch whose time is up, or _IS_DUE
        self._owed: deque[ScheduledHeartbeat] = deque()  # each at most once
        self._running = 0

    def add(self, added: HeartbeatAdded) -> None:
        """Add a heartbeat, or give a new period to one of that name, also where it was removed and is still running."""
        first_s = added.now_s + added.every_s * added.jitter
        heartbeat = self._by_name.get(added.name)
        if heartbeat is None:
            heartbeat = self._by_name[added.name] = ScheduledHeartbeat(
                added.name, added.host, added.every_s, added.limit_s, first_s
            )
        heartbeat.host, heartbeat.every_s, heartbeat.limit_s, heartbeat.due_s = (
            added.host,
            added.every_s,
            added.limit_s,
            first_s,
        )
        heartbeat.is_removed = False
        heapq.heappush(self._due, (first_s, added.name, _IS_DUE))

    def remove(self, name: str) -> None:
        """Remove a heartbeat. A call in flight stays known until it ends: no other of that name may start before."""
        if heartbeat := self._by_name.get(name):
            heartbeat.is_removed = True
            self._forget_if_over(heartbeat)

    def _forget_if_over(self, heartbeat: ScheduledHeartbeat) -> None:
        if heartbeat.is_removed and not heartbeat.is_running:
            del self._by_name[heartbeat.name]

    def next_tick_s(self) -> float | None:
        return self._due[0][0] if self._due else None

    def ended(self, name: str, epoch: int) -> None:
        heartbeat = self._by_name.get(name)
        if heartbeat is not None and heartbeat.is_running and heartbeat.epoch == epoch:
            heartbeat.is_running = False
            self._running -= not heartbeat.was_killed
            self._forget_if_over(heartbeat)

    def tick(self, now_s: float, reading_of: Callable[[str], MemoryReading | None]) -> list[SchedulerCommand]:
        """Start, skip or stop the heartbeats that are due: at most two commands for each."""
        commands: list[SchedulerCommand] = []
        while self._due and self._due[0][0] <= now_s:
            due_s, name, epoch = heapq.heappop(self._due)
            heartbeat = self._by_name.get(name)
            if heartbeat is not None and epoch != _IS_DUE:
                commands += self._time_is_up(heartbeat, epoch)
            elif heartbeat is not None and not heartbeat.is_removed and due_s == heartbeat.due_s:
                commands += self._is_due_now(heartbeat, now_s)
        return commands + self._start_owed(now_s, reading_of)

    def _is_due_now(self, heartbeat: ScheduledHeartbeat, now_s: float) -> list[SchedulerCommand]:
        missed = (now_s - heartbeat.due_s) // heartbeat.every_s
        heartbeat.due_s += (missed + 1) * heartbeat.every_s
        heapq.heappush(self._due, (heartbeat.due_s, heartbeat.name, _IS_DUE))
        was_owed, heartbeat.is_owed = heartbeat.is_owed, True
        if not was_owed:
            self._owed.append(heartbeat)
        if heartbeat.is_running:
            return self._skip(heartbeat, StopReason.STILL_RUNNING, None)
        return self._skip(heartbeat, StopReason.LANE_FULL, None) if was_owed and self._is_full() else []

    def _time_is_up(self, heartbeat: ScheduledHeartbeat, epoch: int) -> list[SchedulerCommand]:
        if not heartbeat.is_running or heartbeat.epoch != epoch or heartbeat.was_killed:
            return []
        heartbeat.was_killed = True
        self._running -= 1
        return [KillHeartbeat(name=heartbeat.name, epoch=epoch)]

    def _start_owed(self, now_s: float, reading_of: Callable[[str], MemoryReading | None]) -> list[SchedulerCommand]:
        commands: list[SchedulerCommand] = []
        for _ in range(len(self._owed)):
            if self._is_full():
                break
            heartbeat = self._owed.popleft()
            if heartbeat.is_running and not heartbeat.is_removed:
                self._owed.append(heartbeat)
                continue
            heartbeat.is_owed = False
            if not heartbeat.is_removed:
                commands += self._start_or_skip(heartbeat, now_s, reading_of(heartbeat.host))
        return commands

    def _is_full(self) -> bool:
        return self._running >= self._limits.heartbeats_at_once

    def _start_or_skip(
        self, heartbeat: ScheduledHeartbeat, now_s: float, reading: MemoryReading | None
    ) -> list[SchedulerCommand]:
        if may_run(reading):
            heartbeat.skips, heartbeat.was_killed, heartbeat.is_running = 0, False, True
            heartbeat.epoch += 1
            self._running += 1
            heapq.heappush(self._due, (now_s + heartbeat.limit_s, heartbeat.name, heartbeat.epoch))
            return [StartHeartbeat(name=heartbeat.name, epoch=heartbeat.epoch)]
        return self._skip(heartbeat, StopReason.PRESSURE, reading)

    def _skip(
        self, heartbeat: ScheduledHeartbeat, why: StopReason, reading: MemoryReading | None
    ) -> list[SchedulerCommand]:
        heartbeat.skips += 1
        return [SkipHeartbeat(name=heartbeat.name, skips=heartbeat.skips, why=why, reading=reading)]


def may_run(reading: MemoryReading | None) -> bool:
    """Whether memory allows a heartbeat: not above the first level, nor on a host that has left."""
    return reading is not None and reading.pressure is Pressure.NORMAL
