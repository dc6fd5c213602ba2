"""What charts draw, as values. Does not cover: counting (results.plots), or drawing (bar_svg, bar_text, ...)."""

from __future__ import annotations

from enum import Enum

import msgspec

from headrace.charts.number_bins import NumberBins

LEVELS = ("shrink", "preempt", "emergency")
_USUAL_LEVELS = tuple(zip((0.70, 0.85, 0.95), LEVELS, strict=True))
_MOST = 0.60

MOST_BARS = 24
MOST_PANELS = 7
LONGEST_LABEL = 80


class BarKind(Enum):
    """What a bar counts: a value, all values that have no bar of their own, no value, or failed interviews."""

    VALUE = "value"
    OTHER = "other"
    MISSING = "none"
    FAILED = "failed"


class BarLabel(msgspec.Struct, frozen=True):
    text: str
    kind: BarKind = BarKind.VALUE


class ChartPanel(msgspec.Struct, frozen=True, kw_only=True):
    """One group: its counts, one for each bar of the chart, and how many rows it has in all."""

    label: str
    counts: tuple[int, ...]
    rows: int

    def share(self, count: int) -> float:
        """A part of the rows. It may exceed 1 where a row counts for several bars."""
        return count / self.rows if self.rows else 0.0


class BarChart(msgspec.Struct, frozen=True, kw_only=True):
    """A bar for each value. Several panels are drawn side by side, each in shares of its own rows."""

    title: str
    bars: tuple[BarLabel, ...]
    panels: tuple[ChartPanel, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_split(self) -> bool:
        return len(self.panels) > 1

    @property
    def largest_share(self) -> float:
        return max((panel.share(count) for panel in self.panels for count in panel.counts), default=0.0)


class Histogram(BarChart, frozen=True, kw_only=True):
    """A bar for each interval of `bins`, in order; the bars behind them count rows that have no number.

    `samples` are a few of the texts whose length is drawn.
    """

    bins: NumberBins
    axis: str
    samples: tuple[str, ...] = ()


class MemoryMark(msgspec.Struct, frozen=True):
    """One moment of the line: seconds since its begin, memory in bytes, and the results on disk in bytes."""

    second: float
    memory_bytes: int
    stored_bytes: int | None = None


class MemoryEvent(msgspec.Struct, frozen=True):
    """`why` is shown where a reader points at its mark."""

    second: float
    what: str
    why: str = ""


def memory_levels(lowest_bytes: int, budget_bytes: int) -> tuple[tuple[float, str], ...]:
    """The usual levels. A process that never held less than most of its budget may have held that before any work:
    where its levels are is then not in its history.
    """
    return () if lowest_bytes >= _MOST * budget_bytes else _USUAL_LEVELS


class MemoryChart(msgspec.Struct, frozen=True, kw_only=True):
    """Memory over time. `levels` are shares of the budget with what happens there; `starts` are the seconds at which
    later runs begin.
    """

    title: str
    marks: tuple[MemoryMark, ...]
    budget_bytes: int
    levels: tuple[tuple[float, str], ...] = _USUAL_LEVELS
    starts: tuple[float, ...] = ()
    events: tuple[MemoryEvent, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def top_bytes(self) -> int:
        highest = max((mark.memory_bytes for mark in self.marks), default=0)
        return max(self.budget_bytes, highest, 1)

    @property
    def seconds(self) -> float:
        return max(1.0, self.marks[-1].second - self.marks[0].second) if self.marks else 1.0
