"""Decides which interviews start. Covers: permits of the window, the budget of money, pausing and stopping. Pure.

An interview holds a permit from its admission until its row is committed and, where a callback or stream listens,
delivered: the window bounds what a crash repeats and what RAM holds.
Does not cover: how wide the window is (interviews.window), or which interview is next (interviews.cursors).
"""

from __future__ import annotations

from headrace.interviews.cursors import Cursors
from headrace.interviews.window import Window

MOST_PER_CHUNK = 64


class Admission:
    """`in_flight` is how many permits are held; `is_spent` whether the budget of money has no room for another."""

    def __init__(self, cursors: Cursors, window: Window) -> None:
        self._cursors = cursors
        self._window = window
        self.is_paused = False
        self._exhausted = False
        self._affordable: int | None = None
        self.in_flight = 0
        self.is_spent = False

    @property
    def finished(self) -> bool:
        return self._exhausted and self.in_flight == 0

    def next_chunk(self) -> list[int]:
        """The ordinals to start together now, each with a permit; at most `MOST_PER_CHUNK`."""
        if self.is_paused:
            # Looked at, not taken: a run whose last interviews end while it is paused has ended.
            self._exhausted = self._exhausted or self._cursors.is_at_end()
            return []
        free = min(self._window.width - self.in_flight, MOST_PER_CHUNK)
        if self._affordable is not None:
            free = min(free, self._affordable - self.in_flight)
            # Of a budget that ends with the plan nothing is left either, and then the run is done, not waiting.
            is_at_end = self._cursors.is_at_end()
            self.is_spent = self._affordable <= 0 and not is_at_end
            self._exhausted = self._exhausted or self.is_spent or is_at_end
        if free <= 0 or self._exhausted:
            return []
        ordinals = self._cursors.take(free)
        self._exhausted = len(ordinals) < free and self._cursors.is_at_end()
        self.in_flight += len(ordinals)
        return ordinals

    def release(self, count: int) -> None:
        """Take back the permits of so many interviews."""
        self.in_flight -= count

    def afford(self, interviews: int | None) -> None:
        """The budget of money has room for so many, those in flight among them; None is no limit."""
        self._affordable = interviews

    def pause(self) -> None:
        """Admit nothing until `resume`; interviews in flight end."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def stop(self) -> None:
        """Admit nothing more; interviews in flight end."""
        self._exhausted = True

    def reopen(self) -> None:
        """There is more to admit: interviews that are to be asked again."""
        self._exhausted = False
