"""A pause of a whole endpoint: nothing goes out until a time, then one probe; each that fails doubles the wait.

Covers: how long. Does not cover: who is the probe, and what ends a pause (models.endpoint.endpoint).
"""

from __future__ import annotations

import math


class EndpointPause:
    """One pause, which may be prolonged; it is over while `since_s` is None."""

    __slots__ = ("_first_s", "_longest_asked_s", "_longest_s", "_tries", "since_s", "until_s")

    def __init__(self, first_s: float, longest_s: float, longest_asked_s: float = 0.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._longest_asked_s = longest_asked_s
        self._tries = 0
        self.since_s: float | None = None
        self.until_s = -math.inf

    def begin(self, now_s: float, asked_s: float | None, jitter: float) -> None:
        """Begins the pause, or prolongs it after a failed probe. The first wait is what the service asked for; each
        further one is at least twice the one before, also where the service goes on asking for less.
        """
        self.since_s = now_s if self.since_s is None else self.since_s
        wait_s = min(self._first_s * 2.0 ** min(self._tries, 60), self._longest_s) * (0.5 + jitter / 2)
        asked_s = self._sensible(asked_s)
        if asked_s is not None:
            wait_s = asked_s if self._tries == 0 else max(asked_s, wait_s)
        self._tries += 1
        self.until_s = now_s + wait_s

    def extend(self, now_s: float, asked_s: float | None) -> None:
        """A call that was already in flight also got a 429: extend the pause only if this reply asks for longer."""
        asked_s = self._sensible(asked_s)
        if self.since_s is not None and asked_s is not None:
            self.until_s = max(self.until_s, now_s + asked_s)

    def cut_short(self, now_s: float) -> None:
        """Let the next probe go now."""
        self.until_s = min(self.until_s, now_s)

    @property
    def is_prolonged(self) -> bool:
        """Whether a probe has failed in this pause."""
        return self._tries > 1

    def end(self) -> None:
        self.since_s, self.until_s, self._tries = None, -math.inf, 0

    def _sensible(self, asked_s: float | None) -> float | None:
        if asked_s is None or not 0 <= asked_s < math.inf:
            return None
        return min(asked_s, self._longest_asked_s)
