"""Reads one budget's memory: how much the process tree uses, and how much the budget is worth now.

    memory.measure ──► TreeGauge.read: resident sizes, less what forks share, corrected by PSS
                           └──► BudgetReadings.read: used, peak, and the budget as far as the host has it left

A budget has one BudgetReadings, an engine's or a stand-alone survey's: everything that shows or acts on its memory
takes the figure from there.
Does not cover: the level that follows (memory.governor), or reading /proc (memory.measure).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from headrace.limits import MemoryLimits
from headrace.memory.measure.host_memory import available_bytes
from headrace.memory.measure.own_tree import proportional_tree_bytes, tree_bytes

_HOST_EVERY_S = 1.0
_CORRECT_EVERY_S = 0.1
_MUCH_SHARED_BYTES = 64 << 20


class TreeGauge:
    """Measures this process and its descendants. `shared_bytes` tells how much of what its members report is counted
    more than once, `file_bytes` how much is in files on tmpfs that ended workers have left, which no process shows.

    `has_workers`: whether work has processes of its own, forks that share memory, whose executor reads them one by one.
    """

    def __init__(
        self,
        shared_bytes: Callable[[], int] = lambda: 0,
        file_bytes: Callable[[], int] = lambda: 0,
        *,
        has_workers: bool = False,
    ) -> None:
        self._shared_bytes = shared_bytes
        self._file_bytes = file_bytes
        self.correction_bytes = 0
        self.has_workers = has_workers

    def read(self) -> int:
        return max(0, self._plain_bytes() + self.correction_bytes) + self._file_bytes()

    def read_without(self, pids: Collection[int]) -> int:
        """Read without these and their children, and uncorrected: they may come to own what they share now."""
        return tree_bytes(without=pids)

    def correct(self) -> None:
        """Compare plain sizes with proportional ones, which takes milliseconds; from any thread."""
        if self.has_workers and (proportional := proportional_tree_bytes()):
            self.correction_bytes = proportional - self._plain_bytes()

    def _plain_bytes(self) -> int:
        return tree_bytes() - self._shared_bytes()


class BudgetReadings:
    """The readings of one budget. `budget_bytes` is the given one, or what the host has left, whichever is less;
    `taken` counts them.
    """

    def __init__(self, gauge: TreeGauge, limits: MemoryLimits) -> None:
        self.gauge = gauge
        self.limits = limits
        self.used_bytes = self.peak_bytes = self.taken = 0
        self.budget_bytes = limits.budget_bytes
        self._host_read_s = 0.0
        self._corrected_s = 0.0

    @property
    def is_calm(self) -> bool:
        return self.used_bytes < self._bytes_at(self.limits.shrink_at)

    def read(self, now_s: float) -> int:
        self.used_bytes = self._surely_used(now_s)
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        self.taken += 1
        return self.used_bytes

    def looks_at_host(self, now_s: float) -> bool:
        """Compare the budget with what the host has left, once a second, after a reading; whether it was due."""
        if now_s - self._host_read_s < _HOST_EVERY_S:
            return False
        self._host_read_s = now_s
        self.budget_bytes = min(self.limits.budget_bytes, self.used_bytes + available_bytes())
        return True

    def _bytes_at(self, share: float) -> int:
        return self.limits.bytes_at(share, self.budget_bytes)

    def _surely_used(self, now_s: float) -> int:
        """Forks that share their memory look like many times as much: correct the gauge before anything is stopped for
        it, and soon again where much was found to be shared, since it may have gone.
        """
        gauge, limits = self.gauge, self.limits
        used = gauge.read()
        is_unsure = used >= self._bytes_at(limits.preempt_at) or gauge.correction_bytes < -_MUCH_SHARED_BYTES
        has_fallen = used + _MUCH_SHARED_BYTES < self.used_bytes
        is_urgent = used >= self._bytes_at(limits.emergency_at) or has_fallen
        is_due = is_urgent or now_s - self._corrected_s >= _CORRECT_EVERY_S
        if gauge.has_workers and is_unsure and is_due:
            self._corrected_s = now_s
            gauge.correct()
            used = gauge.read()
        return used
