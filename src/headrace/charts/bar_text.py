"""Draws bars and histograms with letters, for a terminal of any width; in ASCII where its encoding has no blocks.

Kinds of bars differ in their letters, not only in their names. Does not cover: the same as SVG (bar_svg).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from headrace.charts.bar_svg import share_text
from headrace.charts.chart_data import BarChart, BarKind, ChartPanel, Histogram
from headrace.display import cell_text
from headrace.units import format_count

WIDEST = 100
_NARROWEST = 30
_LEAST_BAR = 6
_EIGHTHS = " ▏▎▍▌▋▊▉"


class BarLetters(msgspec.Struct, frozen=True):
    """How bars are drawn; `whole` by the kind of bar."""

    whole: dict[BarKind, str]
    has_eighths: bool
    ellipsis: str


BLOCKS = BarLetters(
    {BarKind.VALUE: "█", BarKind.OTHER: "▓", BarKind.MISSING: "░", BarKind.FAILED: "▒"},
    has_eighths=True,
    ellipsis="…",
)
ASCII = BarLetters(
    {BarKind.VALUE: "#", BarKind.OTHER: "+", BarKind.MISSING: ".", BarKind.FAILED: "x"},
    has_eighths=False,
    ellipsis="..",
)


def bar_text(chart: BarChart, width: int, *, unicode: bool) -> str:
    """The chart in lines of at most `width` letters."""
    width = max(_NARROWEST, min(width, WIDEST))
    letters = BLOCKS if unicode else ASCII
    lines = [fitted(chart.title, width, letters)]
    for panel in chart.panels:
        if chart.is_split:
            counted = f" ({panel.rows:,})"
            lines += ["", fitted(panel.label, width - len(counted), letters) + counted]
        lines += _rows(chart, panel, width, letters)
    if isinstance(chart, Histogram) and chart.samples:
        lines += ["", "some of them"]
        lines += [fitted(f'"{sample}"', width, letters) for sample in chart.samples]
    lines += [fitted(note, width, letters) for note in chart.notes]
    drawn = "\n".join(line.rstrip() for line in lines)
    return drawn if unicode else drawn.encode("ascii", "backslashreplace").decode()


def _rows(chart: BarChart, panel: ChartPanel, width: int, letters: BarLetters) -> Iterator[str]:
    from rich.cells import cell_len

    indent = "  " if chart.is_split else ""
    counts = [f"{count:,}  {share_text(panel.share(count))}" for count in panel.counts]
    if max(map(len, counts), default=0) > width // 2:
        counts = [format_count(count) for count in panel.counts]
    count_width = max(map(len, counts), default=0)
    room = width - len(indent) - count_width - 2
    label_room = max(4, min(room - _LEAST_BAR, room * 2 // 5 if room > 40 else room - _LEAST_BAR))
    labels = [fitted(bar.text, label_room, letters) for bar in chart.bars]
    label_width = max(map(cell_len, labels), default=0)
    bar_room = max(1, room - label_width)
    for bar, label, count, words in zip(chart.bars, labels, panel.counts, counts, strict=True):
        share = panel.share(count) / chart.largest_share if chart.largest_share else 0.0
        drawn = bar_of(share, bar_room, letters, bar.kind)
        pad = " " * (label_width - cell_len(label))
        yield f"{indent}{label}{pad} {drawn}{' ' if drawn else ''}{words}"


def bar_of(share: float, room: int, letters: BarLetters, kind: BarKind = BarKind.VALUE) -> str:
    """A bar of this share of the room; few is not none."""
    if share <= 0:
        return ""
    whole = letters.whole[kind]
    if not letters.has_eighths or kind is not BarKind.VALUE:
        return whole * max(1, round(share * room))
    full, eighths = divmod(max(1, round(share * room * 8)), 8)
    return whole * full + (_EIGHTHS[eighths] if eighths else "")


def fitted(words: str, room: int, letters: BarLetters) -> str:
    """A text on one line, cut to so many places; letters that ASCII lacks become escapes first."""
    from rich.cells import cell_len, set_cell_size

    words = cell_text(words, 4 * max(room, 8))
    if letters is ASCII:
        words = words.replace("–", "-").replace("…", "..").encode("ascii", "backslashreplace").decode()
    if cell_len(words) <= room:
        return words
    return set_cell_size(words, max(0, room - len(letters.ellipsis))).rstrip() + letters.ellipsis
