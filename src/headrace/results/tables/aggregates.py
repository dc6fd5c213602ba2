"""What the functions of `agg` compute of one group: `mean`, `median`, `share` and the others.

Each is given a group's values with how often each occurs, in ascending order. None and NaN are missing: every function
leaves them out. Numbers are summed exactly, as fractions, and rounded once at the end, so that a result depends neither
on the order of rows nor on whether SQLite or Python has counted them. Values that are no numbers count as missing to
the functions of numbers. Does not cover: reading the values (grouping).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

from headrace.expressions import is_true


class Aggregate(Protocol):
    """A function of one group."""

    def add(self, value: Any, count: int) -> None:
        """Take a value that is not missing and occurs `count` times."""
        ...

    def result(self) -> Any: ...


def is_missing(value: Any) -> bool:
    return value is None or value != value


def as_float(number: Fraction | float) -> float:
    """The nearest float; infinity where it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class _Count:
    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any, count: int) -> None:
        self._count += count

    def result(self) -> int:
        return self._count


class _UniqueCount(_Count):
    def add(self, value: Any, count: int) -> None:
        self._count += 1


class _Sum:
    """The exact sum: whole numbers as they are, floats as fractions by their denominator."""

    def __init__(self) -> None:
        self.count = 0
        self.has_floats = False
        self._whole = 0
        self._infinite = 0.0
        self._fractions: dict[int, int] = {}

    def add(self, value: Any, count: int) -> None:
        if isinstance(value, int):
            self.count += count
            self._whole += value * count
        elif isinstance(value, float):
            self.count += count
            self.has_floats = True
            if math.isinf(value):
                self._infinite += value
                return
            above, below = value.as_integer_ratio()
            self._fractions[below] = self._fractions.get(below, 0) + above * count

    def total(self) -> Fraction | None:
        """None where an infinity is among the numbers."""
        if self._infinite:
            return None
        return self._whole + sum((Fraction(above, below) for below, above in self._fractions.items()), Fraction(0))

    def result(self) -> int | float | None:
        total = self.total()
        if total is None:
            return self.infinity()
        return as_float(total) if self.has_floats else int(total)

    def infinity(self) -> float | None:
        return None if math.isnan(self._infinite) else self._infinite


class _Mean(_Sum):
    def result(self) -> float | None:
        total = self.total()
        if total is None:
            return self.infinity()
        return as_float(total / self.count) if self.count else None


class _Variance(_Sum):
    """Of a sample, as pandas has it: divided by one less than there are."""

    def __init__(self) -> None:
        super().__init__()
        self._squares = _Squares()

    def add(self, value: Any, count: int) -> None:
        super().add(value, count)
        self._squares.add(value, count)

    def result(self) -> float | None:
        total, squares = self.total(), self._squares.total
        if total is None or self.count < 2:
            return None
        return as_float((squares - total * total / self.count) / (self.count - 1))


class _Squares:
    def __init__(self) -> None:
        self._by_denominator: dict[int, int] = {}

    def add(self, value: Any, count: int) -> None:
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            above, below = value.as_integer_ratio()
            self._by_denominator[below] = self._by_denominator.get(below, 0) + above * above * count

    @property
    def total(self) -> Fraction:
        parts = (Fraction(above, below * below) for below, above in self._by_denominator.items())
        return sum(parts, Fraction(0))


class _Deviation(_Variance):
    def result(self) -> float | None:
        variance = super().result()
        return None if variance is None else math.sqrt(variance)


class _Smallest:
    def __init__(self) -> None:
        self._found: Any = None
        self._is_found = False

    def add(self, value: Any, count: int) -> None:
        if not self._is_found:
            self._found, self._is_found = value, True

    def result(self) -> Any:
        return self._found


class _Largest(_Smallest):
    def add(self, value: Any, count: int) -> None:
        self._found = value


class _TrueAndAll:
    def __init__(self) -> None:
        self.true = self.count = 0

    def add(self, value: Any, count: int) -> None:
        self.count += count
        self.true += count if is_true(value) else 0


class _AnyTrue(_TrueAndAll):
    def result(self) -> bool:
        return self.true > 0


class _AllTrue(_TrueAndAll):
    def result(self) -> bool:
        return self.true == self.count


class _Share(_TrueAndAll):
    def result(self) -> float | None:
        return self.true / self.count if self.count else None


class Quantile:
    """A quantile of `count` numbers, which has to be known; between two of them it lies on the line that joins them."""

    def __init__(self, part: float, count: int) -> None:
        place = part * (count - 1)
        self._below = math.floor(place)
        self._above = min(self._below + 1, count - 1)
        self._weight = place - self._below
        self._passed = 0
        self._found: list[int | float | None] = [None, None]

    def add(self, value: Any, count: int) -> None:
        if not isinstance(value, (int, float)):
            return
        for number, place in enumerate((self._below, self._above)):
            if self._passed <= place < self._passed + count:
                self._found[number] = value
        self._passed += count

    def result(self) -> float | None:
        below, above = self._found
        if below is None or above is None:
            return None
        if below == above or not self._weight:
            return as_float(below)
        infinite = [number for number in (below, above) if isinstance(number, float) and math.isinf(number)]
        if infinite:
            return infinite[0] if len(infinite) == 1 else None
        return as_float(Fraction(below) + (Fraction(above) - Fraction(below)) * Fraction(self._weight))


class NumberCount(_Count):
    """How many numbers there are."""

    def add(self, value: Any, count: int) -> None:
        if isinstance(value, (int, float)):
            self._count += count


AGGREGATES: dict[str, Callable[[], Aggregate]] = {
    "count": _Count,
    "sum": _Sum,
    "mean": _Mean,
    "var": _Variance,
    "std": _Deviation,
    "min": _Smallest,
    "max": _Largest,
    "nunique": _UniqueCount,
    "any": _AnyTrue,
    "all": _AllTrue,
    "share": _Share,
}
QUANTILES = ("median", "quantile")
PLACED = ("first", "last")
FUNCTIONS = frozenset({*AGGREGATES, *QUANTILES, *PLACED})
