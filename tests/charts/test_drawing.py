import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from headrace.charts.bar_svg import bar_svg
from headrace.charts.bar_text import bar_text
from headrace.charts.chart_data import (
    BarChart,
    BarKind,
    BarLabel,
    ChartPanel,
    Histogram,
    MemoryChart,
    MemoryEvent,
    MemoryMark,
)
from headrace.charts.memory_svg import memory_svg
from headrace.charts.memory_text import memory_text, sparkline
from headrace.charts.number_bins import NumberBins, whole_bins

ATTACKS = [
    "<script>alert(1)</script>",
    '"><script>alert(1)</script>',
    "]]></style><script>",
    "javascript:alert(1)",
    "' onload='alert(1)",
    "&lt;b&gt; &amp; &#60;",
    "\x00\x1b[31m\x07\ufffe\uffff\ud800",
    "\u202egnirts",
    "",
    "   \n\t ",
    "a" * 5_000,
    "中文" * 300,
    "🏳️‍🌈é\u0301",
]
TEXTS = st.one_of(st.sampled_from(ATTACKS), st.text(max_size=60))
ELEMENTS = {"svg", "title", "style", "rect", "text", "line", "polyline", "polygon"}
KINDS = st.sampled_from(BarKind)


@st.composite
def bar_charts(draw: st.DrawFn) -> BarChart:
    bars = tuple(BarLabel(draw(TEXTS), draw(KINDS)) for _ in range(draw(st.integers(0, 24))))
    counts = st.tuples(*(st.integers(0, draw(st.sampled_from([1, 20, 10**12]))) for _ in bars))
    panels = []
    for _ in range(draw(st.integers(0, 7))):
        counted = draw(counts)
        panels.append(ChartPanel(label=draw(TEXTS), counts=counted, rows=sum(counted)))
    notes = tuple(draw(st.lists(TEXTS, max_size=2)))
    common = {"title": draw(TEXTS), "bars": bars, "panels": tuple(panels), "notes": notes}
    if bars and draw(st.booleans()):
        count = draw(st.integers(1, len(bars)))
        bins = draw(
            st.sampled_from([NumberBins(3, 1, count), NumberBins(-2, 50, count), NumberBins(-1.0, 0.25, count)])
        )
        return Histogram(**common, bins=bins, axis=draw(TEXTS), samples=tuple(draw(st.lists(TEXTS, max_size=5))))
    return BarChart(**common)


@st.composite
def memory_charts(draw: st.DrawFn) -> MemoryChart:
    seconds = sorted(draw(st.lists(st.integers(0, 10**7), max_size=30)))
    amounts = st.integers(0, 2**60)
    marks = tuple(MemoryMark(second, draw(amounts), draw(st.none() | amounts)) for second in seconds)
    events = st.builds(MemoryEvent, st.floats(-1, 1e8), TEXTS)
    return MemoryChart(
        title=draw(TEXTS),
        marks=marks,
        budget_bytes=draw(st.integers(0, 2**60)),
        events=tuple(draw(st.lists(events, max_size=5))),
        notes=tuple(draw(st.lists(TEXTS, max_size=2))),
    )


def parsed(svg: str) -> ET.Element:
    """The picture, which is well-formed, has nothing but shapes and texts, and refers to nothing outside."""
    root = ET.fromstring(svg)
    for each in root.iter():
        assert each.tag.removeprefix("{http://www.w3.org/2000/svg}") in ELEMENTS
        assert not any(name.startswith("on") or "href" in name for name in each.attrib)
    assert len(svg) < 200_000
    assert "url(" not in svg
    return root


@given(bar_charts())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_every_bar_chart_is_well_formed_and_counts_what_it_shows(chart: BarChart):
    root = parsed(bar_svg(chart))
    drawn = [each for each in root.iter() if "data-bar" in each.attrib]
    for number, panel in enumerate(chart.panels):
        shown = {int(bar.attrib["data-bar"]): bar for bar in drawn if bar.attrib["data-panel"] == str(number)}
        assert set(shown) == {place for place, count in enumerate(panel.counts) if count}
        told = [int(re.sub(r"\D", "", bar[0].text.rpartition(": ")[2].partition(" ")[0])) for bar in shown.values()]
        assert sum(told) == panel.rows
        for is_upright in (True, False):
            sizes = sorted(
                (panel.counts[place], float(bar.attrib["height" if is_upright else "width"]))
                for place, bar in shown.items()
                if is_upright == _is_upright(chart, place)
            )
            assert all(small <= large + 0.01 for (_, small), (_, large) in pairwise(sizes))
    for shape in drawn:
        assert float(shape.attrib["x"]) + float(shape.attrib["width"]) <= 721


def _is_upright(chart: BarChart, place: int) -> bool:
    return isinstance(chart, Histogram) and place < chart.bins.count


@given(memory_charts())
@settings(deadline=None, max_examples=50, derandomize=True)
def test_every_memory_chart_is_well_formed_and_fits(chart: MemoryChart):
    parsed(memory_svg(chart))
    for width in (40, 120):
        lines = memory_text(chart, width, unicode=True).split("\n")
        assert all(cell_len(line) <= min(width, 100) for line in lines)
        assert memory_text(chart, width, unicode=False).isascii()


@given(bar_charts(), st.sampled_from([30, 40, 80, 200]))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_every_bar_chart_fits_the_terminal_and_steers_nothing(chart: BarChart, width: int):
    drawn = bar_text(chart, width, unicode=True)
    assert all(cell_len(line) <= width for line in drawn.split("\n"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", drawn)
    assert bar_text(chart, width, unicode=False).isascii()


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_label_is_text_and_nothing_else(attack: str):
    panels = tuple(ChartPanel(label=attack, counts=(3,), rows=3) for _ in range(2))
    chart = Histogram(
        title=attack,
        bars=(BarLabel(attack),),
        panels=panels,
        notes=(attack,),
        bins=whole_bins(1, 1, 5),
        axis=attack,
        samples=(attack,),
    )
    svg = bar_svg(chart)
    parsed(svg)
    assert "<script" not in svg
    assert "<b>" not in svg


def test_long_bars_are_long_and_few_is_not_none():
    counts = (1_000_000, 500_000, 1, 0)
    chart = BarChart(
        title="x",
        bars=tuple(BarLabel(name) for name in "abcd"),
        panels=(ChartPanel(label="", counts=counts, rows=1_500_001),),
    )
    lengths = [line.count("█") for line in bar_text(chart, 80, unicode=True).split("\n")[1:]]
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=1)
    assert "▏" in bar_text(chart, 80, unicode=True).split("\n")[3]
    assert bar_text(chart, 80, unicode=True).split("\n")[4] == "d 0  0.0 %"


@pytest.mark.parametrize("unicode", [True, False])
def test_memory_is_drawn_below_its_budget_and_levels_keep_their_order(unicode: bool):
    marks = tuple(MemoryMark(second, 50_000_000, second * 1000) for second in range(100))
    lines = memory_text(MemoryChart(title="m", marks=marks, budget_bytes=100_000_000), 80, unicode=unicode).split("\n")
    named = [line.split("│" if unicode else "|")[0].strip() for line in lines]
    assert [name for name in named if "%" in name or "budget" in name] == [
        "100 MB budget",
        "emergency 95%",
        "preempt 85%",
        "shrink 70%",
    ]
    full = [line.count("█" if unicode else "#") for line in lines[1:13]]
    assert full[:6] == [0] * 6
    assert min(full[6:]) > 60
    assert sparkline([0, 50, 100], 100, unicode=True) == "▁▅█"


@pytest.mark.parametrize("last_bytes", [0, 68_000_000, 70_000_000, 87_000_000, 96_000_000, 100_000_000, 300_000_000])
def test_no_label_of_a_memory_picture_covers_another(last_bytes: int):
    marks = (MemoryMark(0, 10_000_000), MemoryMark(10, last_bytes))
    svg = memory_svg(MemoryChart(title="m", marks=marks, budget_bytes=100_000_000))
    labels = [each for each in parsed(svg).iter() if each.tag.endswith("text") and float(each.get("x", 0)) > 582]
    places = sorted(float(each.get("y", 0)) for each in labels)
    assert len(places) == 5
    assert all(lower - upper > 13 for upper, lower in pairwise(places))


@pytest.mark.parametrize(("stored_bytes", "is_seen"), [(100_000, False), (30_000_000, True), (300_000_000, False)])
def test_a_memory_picture_explains_a_dotted_line_where_there_is_one(stored_bytes: int, is_seen: bool):
    marks = tuple(MemoryMark(second, 10_000_000, stored_bytes) for second in range(3))
    svg = memory_svg(MemoryChart(title="m", marks=marks, budget_bytes=100_000_000))
    assert ("dotted" in svg) == ('stroke-dasharray="1.5 4"' in svg) == is_seen


def test_a_memory_picture_has_its_levels_its_highest_reading_and_its_events():
    marks = (MemoryMark(0, 10_000_000), MemoryMark(10, 80_000_000), MemoryMark(20, 20_000_000))
    events = (MemoryEvent(5, "preempted"), MemoryEvent(9, "preempted"), MemoryEvent(9, "killed"))
    svg = memory_svg(MemoryChart(title="m", marks=marks, budget_bytes=100_000_000, events=events))
    words = [each.text for each in parsed(svg).iter() if each.tag.endswith("text")]
    for expected in ("70% shrink", "85% preempt", "95% emergency", "100% budget", "at most 80 MB", "killed"):
        assert expected in words
