"""The lane of heartbeats. Covers: when each beats, is skipped, is late. They take no slot from runs.

Never two of one name at once; beats that were missed, by a busy loop or a long beat, become one. One that is told to
stop gives its place to others at once, since it may never end. Does not cover: what a heartbeat does.
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
    is_owed: bool = False  # one became due while the last was running, or while the lane was full
    is_removed: bool = False
    was_killed: bool = False


class Heartbeats:
    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self._beats: dict[str, ScheduledHeartbeat] = {}
        self._due: list[tuple[float, str, int]] = []  # the epoch whose time is up, or _IS_DUE
        self._owed: deque[ScheduledHeartbeat] = deque()  # each at most once
        self._running = 0

    def add(self, added: HeartbeatAdded) -> None:
        """One that is known, even if only as the last beat of one that was removed, gets a new rhythm."""
        first_s = added.now_s + added.every_s * added.jitter
        beat = self._beats.get(added.name)
        if beat is None:
            beat = self._beats[added.name] = ScheduledHeartbeat(
                added.name, added.host, added.every_s, added.limit_s, first_s
            )
        beat.host, beat.every_s, beat.limit_s, beat.due_s = added.host, added.every_s, added.limit_s, first_s
        beat.is_removed = False
        heapq.heappush(self._due, (first_s, added.name, _IS_DUE))

    def remove(self, name: str) -> None:
        """One that is running is known until it ends: no other of its name may start before."""
        if beat := self._beats.get(name):
            beat.is_removed = True
            self._forget_if_over(beat)

    def _forget_if_over(self, beat: ScheduledHeartbeat) -> None:
        if beat.is_removed and not beat.is_running:
            del self._beats[beat.name]

    def next_tick_s(self) -> float | None:
        return self._due[0][0] if self._due else None

    def ended(self, name: str, epoch: int) -> None:
        beat = self._beats.get(name)
        if beat is not None and beat.is_running and beat.epoch == epoch:
            beat.is_running = False
            self._running -= not beat.was_killed
            self._forget_if_over(beat)

    def tick(self, now_s: float, reading_of: Callable[[str], MemoryReading | None]) -> list[SchedulerCommand]:
        """At most two commands for each heartbeat that is due."""
        commands: list[SchedulerCommand] = []
        while self._due and self._due[0][0] <= now_s:
            due_s, name, epoch = heapq.heappop(self._due)
            beat = self._beats.get(name)
            if beat is not None and epoch != _IS_DUE:
                commands += self._time_is_up(beat, epoch)
            elif beat is not None and not beat.is_removed and due_s == beat.due_s:
                commands += self._beat_is_due(beat, now_s)
        return commands + self._start_owed(now_s, reading_of)

    def _beat_is_due(self, beat: ScheduledHeartbeat, now_s: float) -> list[SchedulerCommand]:
        missed = (now_s - beat.due_s) // beat.every_s
        beat.due_s += (missed + 1) * beat.every_s
        heapq.heappush(self._due, (beat.due_s, beat.name, _IS_DUE))
        was_owed, beat.is_owed = beat.is_owed, True
        if not was_owed:
            self._owed.append(beat)
        if beat.is_running:
            return self._skip(beat, StopReason.STILL_RUNNING, None)
        return self._skip(beat, StopReason.LANE_FULL, None) if was_owed and self._is_full() else []

    def _time_is_up(self, beat: ScheduledHeartbeat, epoch: int) -> list[SchedulerCommand]:
        if not beat.is_running or beat.epoch != epoch or beat.was_killed:
            return []
        beat.was_killed = True
        self._running -= 1
        return [KillHeartbeat(name=beat.name, epoch=epoch)]

    def _start_owed(self, now_s: float, reading_of: Callable[[str], MemoryReading | None]) -> list[SchedulerCommand]:
        commands: list[SchedulerCommand] = []
        for _ in range(len(self._owed)):
            if self._is_full():
                break
            beat = self._owed.popleft()
            if beat.is_running and not beat.is_removed:
                self._owed.append(beat)
                continue
            beat.is_owed = False
            if not beat.is_removed:
                commands += self._start_or_skip(beat, now_s, reading_of(beat.host))
        return commands

    def _is_full(self) -> bool:
        return self._running >= self._limits.heartbeats_at_once

    def _start_or_skip(
        self, beat: ScheduledHeartbeat, now_s: float, reading: MemoryReading | None
    ) -> list[SchedulerCommand]:
        if may_beat(reading):
            beat.skips, beat.was_killed, beat.is_running = 0, False, True
            beat.epoch += 1
            self._running += 1
            heapq.heappush(self._due, (now_s + beat.limit_s, beat.name, beat.epoch))
            return [StartHeartbeat(name=beat.name, epoch=beat.epoch)]
        return self._skip(beat, StopReason.PRESSURE, reading)

    def _skip(self, beat: ScheduledHeartbeat, why: StopReason, reading: MemoryReading | None) -> list[SchedulerCommand]:
        beat.skips += 1
        return [SkipHeartbeat(name=beat.name, skips=beat.skips, why=why, reading=reading)]


def may_beat(reading: MemoryReading | None) -> bool:
    """A host nobody knows has no memory to spare."""
    return reading is not None and reading.pressure is Pressure.NORMAL
