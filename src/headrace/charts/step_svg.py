"""Draws the steps of an agent run on a time line: a bar for each step, a mark for each thing that befell the run.

A run journals when a step finished, and when a side effect began: the bar of any other step begins, pale, where the one
before it finished. Bounded: the latest few dozen steps. Does not cover: reading them (web.engine_pictures).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from headrace.charts.svg_parts import WIDTH, document, element, escaped, filled, fitted, line, text
from headrace.units import format_short_duration

MOST_STEPS = 60
CUTS = ("preempted", "killed")  # marks that stand across the bars: the run computed no longer
_MOST_MARKS, _MOST_KINDS = 500, 8
_LEFT, _RIGHT, _TOP, _ROW = 190, 138, 44, 18
_COLOURS = ("preempt", "failed", "none", "value", "shrink", "other")
_Across: TypeAlias = Callable[[float], float]


class StepBar(msgspec.Struct, frozen=True):
    """A step, in seconds since the begin of the line. `is_exact`: its begin is known. One without an end goes on, or
    was cut short.
    """

    label: str
    begin_s: float
    end_s: float | None
    is_exact: bool


class RunMark(msgspec.Struct, frozen=True):
    """A moment: `what` happened then, and why."""

    second: float
    what: str
    why: str = ""


class StepChart(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    bars: tuple[StepBar, ...]
    marks: tuple[RunMark, ...]
    seconds: float
    notes: tuple[str, ...] = ()


def step_svg(chart: StepChart) -> str:
    """The chart as an SVG document."""
    seconds = max(chart.seconds, 0.001)

    def x(second: float) -> float:
        return _LEFT + min(max(second / seconds, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT)

    bars = chart.bars[-MOST_STEPS:]
    floor = _TOP + _ROW * max(1, len(bars))
    parts = [_cut(x(mark.second), floor) for mark in chart.marks[-_MOST_MARKS:] if mark.what in CUTS]
    parts += [each for row, bar in enumerate(bars) for each in _bar(bar, _TOP + _ROW * row, x, chart.seconds)]
    parts.append(line(_LEFT, floor + 2, WIDTH - _RIGHT, floor + 2, "faint"))
    parts += _axis(chart.seconds, x, floor + 18)
    bottom = floor + 26.0
    for row in _marks(chart.marks, x, bottom):
        parts += row
        bottom += 16
    for note in chart.notes:
        parts.append(text(16, bottom + 16, fitted(note, WIDTH - 32), "faint"))
        bottom += 20
    return document(chart.title, bottom + 14, parts)


def _cut(x: float, floor: float) -> str:
    return line(x, _TOP, x, floor, "preempt", stroke_dasharray="3 3")


def _bar(bar: StepBar, y: float, x: _Across, seconds: float) -> Iterator[str]:
    end_s = seconds if bar.end_s is None else bar.end_s
    begin, end = x(bar.begin_s), x(end_s)
    took = _took(max(0.0, end_s - bar.begin_s))
    words = took if bar.end_s is not None else f"not finished, {took} so far"
    words = words if bar.is_exact else f"at most {words}"
    colour = "value" if bar.end_s is not None else "preempt"
    tip = element("title", escaped(f"{bar.label}: {words}"))
    yield text(_LEFT - 8, y + 13, fitted(bar.label, _LEFT - 24), text_anchor="end")
    yield element(
        "rect",
        tip,
        x=begin,
        y=y + 4,
        width=max(2.0, end - begin),
        height=_ROW - 7,
        fill_opacity=0.9 if bar.is_exact else 0.45,
        **filled(colour),
    )
    yield text(WIDTH - _RIGHT + 8, y + 13, fitted(words, _RIGHT - 12), "faint")


def _took(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else format_short_duration(seconds)


def _axis(seconds: float, x: _Across, y: float) -> Iterator[str]:
    for part in range(3):
        second = seconds * part / 2
        yield text(x(second), y, _took(second), "faint", text_anchor="middle")


def _marks(marks: tuple[RunMark, ...], x: _Across, y: float) -> Iterator[list[str]]:
    """A row for each kind of mark."""
    kinds = list(dict.fromkeys(mark.what for mark in marks))[:_MOST_KINDS]
    for row, kind in enumerate(kinds):
        colour, at = _COLOURS[row % len(_COLOURS)], y + 16 * row
        of_kind = [mark for mark in marks if mark.what == kind][:_MOST_MARKS]
        label = text(WIDTH - _RIGHT + 8, at + 10, fitted(kind, _RIGHT - 12), "text")
        yield [*(_mark(x(mark.second), at, mark.why, colour) for mark in of_kind), label]


def _mark(x: float, y: float, why: str, colour: str) -> str:
    tip = element("title", escaped(why)) if why else ""
    return element("rect", tip, x=x - 1, y=y, width=2, height=11, **filled(colour))
