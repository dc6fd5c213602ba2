"""Charts of a column of results, alone or split by another; and of the memory of its runs.

Does not cover: counting (counting), or drawing (charts).
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from headrace.charts.bar_svg import share_text
from headrace.charts.chart_data import (
    LONGEST_LABEL,
    MOST_BARS,
    MOST_PANELS,
    BarChart,
    BarKind,
    BarLabel,
    ChartPanel,
    Histogram,
    MemoryChart,
    MemoryMark,
    memory_levels,
)
from headrace.display import cell_text, counted
from headrace.errors import InvalidInput
from headrace.memory.bounded_history import HistoryPoint
from headrace.results.plots.axes import (
    NONE,
    NOT_ASKED,
    NOT_FINITE,
    OTHER,
    CategoryAxis,
    LengthAxis,
    NumberAxis,
    PlotAxis,
)
from headrace.results.plots.counting import PlaceCounts, count_places
from headrace.results.plots.plotted_column import PlottedColumn, Tally
from headrace.results.reading.file_view import FileView
from headrace.units import format_bytes

_MOST_INTERVALS = 24
_MOST_SAMPLES, _LONGEST_SAMPLE = 5, 200


def chart_of(parts: tuple[FileView, ...], name: str, by: str | None, tally: Tally) -> BarChart:
    """Count a column of the views, and make a chart of it."""
    column = PlottedColumn(parts, name, tally)
    axis = column.axis(MOST_BARS - 4, _MOST_INTERVALS)
    if by is None:
        counts = count_places([(column, axis)], parts)
        groups: list[tuple[str, int | None]] = [("all", None)]
    else:
        other = PlottedColumn(parts, by, tally)
        split = other.groups(MOST_PANELS - 2)
        counts = count_places([(column, axis), (other, split)], parts)
        groups = groups_of(split, counts)
    samples = _samples(column) if isinstance(axis, LengthAxis) else ()
    return chart_from(column.name, axis, by, counts_by_bar(axis, counts, groups), samples)


def groups_of(axis: PlotAxis, counts: PlaceCounts) -> list[tuple[str, int | None]]:
    """The label and place of each group that has rows."""
    named = [(label, place) for place, label in enumerate(axis.labels)]
    named += [(_other(axis.others), OTHER), ("none", NONE), ("not finite", NOT_FINITE)]
    return [(label, place) for label, place in named if counts.rows[(place,)]]


class BarCounts(msgspec.Struct, frozen=True):
    """The bars that are drawn, each with its place on the axis, and the counts of each group."""

    bars: list[tuple[BarLabel, int]]
    panels: list[ChartPanel]


def counts_by_bar(
    axis: PlotAxis,
    counts: PlaceCounts,
    groups: list[tuple[str, int | None]],
    missing: tuple[str, str] = ("none", "not asked"),
) -> BarCounts:
    """A bar for each place, and for what has none where there is any. `missing` are the labels of rows without a value,
    and of those that are counted as not asked.
    """
    bars = [(BarLabel(label), place) for place, label in enumerate(axis.labels)]
    bars += [
        (BarLabel(_other(axis.others), BarKind.OTHER), OTHER),
        (BarLabel("not finite", BarKind.OTHER), NOT_FINITE),
        (BarLabel(missing[0], BarKind.MISSING), NONE),
        (BarLabel(missing[1], BarKind.MISSING), NOT_ASKED),
        (BarLabel("failed", BarKind.FAILED), NONE),
    ]
    panels = [_panel(counts, label, place, bars) for label, place in groups]
    is_shown = [place >= 0 or any(panel.counts[at] for panel in panels) for at, (_, place) in enumerate(bars)]
    return BarCounts(
        [bar for bar, is_there in zip(bars, is_shown, strict=True) if is_there],
        [ChartPanel(label=panel.label, counts=_chosen(panel.counts, is_shown), rows=panel.rows) for panel in panels],
    )


def chart_from(
    name: str, axis: PlotAxis, by: str | None, counted_bars: BarCounts, samples: tuple[str, ...]
) -> BarChart:
    """The chart of these counts."""
    labels, panels = tuple(label for label, _ in counted_bars.bars), tuple(counted_bars.panels)
    title = name if by is None else f"{name} by {by}"
    notes = _notes(axis, sum(panel.rows for panel in panels))
    if isinstance(axis, (NumberAxis, LengthAxis)):
        is_text = isinstance(axis, LengthAxis)
        return Histogram(
            title=f"{title}: length of the texts" if is_text else title,
            bars=labels,
            panels=panels,
            notes=notes,
            bins=axis.bins,
            axis="characters" if is_text else name,
            samples=samples,
        )
    return BarChart(title=title, bars=labels, panels=panels, notes=notes)


def _panel(counts: PlaceCounts, label: str, group: int | None, bars: list[tuple[BarLabel, int]]) -> ChartPanel:
    rest = () if group is None else (group,)
    found: list[int] = []
    for bar, place in bars:
        at = (place, *rest)
        # A value is missing because its question failed, or because nothing was asked or given.
        if bar.kind is BarKind.FAILED:
            found.append(counts.failed[at])
        else:
            found.append(counts.done[at] + (0 if place == NONE else counts.failed[at]))
    return ChartPanel(label=label, counts=tuple(found), rows=counts.rows[rest])


def _chosen(counts: tuple[int, ...], is_shown: list[bool]) -> tuple[int, ...]:
    return tuple(count for count, is_there in zip(counts, is_shown, strict=True) if is_there)


def _notes(axis: PlotAxis, rows: int) -> tuple[str, ...]:
    several = isinstance(axis, CategoryAxis) and axis.by_items
    note = counted(rows, "interview") if rows else "no interviews"
    return (note, "one may have several, so shares add up to more than 100 %") if several and rows else (note,)


def _other(others: int | None) -> str:
    return "other" if others is None else f"other ({counted(others, 'value')})"


def _samples(column: PlottedColumn) -> tuple[str, ...]:
    """A few different texts of the first rows, evenly drawn."""
    texts = list(dict.fromkeys(value for value in column.sample() if isinstance(value, str) and value.strip()))
    step = max(1, len(texts) // _MOST_SAMPLES)
    return tuple(cell_text(text, _LONGEST_SAMPLE) for text in texts[::step][:_MOST_SAMPLES])


def memory_chart(points: list[HistoryPoint], name: str, interviews: int) -> MemoryChart:
    """The memory of all runs of a file, one after the other. `interviews` are in the file: the last reading was taken
    before the last of them ended.
    """
    if not points:
        raise InvalidInput(
            f"{name} has no memory history.",
            fix="A run writes it from its first seconds on; a file of an earlier Headrace gets it with its next run.",
        )
    budget = points[-1].budget_bytes
    highest = max(point.memory_bytes for point in points)
    starts = [after.second for before, after in pairwise(points) if after.run != before.run]
    note = f"at most {format_bytes(highest)}, {share_text(highest / max(1, budget))} of {format_bytes(budget)};"
    note += f" {counted(len({point.run for point in points}), 'run')}, {counted(interviews, 'interview')}"
    return MemoryChart(
        title=f"memory of {cell_text(name, LONGEST_LABEL)}",
        marks=tuple(MemoryMark(point.second, point.memory_bytes, point.stored_bytes) for point in points),
        budget_bytes=budget,
        levels=memory_levels(min(point.memory_bytes for point in points), budget),
        starts=tuple(map(float, starts)),
        notes=(note,),
    )
