"""Measures how far a run is and how fast it goes: one reading, and the pace over several. No clock, no I/O.

Does not cover: saying it in words (progress.text), or showing it (progress.refresh, progress.notebook).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_WINDOW_S = 15.0
_SAMPLES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`done` includes `reused`; tokens and `cost`, in US dollars, are of this run. None: no price is known.

    `notice` is what else one must know, such as a model that cannot be reached. An export has nothing but `done` and
    `total`.
    """

    done: int
    total: int
    reused: int = 0
    failed: int = 0
    in_flight: int | None = None
    memory_bytes: int = 0
    budget_bytes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    is_paused: bool = False
    notice: str = ""

    @property
    def is_over(self) -> bool:
        return self.done >= self.total


class Pace:
    """Interviews a second over the last seconds: earlier ones say little about the rest."""

    def __init__(self, window_s: float = _WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES + 2)
        self._first: tuple[float, int] | None = None
        self._now: tuple[float, int] | None = None

    def read(self, progress: Progress, now_s: float) -> None:
        if self._now is not None and progress.done < self._now[1]:  # failed ones are asked again: the pace begins anew
            self._samples.clear()
            self._first = None
        self._now = now_s, progress.done
        if self._first is None:
            self._first = self._now
        if not self._samples or now_s - self._samples[-1][0] >= self._window_s / _SAMPLES:
            self._samples.append(self._now)
        # The oldest sample kept is the last one outside the window, so that the window is always full.
        while len(self._samples) > 1 and now_s - self._samples[1][0] >= self._window_s:
            self._samples.popleft()

    @property
    def elapsed_s(self) -> float:
        return self._now[0] - self._first[0] if self._now and self._first else 0.0

    @property
    def recent_per_s(self) -> float | None:
        """None until something can be said."""
        return _per_second(self._samples[0], self._now) if self._now else None

    @property
    def overall_per_s(self) -> float | None:
        return _per_second(self._first, self._now) if self._now and self._first else None

    def left_s(self, progress: Progress) -> float | None:
        """How long the rest will take; where nothing came lately, by the pace of the whole run."""
        per_s = self.recent_per_s or self.overall_per_s
        return (progress.total - progress.done) / per_s if per_s else None


def _per_second(before: tuple[float, int], now: tuple[float, int]) -> float | None:
    return (now[1] - before[1]) / (now[0] - before[0]) if now[0] > before[0] else None
