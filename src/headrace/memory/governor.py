"""Decides the pressure level from memory readings, with hysteresis. Pure.

Does not cover: taking readings (memory.gauge), or what a level means for admission (interviews.window).
"""

from __future__ import annotations

from enum import IntEnum

from headrace.limits import MemoryLimits


class Pressure(IntEnum):
    NORMAL = 0
    HIGH = 1
    PREEMPTING = 2
    EMERGENCY = 3


NO_PRESSURE = Pressure.NORMAL  # by itself: see agents.scheduler.scheduled_runs


class Governor:
    """A level is entered at once and left only after `calm_s` below its lower line: one low reading is noise.

    `budget_bytes` may fall below the limit's where the host has less left. `zero_bytes` is what the process held before
    any work, and rises where memory that no work holds never falls: levels are shares of what lies between the two.
    """

    def __init__(self, limits: MemoryLimits) -> None:
        self.limits = limits
        self.pressure = Pressure.NORMAL
        self.budget_bytes = limits.budget_bytes
        self.zero_bytes = limits.base_bytes
        self.has_started_over = False
        self.share = 0.0
        self._below_since_s: float | None = None

    def observe(self, used_bytes: int, now_s: float) -> Pressure:
        self._lower_zero(used_bytes)
        self.share = share = (used_bytes - self.zero_bytes) / max(1, self.budget_bytes - self.zero_bytes)
        entered = self._entered(share)
        if entered >= self.pressure:
            self.pressure = entered
            self._below_since_s = None
        if self.pressure is NO_PRESSURE or share >= self._left_at():
            self._below_since_s = None
        elif self._below_since_s is None:
            self._below_since_s = now_s
        elif now_s - self._below_since_s >= self.limits.calm_s:
            self.pressure = Pressure(max(entered, self.pressure - 1))
            self._below_since_s = None
        return self.pressure

    @property
    def is_falling(self) -> bool:
        """Whether the last reading was below the line where this level is left: only time is missing."""
        return self._below_since_s is not None

    def bytes_at(self, share: float) -> int:
        """How much is in use where a reading is this share."""
        return self.zero_bytes + int((self.budget_bytes - self.zero_bytes) * share)

    def start_over(self, zero_bytes: int) -> None:
        """Make what is in use the new zero, and with it start without pressure."""
        self.zero_bytes, self.has_started_over = zero_bytes, True
        self.pressure = Pressure.NORMAL
        self._below_since_s = None

    def _lower_zero(self, used_bytes: int) -> None:
        if used_bytes < self.limits.shrink_until * self.budget_bytes:
            self.zero_bytes, self.has_started_over = 0, False
        elif used_bytes < self.zero_bytes:
            self.zero_bytes = used_bytes

    def _entered(self, share: float) -> Pressure:
        limits = self.limits
        if share >= limits.emergency_at:
            return Pressure.EMERGENCY
        if share >= limits.preempt_at:
            return Pressure.PREEMPTING
        return Pressure.HIGH if share >= limits.shrink_at else NO_PRESSURE

    def _left_at(self) -> float:
        limits = self.limits
        return (0.0, limits.shrink_until, limits.preempt_until, limits.emergency_until)[self.pressure]
