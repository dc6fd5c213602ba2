"""Bytes, durations and counts as text and back. Covers: parsing what users write once, at the edge, and saying figures.

Does not cover: what a memory budget means on this machine (memory.budget).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from headrace.errors import OptionError

NONE = "none"  # written in place of a budget, it lifts the one that was given before
_BYTES_PER_UNIT = {
    "": 1, "b": 1,
    "k": 1000, "kb": 1000, "kib": 1024,
    "m": 1000**2, "mb": 1000**2, "mib": 1024**2,
    "g": 1000**3, "gb": 1000**3, "gib": 1024**3,
    "t": 1000**4, "tb": 1000**4, "tib": 1024**4,
}  # fmt: skip
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


class BudgetKind(Enum):
    TOTAL = "total"  # the whole process tree
    SHARE = "share"  # a part of what the host or container has
    EXTRA = "extra"  # on top of what the process already uses


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetText:
    """A memory budget as written: `amount` is bytes, or a fraction where the kind is SHARE."""

    kind: BudgetKind
    amount: float


def parse_bytes(text: str | int, *, forms: str = '"512MB" or "2GiB"') -> int:
    """`"256MB"` is 256,000,000 and `"256MiB"` is 268,435,456."""
    match = _AMOUNT.fullmatch(str(text)) if isinstance(text, (str, int)) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    unit = match[2].lower() if match else None
    if match is None or unit not in _BYTES_PER_UNIT:
        raise OptionError(f"{text!r} is not an amount of memory.", fix=f"Write it like {forms}.")
    return int(float(match[1]) * _BYTES_PER_UNIT[unit])


def parse_budget(text: str | int) -> BudgetText:
    """Read what a user gives as `memory=`: `"512MB"`, `"60%"` or `"+512MB"`."""
    if not isinstance(text, (str, int)):  # pyright: ignore[reportUnnecessaryIsInstance] - 0.6 could be a share, or GB
        raise OptionError(f"{text!r} is not an amount of memory.", fix='Write "60%" for a share, or "1.5GB".')
    written = str(text).strip()
    if written.endswith("%"):
        return BudgetText(kind=BudgetKind.SHARE, amount=_share(written))
    kind = BudgetKind.EXTRA if written.startswith("+") else BudgetKind.TOTAL
    amount = parse_bytes(written.removeprefix("+"), forms='"512MB", "2GiB" or "60%"')
    if amount <= 0:
        raise OptionError(f"A memory budget of {text!r} leaves no room.", fix='Write it like "512MB".')
    return BudgetText(kind=kind, amount=amount)


def _share(written: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", written)
    if match is None or not 0 < float(match[1]) <= 100:
        raise OptionError(f"{written!r} is not a share of memory.", fix='Write a share between 1 and 100, like "60%".')
    return float(match[1]) / 100


def format_bytes(amount: float) -> str:
    """`512000000` as `"512 MB"`: three figures at most, decimal units."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def format_dollars(amount: float) -> str:
    """`0.734` as `"$0.73"`; below ten cents two significant figures, `"$0.0042"`."""
    if amount >= 0.095 or amount <= 0:
        return f"${max(0.0, amount):,.2f}"
    if amount < 1e-6:
        return "< $0.000001"
    return f"${float(f'{amount:.2g}'):.7f}".rstrip("0")


def format_duration(seconds: float) -> str:
    """`75.2` as `"1 min 15 s"`: the two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left_s} s"


def format_short_duration(seconds: float) -> str:
    """`75.2` as `"1m15s"`: the two largest units, without blanks, where room is short."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86_400:,}d{whole % 86_400 // 3600:02}h"


def format_count(count: float) -> str:
    """`12345` as `"12.3k"`: three figures, where room is short. A whole number below 1000 stays whole."""
    if count < 1000 and count == int(count):
        return f"{count:.0f}"
    for unit in ("", "k", "M", "G"):
        if abs(count) < 999.5:
            return f"{f'{count:#.3g}'.rstrip('.')}{unit}"
        count /= 1000
    return f"{count:,.1f}T"
