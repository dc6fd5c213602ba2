"""A circuit breaker: after some failures close together, nothing is tried for a while, then probes decide.

One implementation for a model's endpoint and for a kind of task. A half-open circuit begins with one probe; each probe
that succeeds lets in two more, so one, two, four are in flight (slow start), until `closes_after` of them have
succeeded. Does not cover: what counts as a failure, which its owner knows (models.endpoint.endpoint for calls,
agents.scheduler.circuits for runs).
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from headrace.limits import BreakerLimits


class Circuit(Enum):
    CLOSED = "closed"  # all is well
    OPEN = "open"  # nothing is tried
    HALF_OPEN = "half-open"  # probes are tried


class Breaker:
    """Ask `may_try` before each try, and report how it ended. Of a half-open circuit report only its probes."""

    def __init__(self, limits: BreakerLimits, closes_after: int = 1) -> None:
        self._limits = limits
        self._closes_after = closes_after
        self._failures: deque[tuple[float, int | None]] = deque(maxlen=limits.failures)  # when, and whose
        self._cool_down_s = limits.cool_down_s
        self._probes = 0  # in flight
        self._successes = 0  # of probes
        self.circuit = Circuit.CLOSED
        self.next_probe_s: float | None = None

    def would_try(self, now_s: float) -> bool:
        """What `may_try` would return, without making anything a probe."""
        if self.circuit is Circuit.OPEN:
            return self.next_probe_s is not None and now_s >= self.next_probe_s
        return self.circuit is Circuit.CLOSED or self._probes <= self._successes

    def may_try(self, now_s: float) -> bool:
        """Whether a try may begin now. Unless the circuit is closed, a try that may begin is a probe."""
        if not self.would_try(now_s):
            return False
        if self.circuit is Circuit.OPEN:
            self.circuit, self.next_probe_s = Circuit.HALF_OPEN, None
            self._probes = self._successes = 0
        self._probes += 1
        return True

    def succeeded(self) -> None:
        """Counts a success. Only probes close an open circuit: an older try that ends well says nothing about now."""
        if self.circuit is Circuit.OPEN:
            return
        if self.circuit is Circuit.HALF_OPEN:
            self._probes -= 1
            self._successes += 1
            if self._successes < self._closes_after:
                return
        self.circuit = Circuit.CLOSED
        self._cool_down_s = self._limits.cool_down_s
        self._failures.clear()

    def failed(self, now_s: float, who: int | None = None) -> None:
        """Counts a failure. Several of the same `who` count once, with the time of the last; None is always another."""
        if self.circuit is Circuit.OPEN:
            return  # it was in flight when the circuit opened
        if self.circuit is Circuit.HALF_OPEN:
            # Each probe that fails makes the next one wait twice as long.
            self._cool_down_s = min(self._cool_down_s * 2, self._limits.longest_cool_down_s)
            self._open(now_s)
            return
        earlier = next((failure for failure in self._failures if who is not None and failure[1] == who), None)
        if earlier is not None:
            self._failures.remove(earlier)
        self._failures.append((now_s, who))
        is_full = len(self._failures) == self._limits.failures
        if is_full and now_s - self._failures[0][0] <= self._limits.within_s:
            self._open(now_s)

    def abandoned(self, now_s: float) -> None:
        """Lets another try probe: this one ended without a result, because it was cancelled for instance."""
        if self.circuit is not Circuit.HALF_OPEN:
            return
        self._probes -= 1
        if not self._probes and not self._successes:
            self.circuit, self.next_probe_s = Circuit.OPEN, now_s

    def _open(self, now_s: float) -> None:
        self.circuit, self.next_probe_s = Circuit.OPEN, now_s + self._cool_down_s
        self._failures.clear()
