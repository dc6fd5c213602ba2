"""Puts progress into words: chooses the figures that fit a width. Pure.

Covers: one line, several lines, and the line of a log. Does not cover: where and when they are shown
(progress.refresh, progress.notebook).
"""

from __future__ import annotations

from enum import Enum
from math import ceil
from typing import NamedTuple, TypeAlias

from headrace.display import visible
from headrace.progress.pace import Pace, Progress
from headrace.units import format_bytes, format_count, format_short_duration

_GAP = "  "
_SHORTEST_BAR, _LONGEST_BAR, _BAR_STEP = 5, 30, 5
_HEAVY, _LIGHT = "━", "─"
_HEAVY_ASCII, _LIGHT_ASCII = "#", "-"


class Tone(Enum):
    PLAIN = ""
    DONE = "green"
    LEFT = "dim"
    BAD = "red"


class StyledText(NamedTuple):
    text: str
    tone: Tone = Tone.PLAIN


Line: TypeAlias = list[StyledText]


class _Figure(Enum):
    """The figures of a progress line, in their order."""

    COUNT = "count"
    NOTICE = "notice"
    LEFT = "time left"
    RATE = "rate"
    FAILED = "failed"
    IN_FLIGHT = "in flight"
    REUSED = "reused"
    TOKENS = "tokens"
    COST = "cost"
    MEMORY = "memory"


# What a narrow terminal shows first.
_BY_IMPORTANCE = (
    _Figure.COUNT,
    _Figure.NOTICE,
    _Figure.LEFT,
    _Figure.FAILED,
    _Figure.MEMORY,
    _Figure.RATE,
    _Figure.IN_FLIGHT,
    _Figure.REUSED,
    _Figure.TOKENS,
    _Figure.COST,
)


def one_line(progress: Progress, pace: Pace, width: int, *, is_ascii: bool) -> Line:
    """Make a line of as many figures as fit, the important ones first; the bar takes what they leave."""
    figures = _figures(progress, pace)
    fitting = _fitting(figures, _BY_IMPORTANCE, width)
    line = _of(figures, *(figure for figure in _Figure if figure in fitting))
    length = min(_LONGEST_BAR, width - len(plain(line)) - len(_GAP))
    if length < _SHORTEST_BAR:
        return line
    length -= length % _BAR_STEP  # a figure that grows by a letter should not make the whole line jump
    return [*_bar(_share(progress.done, progress.total), length, is_ascii=is_ascii), StyledText(_GAP), *line]


def several_lines(progress: Progress, pace: Pace, width: int, *, is_ascii: bool) -> list[Line]:
    """A bar, the pace, what it costs, and memory as a bar."""
    figures = _figures(progress, pace)
    length = min(_LONGEST_BAR, max(_SHORTEST_BAR, width - 40))
    done, used = _share(progress.done, progress.total), _share(progress.memory_bytes, progress.budget_bytes)
    paces = (_Figure.NOTICE, _Figure.LEFT, _Figure.RATE, _Figure.FAILED, _Figure.IN_FLIGHT, _Figure.REUSED)
    return [
        [*_bar(done, length, is_ascii=is_ascii), StyledText(f"{_GAP}{done:4.0%}{_GAP}{figures[_Figure.COUNT]}")],
        _of(figures, *_fitting(figures, paces, width)),
        _of(figures, _Figure.TOKENS, _Figure.COST),
        [
            *_bar(used, length, is_ascii=is_ascii),
            StyledText(f"{_GAP}{used:4.0%}{_GAP}{figures[_Figure.MEMORY]} memory"),
        ],
    ]


def figures_line(progress: Progress, pace: Pace) -> Line:
    """Every figure, where there is a bar of another kind beside them."""
    return _of(_figures(progress, pace), *_Figure)


def log_line(progress: Progress, pace: Pace) -> str:
    """Every figure, for a file."""
    done = _share(progress.done, progress.total)
    return f"headrace: {done:.1%}{_GAP}{plain(figures_line(progress, pace))}"


def plain(line: Line) -> str:
    return "".join(part.text for part in line)


def _figures(progress: Progress, pace: Pace) -> dict[_Figure, str]:
    """Write each figure, in the order of the enum; an empty one is left out."""
    per_s = pace.overall_per_s if progress.is_over else pace.recent_per_s
    texts = {
        _Figure.COUNT: f"{progress.done:>{len(f'{progress.total:,}')},}/{progress.total:,}",
        _Figure.NOTICE: _notice_text(progress),
        _Figure.LEFT: _time_text(progress, pace),
        _Figure.RATE: _rate_text(per_s) if per_s is not None else "",
        _Figure.FAILED: f"{progress.failed:,} failed" if progress.failed else "",
        _Figure.IN_FLIGHT: _in_flight_text(progress),
        _Figure.REUSED: f"{format_count(progress.reused)} reused" if progress.reused else "",
        _Figure.TOKENS: _tokens_text(progress.input_tokens, progress.output_tokens),
        _Figure.COST: f"${progress.cost:,.2f}" if progress.cost is not None else "",
        _Figure.MEMORY: _amount_within(progress.memory_bytes, progress.budget_bytes) if progress.budget_bytes else "",
    }
    return {figure: text for figure, text in texts.items() if text}


def _notice_text(progress: Progress) -> str:
    """On one line: it may quote a service."""
    notice = visible(" ".join(progress.notice.split()))
    return " ".join(part for part in ("paused" if progress.is_paused else "", notice) if part)


def _in_flight_text(progress: Progress) -> str:
    return "" if progress.is_over or progress.in_flight is None else f"{progress.in_flight:,} in flight"


def _time_text(progress: Progress, pace: Pace) -> str:
    if progress.is_over:
        return f"in {format_short_duration(pace.elapsed_s)}"
    left_s = pace.left_s(progress)
    return f"ETA {format_short_duration(ceil(left_s))}" if left_s is not None else "ETA ?"


def _rate_text(per_s: float) -> str:
    return f"{format_count(per_s)}/s" if per_s >= 1 or per_s == 0 else f"{format_count(per_s * 60)}/min"


def _tokens_text(given: int, made: int) -> str:
    """`1.2M+45k tok`: into the models, and out of them."""
    return f"{format_count(given)}+{format_count(made)} tok" if given or made else ""


def _amount_within(used: int, budget: int) -> str:
    """`45/512 MB`: the unit once where both have it."""
    (amount, unit), whole = format_bytes(used).split(" "), format_bytes(budget)
    return f"{amount}/{whole}" if whole.endswith(f" {unit}") else f"{amount} {unit}/{whole}"


def _share(part: int, whole: int) -> float:
    return min(1.0, part / whole) if whole else 1.0


def _bar(share: float, length: int, *, is_ascii: bool) -> Line:
    """Two different characters, so that it can be read without colours."""
    done = int(share * length)
    heavy, light = (_HEAVY_ASCII, _LIGHT_ASCII) if is_ascii else (_HEAVY, _LIGHT)
    return [StyledText(heavy * done, Tone.DONE), StyledText(light * (length - done), Tone.LEFT)]


def _of(figures: dict[_Figure, str], *wanted: _Figure) -> Line:
    return _spaced([_styled(figure, figures[figure]) for figure in wanted if figure in figures])


def _fitting(figures: dict[_Figure, str], by_importance: tuple[_Figure, ...], width: int) -> list[_Figure]:
    """Choose figures up to the first that does not fit: a lesser one instead would come and go."""
    chosen = [figure for figure in by_importance if figure in figures]
    while chosen and _length(figures, chosen) > width:
        chosen.pop()
    return chosen


def _length(figures: dict[_Figure, str], chosen: list[_Figure]) -> int:
    return sum(len(figures[figure]) for figure in chosen) + len(_GAP) * max(0, len(chosen) - 1)


def _styled(figure: _Figure, text: str) -> StyledText:
    return StyledText(text, Tone.BAD if figure is _Figure.FAILED else Tone.PLAIN)


def _spaced(texts: Line) -> Line:
    return [each for part in texts for each in (StyledText(_GAP), part)][1:]
