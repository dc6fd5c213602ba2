"""Draws memory over time with letters: a filled line below the budget and its levels.

Does not cover: the same as SVG (memory_svg).
"""

from __future__ import annotations

from headrace.charts.bar_text import ASCII, BLOCKS, WIDEST, fitted
from headrace.charts.chart_data import MemoryChart
from headrace.units import format_bytes, format_short_duration

MOST_ROWS = 12
_NARROWEST = 30
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PARTS = len(_EIGHTHS) - 1


def memory_text(chart: MemoryChart, width: int, *, unicode: bool, rows: int = MOST_ROWS) -> str:
    """The chart in lines of at most `width` letters; `rows` of them are the line's, beside the title and the axis."""
    width, letters = max(_NARROWEST, min(width, WIDEST)), BLOCKS if unicode else ASCII
    labels = _labels(chart, rows)
    margin = max(map(len, labels.values()))
    across = width - margin - 2
    heights = [rows * amount / chart.top_bytes for amount in columns_of(chart, across)]
    lines = [fitted(chart.title, width, letters)]
    for row in reversed(range(rows)):
        drawn = "".join(_letter(height - row, is_level=row in labels, unicode=unicode) for height in heights)
        lines.append(f"{labels.get(row, ''):>{margin}} {'│' if unicode else '|'}{drawn}")
    lines.append(f"{'0':>{margin}} {'└' if unicode else '+'}{('─' if unicode else '-') * across}")
    lines.append(f"{'':>{margin}}  {_seconds(chart, across)}")
    lines += [fitted(note, width, letters) for note in chart.notes]
    return "\n".join(line.rstrip() for line in lines)


def sparkline(amounts: list[int], top: int, *, unicode: bool) -> str:
    """One letter for each amount."""
    levels = _EIGHTHS[1:] if unicode else "_.-=#"
    return "".join(levels[min(len(levels) - 1, amount * len(levels) // max(top, 1))] for amount in amounts)


def columns_of(chart: MemoryChart, count: int) -> list[int]:
    """The highest memory in each of so many equal parts of the time; a part without a reading goes on as before."""
    found = [0] * count
    first_s = chart.marks[0].second if chart.marks else 0.0
    for mark in chart.marks:
        column = min(count - 1, int((mark.second - first_s) / chart.seconds * count))
        found[column] = max(found[column], mark.memory_bytes)
    for column in range(1, count):
        found[column] = found[column] or found[column - 1]
    return found


def _labels(chart: MemoryChart, rows: int) -> dict[int, str]:
    """The rows of the levels and of the budget, with what stands beside them."""
    found: dict[int, str] = {}
    for share, what in (*chart.levels, (1.0, "budget")):
        row = max(0, min(rows - 1, round(rows * share * chart.budget_bytes / chart.top_bytes) - 1))
        amount = format_bytes(chart.budget_bytes)
        found[row] = f"{amount} {what}" if share == 1.0 else f"{what} {share:.0%}"
    return found


def _letter(height: float, *, is_level: bool, unicode: bool) -> str:
    """The letter of one place, of which `height` is filled."""
    filled = round(min(1.0, max(0.0, height)) * _PARTS)
    if filled:
        return _EIGHTHS[filled] if unicode else "#"
    return " " if not is_level else "╌" if unicode else "-"


def _seconds(chart: MemoryChart, across: int) -> str:
    last = format_short_duration(chart.seconds)
    return f"0s{last:>{max(0, across - 2)}}"
