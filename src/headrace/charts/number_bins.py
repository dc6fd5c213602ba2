"""Intervals for a histogram of numbers, and the figures beside an axis: round ones. Pure.

Whole numbers get intervals of whole numbers, one each where there are few. The interval of a number is computed by the
same IEEE operations in SQL (results.plots.axes) and here, so both count alike.
"""

from __future__ import annotations

import math

import msgspec

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_WHOLE = (1, 2, 5, 10)


class NumberBins(msgspec.Struct, frozen=True):
    """`count` intervals of `width`; the first begins at `first` widths. A number at an edge belongs above it; the
    highest belongs to the last interval, which has both its edges.
    """

    first: int | float
    width: int | float
    count: int

    @property
    def is_whole(self) -> bool:
        return isinstance(self.width, int)

    def place(self, number: float) -> int:
        """The interval of a number."""
        if self.is_whole and isinstance(number, int):
            return self.clipped((number - int(self.low)) // int(self.width))
        return self.clipped(int(number / self.width - self.first))

    def clipped(self, place: int) -> int:
        """What came in after the range was read belongs to the outermost intervals."""
        return min(max(place, 0), self.count - 1)

    @property
    def low(self) -> int | float:
        return self.edge(0)

    def edge(self, place: int) -> int | float:
        """Where an interval begins."""
        return (self.first + place) * self.width

    def label(self, place: int) -> str:
        low, high = self.edge(place), self.edge(place + 1)
        if not self.is_whole:
            return f"{figure(low)} – {figure(high)}"
        return figure(low) if self.width == 1 else f"{figure(low)} – {figure(high - 1)}"


def whole_bins(low: int, high: int, most: int) -> NumberBins:
    """Intervals for whole numbers from `low` to `high`."""
    span = high - low + 1
    if span <= most:
        return NumberBins(low, 1, span)
    width, power = 1, 1
    while -(-span // width) > most:
        width = next((step * power for step in _WHOLE if -(-span // (step * power)) <= most), 10 * power)
        power *= 10
    first = low // width
    return NumberBins(first, width, high // width - first + 1)


def real_bins(low: float, high: float, most: int) -> NumberBins:
    """Intervals for numbers from `low` to `high`, which are finite and not equal."""
    wanted = high / most - low / most  # the difference itself may be beyond what a float holds
    width = _rounded_up(wanted)
    if not 0 < width < math.inf or math.isinf(low / width) or math.isinf(high / width):
        return NumberBins(0.0, max(1.0, abs(high)), 1)
    first = math.floor(low / width)
    return NumberBins(float(first), width, max(1, math.ceil(high / width - first)))


def axis_figures(most: float, count: int) -> list[float]:
    """Round figures from 0 to about `most`, at most `count` beside 0."""
    step = _rounded_up(most / count) if most > 0 else 1.0
    return [step * number for number in range(count + 1) if step * number <= most * 1.0001]


def figure(number: float) -> str:
    """A number as one writes it beside an axis: at most six figures."""
    if isinstance(number, int) and abs(number) < 10_000_000:
        return f"{number:,}" if abs(number) >= 10_000 else str(number)  # 2024 is a year
    text = f"{number:.6g}" if abs(number) < 1e7 else f"{number:.3g}"
    return text if "e" in text else f"{float(text):,.10g}"


def _rounded_up(wanted: float) -> float:
    if wanted <= 0 or not math.isfinite(wanted):
        return 0.0
    power = 10.0 ** math.floor(math.log10(wanted))
    return next((step * power for step in _ROUND if step * power >= wanted * 0.999999), 10 * power)
