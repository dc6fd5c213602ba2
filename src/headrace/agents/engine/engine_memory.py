"""The engine's memory as a survey inside it sees it. Covers: handing on the engine's readings and pressure level.

Does not cover: taking readings (memory.gauge, agents.engine.loop), or what follows (agents.scheduler.relief).
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.limits import MemoryLimits
from headrace.memory.gauge import BudgetReadings
from headrace.memory.governor import Pressure


class EngineSurveyMemory:
    """One survey's view: it takes no reading of its own, and reclaims nothing, which the engine does for all."""

    def __init__(self, readings: BudgetReadings, pressure: Callable[[], Pressure]) -> None:
        self._readings = readings
        self._pressure = pressure
        self._seen = 0
        self.peak_bytes = 0

    @property
    def limits(self) -> MemoryLimits:
        return self._readings.limits

    @property
    def used_bytes(self) -> int:
        return self._readings.used_bytes

    @property
    def budget_bytes(self) -> int:
        return self._readings.budget_bytes

    @property
    def pressure(self) -> Pressure:
        return self._pressure()

    def read(self, now_s: float) -> bool:
        """Whether the engine has taken a reading since the last call."""
        is_new, self._seen = self._seen != self._readings.taken, self._readings.taken
        self.peak_bytes = max(self.peak_bytes, self._readings.used_bytes)
        return is_new

    async def correct(self) -> None:
        """The engine corrects its gauge by itself."""
