"""How many interviews may be in flight. Covers: the window, how memory pressure narrows it, pausing and tuning.

An interview holds its place from admission until its row is committed and, where someone listens, delivered: the
window bounds what a crash repeats and what RAM holds. Does not cover: which interview is next (interviews.cursors).
"""

from __future__ import annotations

from headrace.interviews.cursors import Cursors
from headrace.memory.governor import Governor, Pressure

MOST_PER_CHUNK = 64
_FIRST_WINDOW = 2
_MOST_BUFFER_BYTES = 16_000_000
_LEAST_BUFFER_BYTES = 250_000
_BUFFER_SHARE = 0.05
# An answer exists about this often at once: as it came, as it is kept, encoded, compressed, and on its way to disk.
_COPIES = 4
# A slow service's first answer comes when the window has long opened; until then an interview may hold as much as this.
_UNSEEN_BYTES = 2_000_000
_NARROWEST_PART = 8
_FORGET = 0.9


class Admission:
    """Events: `read_memory`, `answered`, `sealed`, `released`, `afford`, `hold`, `let_go`, `drop`, `pause`,
    `resume`, `tune`, `stop`.

    Commands: `next_chunk` (ordinals), `concurrency`, `buffer_bytes`.

    The window opens step by step: memory is read in between, and nobody knows beforehand how large answers are.
    """

    def __init__(self, cursors: Cursors, governor: Governor, concurrency: int) -> None:
        self._cursors = cursors
        self._governor = governor
        self.concurrency = concurrency
        self.is_paused = False
        self._opened = min(concurrency, _FIRST_WINDOW)
        self._exhausted = False
        self._first_used_bytes = 0
        self._interview_bytes = 0.0
        self._affordable: int | None = None
        self.in_flight = 0
        self.is_spent = False

    @property
    def finished(self) -> bool:
        return self._exhausted and self.in_flight == 0

    @property
    def window(self) -> int:
        """How many may be in flight now."""
        if self._governor.pressure >= Pressure.PREEMPTING:
            return 1  # work goes on, alone: pressure that never falls must not stop it for good
        return max(1, min(self._opened, self._window_by_size()))

    @property
    def is_narrowed(self) -> bool:
        """Whether the window is not all open, so that the next reading is worth taking early."""
        return self.window < self.concurrency

    @property
    def interview_bytes(self) -> int:
        """What one interview in flight holds, by the answers seen lately; 0 before the first."""
        return int(_COPIES * self._interview_bytes)

    @property
    def buffer_bytes(self) -> int:
        """How many bytes of finished rows may wait for the disk."""
        share = int(self._governor.limits.budget_bytes * _BUFFER_SHARE) >> (2 * self._governor.pressure)
        return max(_LEAST_BUFFER_BYTES, min(share, _MOST_BUFFER_BYTES))

    def read_memory(self, used_bytes: int, now_s: float) -> bool:
        """Take a reading; tells whether the level rose, which is the time to give memory back."""
        is_first = self._first_used_bytes == 0
        self._first_used_bytes = self._first_used_bytes or used_bytes
        before = self._governor.pressure
        pressure = self._governor.observe(used_bytes, now_s)
        if is_first:
            return False  # it says what there was before any work, and nothing of what work takes
        if pressure is Pressure.NORMAL:
            self._opened = min(self.concurrency, self._opened * 2)
        else:
            # Not below a part: a process may stand above the line with what it held before.
            self._opened = max(1, self.concurrency // _NARROWEST_PART, self._opened // 2)
        return pressure > before

    def next_chunk(self) -> list[int]:
        if self.is_paused:
            # Looked at, not taken: a run whose last interviews end while it is paused has ended.
            self._exhausted = self._exhausted or self._cursors.is_at_end()
            return []
        free = min(self.window - self.in_flight, MOST_PER_CHUNK)
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

    def answered(self, largest_bytes: int) -> None:
        """Answers of interviews in flight came, the largest with so many bytes to keep."""
        self._interview_bytes = max(1.0, largest_bytes, self._interview_bytes)

    def sealed(self, largest_bytes: int) -> None:
        """Interviews ended, the largest with so many bytes. Only these forget: a short answer may follow a long one
        that its interview still holds.
        """
        self._interview_bytes = max(1.0, largest_bytes, self._interview_bytes * _FORGET)

    def released(self, count: int) -> None:
        self.in_flight -= count

    def afford(self, interviews: int | None) -> None:
        """The budget has room for so many, those in flight among them; None is no limit."""
        self._affordable = interviews

    def hold(self, model: int) -> None:
        """Admit nothing of this model until it is let go."""
        self._cursors.hold(model)

    def let_go(self, model: int) -> None:
        self._cursors.let_go(model)

    def drop(self, model: int) -> None:
        """Admit nothing more of this model."""
        self._cursors.drop(model)

    def pause(self) -> None:
        """Admit nothing until `resume`; what is in flight ends."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def tune(self, concurrency: int) -> None:
        """Let so many be in flight from now on. Fewer takes effect as those in flight end; more opens step by step."""
        self.concurrency = concurrency
        self._opened = min(self._opened, concurrency)

    def stop(self) -> None:
        """Admit nothing more; what is in flight ends."""
        self._exhausted = True

    def _window_by_size(self) -> int:
        """How many interviews of the size seen lately fit below the level that would stop admission."""
        limits = self._governor.limits
        room_bytes = limits.budget_bytes * limits.preempt_at - self._first_used_bytes
        return int(room_bytes / (_COPIES * (self._interview_bytes or _UNSEEN_BYTES)))
