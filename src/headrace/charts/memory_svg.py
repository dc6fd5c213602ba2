"""Draws memory over time as SVG: the line, the budget with its levels, the bytes on disk, runs and events.

Does not cover: the same in letters (memory_text).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from headrace.charts.chart_data import MemoryChart
from headrace.charts.svg_parts import (
    WIDTH,
    document,
    element,
    escaped,
    filled,
    fitted,
    line,
    stroked,
    text,
)
from headrace.units import format_bytes, format_short_duration

_LEFT, _RIGHT, _TOP, _HEIGHT = 72, 138, 48, 250
_COLOURS = ("shrink", "preempt", "emergency")
_MOST_EVENTS, _MOST_KINDS = 2_000, 8
_LINE = 14.0  # from one label to the next
_LOWEST_DOTTED = 4.0  # above the floor: below that, nobody sees the dots
Scale: TypeAlias = Callable[[float], float]


def memory_svg(chart: MemoryChart) -> str:
    """The chart as an SVG document."""
    first_s = chart.marks[0].second if chart.marks else 0.0
    across, floor = WIDTH - _LEFT - _RIGHT, _TOP + _HEIGHT
    top_bytes = chart.top_bytes * 1.05

    def x(second: float) -> float:
        return _LEFT + min(max((second - first_s) / chart.seconds, 0.0), 1.0) * across

    def y(amount: float) -> float:
        return floor - min(amount / top_bytes, 1.0) * _HEIGHT

    stored = list(_stored(chart, x, y))
    parts = [*_levels(chart, y), *_starts(chart, x, floor), *stored, *_line(chart, x, y)]
    parts.append(line(_LEFT, floor, WIDTH - _RIGHT, floor, "faint"))
    parts += _seconds(chart, x, first_s, floor)
    bottom = floor + 28.0
    for row in _events(chart, x, bottom):
        parts += row
        bottom += 16
    dotted = "dotted: the size of the results on disk, as if it were kept in RAM (an estimate)"
    for note in (*chart.notes, *([dotted] if stored else [])):
        parts.append(text(16, bottom + 16, fitted(note, WIDTH - 32), "faint"))
        bottom += 20
    return document(chart.title, bottom + 14, parts)


def _levels(chart: MemoryChart, y: Scale) -> Iterator[str]:
    levels = _named_levels(chart)
    colours = [*_COLOURS[: len(levels) - 1], "text"]
    for (share, what), colour, label in zip(levels, colours, _label_places(chart, y), strict=True):
        at = y(chart.budget_bytes * share)
        yield line(_LEFT, at, WIDTH - _RIGHT, at, colour, stroke_dasharray="5 4")
        yield text(WIDTH - _RIGHT + 8, label, f"{share:.0%} {what}", colour)
        if share in (0.70, 1.0):
            yield text(_LEFT - 8, at + 4.5, format_bytes(chart.budget_bytes * share), "faint", text_anchor="end")
    yield text(_LEFT - 8, _TOP + _HEIGHT + 4.5, "0", "faint", text_anchor="end")


def _named_levels(chart: MemoryChart) -> list[tuple[float, str]]:
    return [*chart.levels[: len(_COLOURS)], (1.0, "budget")]


def _label_places(chart: MemoryChart, y: Scale) -> list[float]:
    """Where the labels of the levels stand: those of levels that lie close to each other are kept apart."""
    places: list[float] = []
    below = _TOP + _HEIGHT + 20.0
    for share, _ in _named_levels(chart):
        below = min(y(chart.budget_bytes * share) + 4.5, below - _LINE)
        places.append(below)
    return places


def _free_place(wanted: float, taken: list[float]) -> float:
    """The place nearest to the wanted one that is a line away from all that are taken."""
    beside = [place + shift for place in taken for shift in (-_LINE, _LINE)]
    free = (place for place in (wanted, *beside) if all(abs(place - other) > _LINE - 0.1 for other in taken))
    return min(free, key=lambda place: abs(place - wanted))


def _line(chart: MemoryChart, x: Scale, y: Scale) -> Iterator[str]:
    if not chart.marks:
        return
    points = [(x(mark.second), y(mark.memory_bytes)) for mark in chart.marks]
    if len(points) == 1:
        points.append((x(chart.marks[0].second + chart.seconds), points[0][1]))
    drawn = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
    highest = max(mark.memory_bytes for mark in chart.marks)
    area = f"{points[0][0]:.1f},{_TOP + _HEIGHT} {drawn} {points[-1][0]:.1f},{_TOP + _HEIGHT}"
    yield element("polygon", points=area, fill_opacity=0.15, **filled("value"))
    tip = element("title", escaped(f"at most {format_bytes(highest)}"))
    yield element("polyline", tip, points=drawn, stroke_width=1.8, stroke_linejoin="round", **stroked("value"))
    last = _free_place(min(points[-1][1] + 4.5, _TOP + _HEIGHT - 2), _label_places(chart, y))
    yield text(WIDTH - _RIGHT + 8, last, f"at most {format_bytes(highest)}", "value", font_weight=600)


def _stored(chart: MemoryChart, x: Scale, y: Scale) -> Iterator[str]:
    """The dotted line ends where it leaves the picture: the results alone would then fill more than the budget. There
    is none where all of it would lie on the line below the picture.
    """
    marks = [mark for mark in chart.marks if mark.stored_bytes is not None]
    inside = [mark for mark in marks if (mark.stored_bytes or 0) <= chart.top_bytes * 1.05]
    highest = max((mark.stored_bytes or 0 for mark in inside), default=0)
    if len(inside) < 2 or y(0) - y(highest) < _LOWEST_DOTTED:
        return
    points = " ".join(f"{x(mark.second):.1f},{y(mark.stored_bytes or 0):.1f}" for mark in inside)
    yield element("polyline", points=points, stroke_dasharray="1.5 4", stroke_width=1.6, **stroked("faint"))


def _starts(chart: MemoryChart, x: Scale, floor: float) -> Iterator[str]:
    for second in chart.starts:
        yield line(x(second), _TOP + 4, x(second), floor, "grid")


def _seconds(chart: MemoryChart, x: Scale, first_s: float, floor: float) -> Iterator[str]:
    count = 5 if chart.seconds >= 5 else 1
    for part in range(count + 1):
        second = first_s + chart.seconds * part / count
        yield text(x(second), floor + 18, format_short_duration(second - first_s), "faint", text_anchor="middle")


def _events(chart: MemoryChart, x: Scale, y: float) -> Iterator[list[str]]:
    """A row for each kind of event, with a mark at each moment."""
    kinds = list(dict.fromkeys(event.what for event in chart.events))[:_MOST_KINDS]
    for row, kind in enumerate(kinds):
        colour, at = ("none", "preempt", "failed", "value", "shrink", "other")[row % 6], y + 16 * row
        moments = [event for event in chart.events if event.what == kind][:_MOST_EVENTS]
        label = text(WIDTH - _RIGHT + 8, at + 10, fitted(kind, _RIGHT - 12), "text")
        yield [*(_moment(x(each.second), at, each.why, colour) for each in moments), label]


def _moment(x: float, y: float, why: str, colour: str) -> str:
    tip = element("title", escaped(why)) if why else ""
    return element("line", tip, x1=x, y1=y, x2=x, y2=y + 11, stroke_width=1.5, **stroked(colour))
