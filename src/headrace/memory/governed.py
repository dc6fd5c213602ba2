"""The memory budget that a survey runs in: one source of readings and of the pressure level.

    a survey by itself      OwnMemory: takes readings when asked, has a governor, reclaims when the level rises
    a survey in an engine   the engine's readings and level, handed in (agents.engine.engine_memory)

Does not cover: how the window follows (interviews.window).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from headrace.limits import MemoryLimits
from headrace.memory.gauge import BudgetReadings, TreeGauge
from headrace.memory.governor import Governor, Pressure
from headrace.memory.reclaiming import LevelReclaim, reclaim_memory


class GovernedMemory(Protocol):
    """`peak_bytes` is the most that was read for this survey."""

    @property
    def limits(self) -> MemoryLimits: ...
    @property
    def used_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def budget_bytes(self) -> int: ...
    @property
    def pressure(self) -> Pressure: ...

    def read(self, now_s: float) -> None:
        """Take a reading, and bring the figures up to date."""
        ...

    async def correct(self) -> None:
        """Do what takes longer than a reading, where it is due."""
        ...


class OwnMemory:
    """The budget of a survey that runs by itself."""

    def __init__(self, limits: MemoryLimits, gauge: TreeGauge | None = None) -> None:
        self.limits = limits
        self._readings = BudgetReadings(gauge or TreeGauge(), limits)
        self._governor = Governor(limits)
        self._reclaim = LevelReclaim(limits.calm_s)
        self._is_correction_due = False

    @property
    def used_bytes(self) -> int:
        return self._readings.used_bytes

    @property
    def peak_bytes(self) -> int:
        return self._readings.peak_bytes

    @property
    def budget_bytes(self) -> int:
        return self._readings.budget_bytes

    @property
    def pressure(self) -> Pressure:
        return self._governor.pressure

    def read(self, now_s: float) -> None:
        readings, before = self._readings, self._governor.pressure
        used = readings.read(now_s)
        if readings.looks_at_host(now_s):
            self._governor.budget_bytes = readings.budget_bytes
            self._is_correction_due = readings.gauge.has_workers
        # The first reading says what there was before any work: nothing of that can be given back.
        if self._governor.observe(used, now_s) > before and readings.taken > 1:
            self._reclaim.entered(now_s)
        elif self._reclaim.is_due_again(now_s):
            reclaim_memory()

    async def correct(self) -> None:
        if self._is_correction_due:
            self._is_correction_due = False
            await asyncio.to_thread(self._readings.gauge.correct)
