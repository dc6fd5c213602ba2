"""What an engine's processes use, and what the budget really is now. Covers: readings that can be acted on.

Does not cover: how memory is read (memory.gauge), or what follows (agents.scheduler.relief).
"""

from __future__ import annotations

from headrace.limits import MemoryLimits
from headrace.memory.gauge import TreeGauge, available_bytes

_BUDGET_EVERY_S = 1.0
_CORRECT_EVERY_S = 0.1
_MUCH_SHARED_BYTES = 64 << 20


class EngineMemory:
    """`budget_bytes` is the given one, or what the host has left, whichever is less."""

    def __init__(self, gauge: TreeGauge, limits: MemoryLimits) -> None:
        self._gauge = gauge
        self._limits = limits
        self.used_bytes = self.peak_bytes = 0
        self.budget_bytes = limits.budget_bytes
        self._budget_read_s = 0.0
        self._corrected_s = 0.0

    @property
    def is_calm(self) -> bool:
        return self.used_bytes < self.budget_bytes * self._limits.shrink_at

    def read(self, now_s: float) -> int:
        self.used_bytes = self._surely_used(now_s)
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return self.used_bytes

    def looks_at_host(self, now_s: float) -> bool:
        """Once a second, after a reading; whether it was due."""
        if now_s - self._budget_read_s < _BUDGET_EVERY_S:
            return False
        self._budget_read_s = now_s
        self.budget_bytes = min(self._limits.budget_bytes, self.used_bytes + available_bytes())
        return True

    def _surely_used(self, now_s: float) -> int:
        """Forks that share their memory look like many times as much: be sure before anything is stopped for it, and
        look again soon where much was found to be shared, since it may have gone.
        """
        gauge, limits = self._gauge, self._limits
        used = gauge.read()
        share = used / max(1, self.budget_bytes)
        is_unsure = share >= limits.preempt_at or gauge.correction_bytes < -_MUCH_SHARED_BYTES
        has_fallen = used + _MUCH_SHARED_BYTES < self.used_bytes
        is_due = share >= limits.emergency_at or has_fallen or now_s - self._corrected_s >= _CORRECT_EVERY_S
        if is_unsure and is_due:
            self._corrected_s = now_s
            gauge.correct()
            used = gauge.read()
        return used
