"""`Reservations`: the memory that runs of each kind need, learned as the 95th percentile of their latest peaks.

Does not cover: admission (`placing`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

_SAMPLE = 64
_SHARE = 0.95


class Reservations:
    """One bounded sample for each kind; kinds are functions of a program, so there are few."""

    def __init__(self) -> None:
        self._samples: dict[str, _LatestPeaks] = {}

    def knows(self, kind: str) -> bool:
        """Whether a run of this kind has ended, or was measured: the first one starts alone."""
        return kind in self._samples

    def ended(self, kind: str) -> int:
        """How many runs of this kind have ended, or were measured."""
        sample = self._samples.get(kind)
        return sample.ended if sample else 0

    def seen(self, kind: str, peak_bytes: int) -> None:
        """Count a run of this kind, ended or measured, and add its peak to the sample; a peak of 0 was not measured."""
        sample = self._samples.get(kind)
        if sample is None:
            sample = self._samples[kind] = _LatestPeaks()
        sample.ended += 1
        if peak_bytes > 0:
            sample.add(peak_bytes)

    def needed_bytes(self, kind: str) -> int | None:
        sample = self._samples.get(kind)
        return sample.high_bytes if sample else None


class _LatestPeaks:
    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self._ordered: list[int] = []  # the same ones: at most _SAMPLE
        self.high_bytes: int | None = None
        self.ended = 0

    def add(self, peak_bytes: int) -> None:
        if len(self._latest) == _SAMPLE:
            del self._ordered[bisect_left(self._ordered, self._latest.popleft())]
        self._latest.append(peak_bytes)
        insort(self._ordered, peak_bytes)
        # The nearest rank, rounded up: of few runs the largest one.
        self.high_bytes = self._ordered[min(len(self._ordered) - 1, int(len(self._ordered) * _SHARE))]
