"""`Reservations`: the memory that runs of each kind need, learned as the 95th percentile of their latest peaks.

A run teaches when it ends or is parked, and while it goes on: once its use is steady, and whenever it uses more than
its kind was known to. What is learned outlives the engine: `changes` are to be kept, `recall` gives them back.

Does not cover: what a run reserves (`needs`), when a use is steady (`relief`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping

from msgspec import Struct

_SAMPLE = 64
_SHARE = 0.95
_NOTICEABLE = 0.1
TRUSTED = 8  # runs of a kind, after which what was seen counts like what is declared


class KindSize(Struct, frozen=True):
    """What runs of a kind need, and how many were seen."""

    needed_bytes: int
    seen: int


class Reservations:
    """One bounded sample for each kind; kinds are functions of a program, so there are few."""

    def __init__(self) -> None:
        self._samples: dict[str, _LatestPeaks] = {}
        self._kept: dict[str, KindSize] = {}
        self._changed: set[str] = set()

    def count(self, kind: str) -> int:
        """How many runs of this kind have ended, were parked, or go on and are steady."""
        sample = self._samples.get(kind)
        return sample.ended + len(sample.live) if sample else 0

    def needed_bytes(self, kind: str) -> int | None:
        """What a run of this kind needs, None where none was measured."""
        sample = self._samples.get(kind)
        return sample.needed_bytes() if sample else None

    def goes_on(self, kind: str, slot: int, peak_bytes: int) -> None:
        """Note the peak so far of a run that goes on in a slot."""
        self._sample(kind).live[slot] = peak_bytes
        self._changed.add(kind)

    def ended(self, kind: str, slot: int, peak_bytes: int) -> None:
        """Count a run of this kind that left its slot, and add its peak to the sample; 0 was not measured."""
        sample = self._sample(kind)
        sample.live.pop(slot, None)
        sample.ended += 1
        if peak_bytes > 0:
            sample.add(peak_bytes)
        self._changed.add(kind)

    def cut_short(self, kind: str, slot: int) -> None:
        """Forget a run that left its slot before its end: its peak says little."""
        if sample := self._samples.get(kind):
            sample.live.pop(slot, None)

    def recall(self, kept: Mapping[str, KindSize]) -> None:
        """Begin with what an earlier engine has learned."""
        for kind, size in kept.items():
            self._kept[kind] = size
            sample = self._sample(kind)
            sample.ended = size.seen
            sample.add(size.needed_bytes)

    def changes(self) -> dict[str, KindSize]:
        """What has changed noticeably since the last call: few at a time."""
        found: dict[str, KindSize] = {}
        for kind in self._changed:
            needed_bytes, before = self.needed_bytes(kind), self._kept.get(kind)
            size = KindSize(needed_bytes or 0, min(self.count(kind), _SAMPLE))
            if needed_bytes and (before is None or _differs(before, size)):
                self._kept[kind] = found[kind] = size
        self._changed.clear()
        return found

    def _sample(self, kind: str) -> _LatestPeaks:
        sample = self._samples.get(kind)
        if sample is None:
            sample = self._samples[kind] = _LatestPeaks()
        return sample


def _differs(before: KindSize, now: KindSize) -> bool:
    """Whether starts would differ: by the size, or by how many are enough to trust it."""
    is_other_size = abs(now.needed_bytes - before.needed_bytes) > _NOTICEABLE * before.needed_bytes
    return is_other_size or now.seen >= 2 * before.seen or before.seen < min(now.seen, TRUSTED)


class _LatestPeaks:
    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self._ordered: list[int] = []  # the same ones: at most _SAMPLE
        self._high_bytes = 0
        self.ended = 0
        self.live: dict[int, int] = {}  # by slot: peaks of runs that go on

    def needed_bytes(self) -> int | None:
        return max(self._high_bytes, *self.live.values()) if self.live else self._high_bytes or None

    def add(self, peak_bytes: int) -> None:
        if len(self._latest) == _SAMPLE:
            del self._ordered[bisect_left(self._ordered, self._latest.popleft())]
        self._latest.append(peak_bytes)
        insort(self._ordered, peak_bytes)
        # The nearest rank, rounded up: of few runs the largest one.
        self._high_bytes = self._ordered[min(len(self._ordered) - 1, int(len(self._ordered) * _SHARE))]
