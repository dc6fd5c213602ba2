"""Puts figures into the words that the page, its live events and the terminal show, so that each is formatted once.

Pure but for `age` and `clock`, which look at the clock. Does not cover: bytes, counts and durations (headrace.units).
"""

from __future__ import annotations

import time
from math import ceil

import msgspec

from headrace.units import format_bytes, format_count, format_dollars, format_short_duration

_AGES_S = (("day", 86_400), ("hour", 3_600), ("minute", 60))


class ShownFigure(msgspec.Struct, frozen=True):
    """A figure as it is shown; `text` is empty where there is none now. `is_bad` where it is a fault."""

    name: str
    text: str
    is_bad: bool = False


def number(value: int) -> str:
    return f"{value:,}"


def money(dollars: float | None) -> str:
    """Dollars as a text, with as many decimal places as a small amount needs."""
    return "unknown" if dollars is None else format_dollars(dollars)


def share(part: float, whole: float) -> int:
    """Per cent, rounded down: what is not all done is never 100."""
    return min(100, int(100 * part / whole)) if whole else 100


def part_of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def bytes_of(used: int, budget: int) -> str:
    return f"{format_bytes(used)} of {format_bytes(budget)}"


def rate(per_s: float) -> str:
    """Interviews a second as a text; where there are few, interviews a minute."""
    return f"{format_count(per_s)} a second" if per_s >= 1 or per_s == 0 else f"{format_count(per_s * 60)} a minute"


def time_left(seconds: float) -> str:
    return format_short_duration(ceil(seconds))


def age(at: float) -> str:
    past_s = time.time() - at
    for unit, length_s in _AGES_S:
        if past_s >= length_s:
            count = int(past_s // length_s)
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "now"


def clock(at: float) -> str:
    """The time of day, to the second; with the date where that is not today's."""
    then, now = time.localtime(at), time.localtime()
    is_today = (then.tm_year, then.tm_yday) == (now.tm_year, now.tm_yday)
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", then)
