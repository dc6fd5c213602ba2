"""A circuit breaker: after some failures close together, nothing is tried for a while, then one probe decides.

One implementation for a model's endpoint and for a kind of task. Does not cover: what counts as a failure, which its
owner knows (models.endpoint.endpoint for calls).
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from headrace.limits import BreakerLimits


class Circuit(Enum):
    CLOSED = "closed"  # all is well
    OPEN = "open"  # nothing is tried
    HALF_OPEN = "half-open"  # one probe is out


class Breaker:
    """Ask `may_try` before each try, and report how it ended. Of a half-open circuit report only the probe."""

    def __init__(self, limits: BreakerLimits) -> None:
        self._limits = limits
        self._failed_at_s: deque[float] = deque(maxlen=limits.failures)
        self._cool_down_s = limits.cool_down_s
        self.circuit = Circuit.CLOSED
        self.next_probe_s: float | None = None

    def may_try(self, now_s: float) -> bool:
        """Whether a try may begin now. The first to ask of an open circuit that has cooled down becomes the probe."""
        if self.circuit is Circuit.OPEN and self.next_probe_s is not None and now_s >= self.next_probe_s:
            self.circuit, self.next_probe_s = Circuit.HALF_OPEN, None
            return True
        return self.circuit is Circuit.CLOSED

    def succeeded(self) -> None:
        """Counts a success. Only a probe closes an open circuit: an older try that ends well says nothing about now."""
        if self.circuit is Circuit.OPEN:
            return
        self.circuit = Circuit.CLOSED
        self._cool_down_s = self._limits.cool_down_s
        self._failed_at_s.clear()

    def failed(self, now_s: float) -> None:
        if self.circuit is Circuit.OPEN:
            return  # it was in flight when the circuit opened
        if self.circuit is Circuit.HALF_OPEN:
            # Each probe that fails makes the next one wait twice as long.
            self._cool_down_s = min(self._cool_down_s * 2, self._limits.longest_cool_down_s)
            self._open(now_s)
            return
        self._failed_at_s.append(now_s)
        is_full = len(self._failed_at_s) == self._limits.failures
        if is_full and now_s - self._failed_at_s[0] <= self._limits.within_s:
            self._open(now_s)

    def abandoned(self, now_s: float) -> None:
        """Lets another try probe: this one ended without a result, because it was cancelled for instance."""
        if self.circuit is Circuit.HALF_OPEN:
            self.circuit, self.next_probe_s = Circuit.OPEN, now_s

    def _open(self, now_s: float) -> None:
        self.circuit, self.next_probe_s = Circuit.OPEN, now_s + self._cool_down_s
        self._failed_at_s.clear()
