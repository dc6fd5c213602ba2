"""Draws bars and histograms as SVG. A chart of several groups has a panel for each, two beside each other.

Lengths are shares of a panel's rows on one scale, so that groups of different size can be compared; the counts stand
beside. Each bar carries its place as `data-panel` and `data-bar`, and is a link where a page gives it an address. Does
not cover: the same in letters (bar_text).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from headrace.charts.chart_data import LONGEST_LABEL, BarChart, BarKind, ChartPanel, Histogram
from headrace.charts.number_bins import axis_figures, figure
from headrace.charts.svg_parts import WIDTH, document, element, escaped, filled, fitted, line, text, text_px
from headrace.display import cell_text

_MARGIN, _GAP = 16, 28
_ROW, _BAR = 24, 16
_PLOT_HIGH, _PLOT_LOW = 190, 120  # of a histogram alone, and of one among several
_LINE = 20
_MOST_TICKS = 7
_ROOM_FOR_TWO = 600


class _PanelPlace(msgspec.Struct, frozen=True):
    """Where a panel is drawn, and where its bars lead."""

    number: int
    x: float
    y: float
    width: float
    links: Sequence[str]


Links: TypeAlias = Sequence[Sequence[str]]


def bar_svg(chart: BarChart, links: Links = (), width: int = WIDTH) -> str:
    """The chart as an SVG document, some hundred pixels wide; `links` are addresses by panel and bar, empty where a bar
    leads nowhere.
    """
    parts: list[str] = []
    bottom = 44.0
    for place, panel in _placed(chart, links, width):
        drawn, bottom = _panel(chart, panel, place)
        parts += drawn
    parts_of_samples, bottom = _samples(chart, bottom, width)
    parts += parts_of_samples
    for note in chart.notes:
        parts.append(text(_MARGIN, bottom + 16, fitted(note, width - 2 * _MARGIN), "faint"))
        bottom += _LINE
    return document(chart.title, bottom + 12, parts, width, is_linked=any(map(any, links)))


def _placed(chart: BarChart, links: Links, whole_width: int) -> Iterator[tuple[_PanelPlace, ChartPanel]]:
    columns = 2 if chart.is_split and whole_width >= _ROOM_FOR_TWO else 1
    width = (whole_width - 2 * _MARGIN - _GAP * (columns - 1)) / columns
    height = _height(chart)
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, columns)
        x, y = _MARGIN + column * (width + _GAP), 44 + row * height
        yield _PanelPlace(number, x, y, width, links[number] if links else ()), panel


def _height(chart: BarChart) -> float:
    head = _ROW if chart.is_split else 0
    if isinstance(chart, Histogram):
        rows = len(chart.bars) - chart.bins.count
        return head + _plot_height(chart) + 2 * _LINE + rows * _ROW + 20
    return head + len(chart.bars) * _ROW + 14


def _panel(chart: BarChart, panel: ChartPanel, place: _PanelPlace) -> tuple[list[str], float]:
    """A panel's elements, and where it ends."""
    parts: list[str] = []
    y = place.y
    if chart.is_split:
        label = f"{fitted(panel.label, place.width - 90)}  ({panel.rows:,})"
        parts.append(text(place.x, y + 14, label, font_weight=600))
        y += _ROW
    first = 0
    if isinstance(chart, Histogram):
        parts += _plot(chart, panel, place, y)
        y += _plot_height(chart) + 2 * _LINE
        first = chart.bins.count
    parts += _rows(chart, panel, place, y, first)
    return parts, place.y + _height(chart)


def _rows(chart: BarChart, panel: ChartPanel, place: _PanelPlace, y: float, first: int) -> Iterator[str]:
    """A bar in a row for each value, from the bar `first` on."""
    shown = [fitted(bar.text, place.width * 0.4) for bar in chart.bars]
    label_px = max((text_px(label) for label in shown[first:]), default=0.0)
    counts = [_counted(panel, count) for count in panel.counts]
    room = place.width - label_px - 8 - max((text_px(words) for words in counts[first:]), default=0.0) - 8
    x = place.x + label_px + 8
    for number in range(first, len(chart.bars)):
        bar, count = chart.bars[number], panel.counts[number]
        middle = y + (number - first) * _ROW + _ROW / 2
        length = room * panel.share(count) / chart.largest_share if chart.largest_share else 0.0
        length = max(length, 1.5) if count else 0.0
        colour = "text" if bar.kind is BarKind.VALUE else "faint"
        yield text(x - 8, middle + 4.5, shown[number], colour, text_anchor="end")
        if count:
            yield _bar(chart, panel, place, number, x=x, y=middle - _BAR / 2, width=length, height=_BAR)
        yield text(x + length + 8, middle + 4.5, counts[number], "faint")


def _plot(chart: Histogram, panel: ChartPanel, place: _PanelPlace, y: float) -> Iterator[str]:
    """Upright bars without gaps over an axis of numbers."""
    height, bins = _plot_height(chart), chart.bins
    top_share = max((p.share(count) for p in chart.panels for count in p.counts[: bins.count]), default=0.0)
    scale = 100 if chart.is_split else max(1, panel.rows)
    figures = [each for each in axis_figures(top_share * scale, 4) if chart.is_split or each == int(each)]
    words = [f"{figure(round(each, 6))} %" if chart.is_split else f"{each:,.0f}" for each in figures]
    left = place.x + max(map(text_px, words), default=0.0) + 8
    each_px, floor = (place.x + place.width - left) / bins.count, y + height
    for each, label in zip(figures, words, strict=True):
        at = floor - (height - 10) * each / scale / top_share if top_share else floor
        yield line(left, at, place.x + place.width, at, "grid")
        yield text(left - 8, at + 4.5, label, "faint", text_anchor="end")
    for number in range(bins.count):
        share = panel.share(panel.counts[number])
        if share:
            tall = max((height - 10) * share / top_share, 1.0)
            gap = min(2.0, each_px * 0.15)
            at = {"x": left + number * each_px + gap / 2, "y": floor - tall, "width": each_px - gap, "height": tall}
            yield _bar(chart, panel, place, number, **at)
    yield line(left, floor, place.x + place.width, floor, "faint")
    yield from _ticks(chart, left, each_px, floor)
    yield text(left + each_px * bins.count / 2, floor + 36, chart.axis, "faint", text_anchor="middle")


def _ticks(chart: Histogram, left: float, each_px: float, floor: float) -> Iterator[str]:
    """Figures below the bars: under the middle of single numbers, otherwise at edges."""
    bins = chart.bins
    is_single = bins.is_whole and bins.width == 1
    labels = [figure(bins.edge(number)) for number in range(bins.count if is_single else bins.count + 1)]
    widest = max(map(text_px, labels)) + 12
    most = max(2, min(_MOST_TICKS if not is_single else 40, int(bins.count * each_px / widest)))
    step = -(-len(labels) // most)
    for number in range(0, len(labels), step):
        x = left + (number + (0.5 if is_single else 0.0)) * each_px
        yield text(x, floor + 18, labels[number], "faint", text_anchor="middle")


def _bar(
    chart: BarChart,
    panel: ChartPanel,
    place: _PanelPlace,
    number: int,
    *,
    x: float,
    y: float,
    width: float,
    height: float,
) -> str:
    bar, count = chart.bars[number], panel.counts[number]
    words = f"{cell_text(bar.text, LONGEST_LABEL)}: {_counted(panel, count)}"
    tip = element("title", escaped(f"{cell_text(panel.label, LONGEST_LABEL)}, {words}" if chart.is_split else words))
    places = {"data_panel": place.number, "data_bar": number}
    drawn = element("rect", tip, x=x, y=y, width=width, height=height, **filled(bar.kind.value), **places)
    link = place.links[number] if place.links else ""
    return element("a", drawn, href=link, aria_label=words) if link else drawn


def _samples(chart: BarChart, y: float, width: int) -> tuple[list[str], float]:
    if not isinstance(chart, Histogram) or not chart.samples:
        return [], y
    parts = [text(_MARGIN, y + 16, "some of them", font_weight=600)]
    for sample in chart.samples:
        y += _LINE
        parts.append(text(_MARGIN, y + 16, fitted(f"“{sample}”", width - 2 * _MARGIN)))
    return parts, y + _LINE + 8


def _plot_height(chart: BarChart) -> int:
    return _PLOT_LOW if chart.is_split else _PLOT_HIGH


def _counted(panel: ChartPanel, count: int) -> str:
    return f"{count:,} · {share_text(panel.share(count))}"


def share_text(share: float) -> str:
    """A share in per cent: few is not none, and most is not all."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if percent < 10:
        return f"{percent:.1f} %"
    return "> 99 %" if 99.5 <= percent < 100 else f"{percent:.0f} %"
