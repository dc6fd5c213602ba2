"""Draws progress no more often than its canvas wants. Covers: the pace, the clock, a canvas that fails.

Does not cover: the canvases (progress.terminal_line, progress.notebook), or the words on them (progress.text).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from headrace.progress.pace import Pace, Progress

_CANNOT_DRAW = (OSError, ValueError)  # the terminal went away; the stream was closed


class Canvas(Protocol):
    """Where progress is drawn: at most once in `every_s`, with a pace taken over `window_s`."""

    every_s: float
    window_s: float

    def draw(self, progress: Progress, pace: Pace) -> None: ...

    def close(self) -> None: ...


class Display:
    """Without a canvas it is silent. One that fails is given up: no run ends because a terminal went away."""

    def __init__(self, canvas: Canvas | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._canvas = canvas
        self._clock = clock
        self._pace = Pace(canvas.window_s) if canvas is not None else Pace()
        self._drawn_at_s = float("-inf")

    def show(self, progress: Progress) -> None:
        if self._canvas is None:
            return
        now_s = self._clock()
        self._pace.read(progress, now_s)
        if now_s - self._drawn_at_s >= self._canvas.every_s:
            self._drawn_at_s = now_s
            self._draw(self._canvas, progress)

    def close(self, progress: Progress) -> None:
        """Show the last reading, whenever the one before was shown."""
        self._drawn_at_s = float("-inf")
        self.show(progress)
        self._give_up()

    def _draw(self, canvas: Canvas, progress: Progress) -> None:
        try:
            canvas.draw(progress, self._pace)
        except _CANNOT_DRAW:
            self._give_up()

    def _give_up(self) -> None:
        canvas, self._canvas = self._canvas, None
        if canvas is not None:
            with suppress(*_CANNOT_DRAW):
                canvas.close()
