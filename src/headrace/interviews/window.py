"""Decides how wide the window is: how many interviews may be in flight now. Pure.

    readings, pressure level ──► observe ─┐
    sizes of answers ──► answered, ended ─┼──► width, buffer_bytes
    the user's concurrency ──► tune ──────┘

The window opens from two interviews to `concurrency`, doubling with each calm reading: memory is read in between,
because nothing tells beforehand how large answers are. Under pressure it halves with each reading, down to an eighth;
at PREEMPTING one interview at a time goes on. It is never wider than what fits of the sizes seen lately beside the rest
of the process, which is the lowest of the latest readings.

Where large replies are held back (models.http_client.reply_room), one at a time becomes a row, when memory is there for
it; an interview that waits for its reply holds only what is on the way, and the answers that it has before. At
PREEMPTING half of what fits goes on there, once a reading is below the line again: the level is left at a lower line,
and a process that takes most of a small budget by itself may never fall below that one.
Does not cover: which interview is next (interviews.cursors), or who holds a permit (interviews.admission).
"""

from __future__ import annotations

from headrace.limits import MemoryLimits
from headrace.memory.governor import Pressure

_FIRST_WIDTH = 2
_READING_AT_MOST_EVERY_S = 0.003
_MOST_BUFFER_BYTES = 16_000_000
_LEAST_BUFFER_BYTES = 250_000
_BUFFER_SHARE = 0.05
# An answer exists about this often at once: as it came, as it is kept, encoded, compressed, and on its way to disk.
_COPIES = 4
# What a run loads while it begins, and keeps: modules, SQLite's pages, compression. Of small budgets a part.
_WARM_UP_BYTES = 8_000_000
_WARM_UP_SHARE = 0.08
# What an interview holds of a reply on its way to it: what is not on disk yet, and the connection's buffers.
_ON_THE_WAY_BYTES = 500_000
# What the one reply that becomes a row takes meanwhile, of its size (models.http_client.reply_room).
_READING_COPIES = 6
# A slow service's first answer comes when the window has long opened; until then an interview may hold as much as this.
_UNSEEN_BYTES = 2_000_000
_NARROWEST_PART = 8
_FORGET = 0.9


class Window:
    """`concurrency` is how wide it may become."""

    def __init__(self, limits: MemoryLimits, concurrency: int) -> None:
        self._limits = limits
        self.concurrency = concurrency
        self.is_held_back = False
        self._narrowest = concurrency // _NARROWEST_PART
        self._opened = min(concurrency, _FIRST_WIDTH)
        self._pressure = Pressure.NORMAL
        self._rest = LowestReading(limits.calm_s)
        self._warm_bytes = 0
        self._largest_bytes = 0.0  # of the interviews seen lately
        self._answered_bytes = 0.0  # of answers seen lately whose interviews went on
        self._rows = 0  # since the last reading
        self._read_at_s = 0.0
        self._used_bytes = 0
        self._preempting_bytes = limits.bytes_at(limits.preempt_at, limits.budget_bytes)

    @property
    def width(self) -> int:
        """How many interviews may be in flight now."""
        fitting = min(self._opened, self._fitting())
        if self._pressure >= Pressure.PREEMPTING:
            # Work goes on, alone: pressure that never falls must not stop it for good.
            fitting = fitting // 2 if self._is_below_again else 1
        return max(1, fitting)

    @property
    def _is_below_again(self) -> bool:
        is_preempting = self._pressure is Pressure.PREEMPTING
        return is_preempting and self.is_held_back and self._used_bytes < self._preempting_bytes

    @property
    def interview_bytes(self) -> int:
        """What one interview in flight holds, by the answers seen lately; 0 before the first."""
        return int(self._each_bytes(self._largest_bytes))

    @property
    def buffer_bytes(self) -> int:
        """How many bytes of finished rows may wait for the disk."""
        share = int(self._limits.budget_bytes * _BUFFER_SHARE) >> (2 * self._pressure)
        return max(_LEAST_BUFFER_BYTES, min(share, _MOST_BUFFER_BYTES))

    def observe(self, used_bytes: int, pressure: Pressure, now_s: float) -> None:
        """Take a reading of memory and the level it led to."""
        self._pressure, self._rows, self._read_at_s, self._used_bytes = pressure, 0, now_s, used_bytes
        is_first = self._rest.used_bytes == 0
        self._rest.observe(used_bytes, now_s)
        if is_first:
            self._warm_bytes = used_bytes + min(_WARM_UP_BYTES, int(self._limits.budget_bytes * _WARM_UP_SHARE))
            return  # it says what there was before any work, and nothing of what work takes
        if pressure is Pressure.NORMAL:
            self._opened = min(self.concurrency, self._opened * 2)
        else:
            # Not below a part of what was asked for: a process may stand above the line with what it held before. An
            # engine tunes to what it grants meanwhile, which is no reason to halve that again.
            self._opened = max(1, min(self.concurrency, max(self._narrowest, self._opened // 2)))

    def wants_reading(self, rows: int, now_s: float) -> bool:
        """Whether so many more rows make a reading worth taking early: while the window opens or is narrow, each
        windowful is followed by one, so that it may open further.
        """
        self._rows += rows
        is_due = now_s - self._read_at_s >= _READING_AT_MOST_EVERY_S
        return is_due and self._rows >= self.width < self.concurrency

    def answered(self, largest_bytes: int) -> None:
        """Answers of interviews in flight came, the largest with so many bytes to keep."""
        self._largest_bytes = max(1.0, largest_bytes, self._largest_bytes)
        self._answered_bytes = max(largest_bytes, self._answered_bytes)

    def ended(self, largest_bytes: int) -> None:
        """Interviews ended, the largest with so many bytes. Only these forget: a short answer may follow a long one
        that its interview still holds.
        """
        self._largest_bytes = max(1.0, largest_bytes, self._largest_bytes * _FORGET)
        self._answered_bytes *= _FORGET

    def tune(self, concurrency: int) -> None:
        """Let it become so wide. Narrower takes effect as interviews in flight end; wider opens step by step."""
        self.concurrency = concurrency
        self._opened = min(self._opened, concurrency)

    def _fitting(self) -> int:
        """How many interviews of the size seen lately fit below the level that would stop admission."""
        room_bytes = self._preempting_bytes - max(self._rest.used_bytes, self._warm_bytes)
        if self.is_held_back:
            # Where that is most of the room, others may still be on the way: their replies wait for the room.
            room_bytes -= min(_READING_COPIES * self._largest_bytes, room_bytes / 2)
        return int(room_bytes / self._each_bytes(self._largest_bytes or _UNSEEN_BYTES))

    def _each_bytes(self, largest_bytes: float) -> float:
        if not self.is_held_back:
            return _COPIES * largest_bytes
        return max(min(_COPIES * largest_bytes, _ON_THE_WAY_BYTES), _COPIES * self._answered_bytes)


class LowestReading:
    """The lowest of the latest readings, of `span_s` at least and twice that at most."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._since_s: float | None = None
        self._lowest = self._lowest_before = 0

    @property
    def used_bytes(self) -> int:
        return min(self._lowest, self._lowest_before)

    def observe(self, used_bytes: int, now_s: float) -> None:
        if self._since_s is None:
            self._since_s, self._lowest, self._lowest_before = now_s, used_bytes, used_bytes
        elif now_s - self._since_s >= self._span_s:
            self._since_s, self._lowest, self._lowest_before = now_s, used_bytes, self._lowest
        else:
            self._lowest = min(self._lowest, used_bytes)
