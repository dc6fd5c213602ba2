"""Functions that need all values of a group at once: in ascending order, each different value once with its count.

Missing values are left out before. Does not cover: functions with a state of bounded size (function_states), or reading
the values (tables.grouping).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from headrace.results.aggregates.exact_sums import as_float


class UniqueCount:
    """`nunique(x)`: how many different values there are."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any, count: int) -> None:
        self._count += 1

    def result(self) -> int:
        return self._count


class NumberCount:
    """How many numbers there are, which a quantile has to know first."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any, count: int) -> None:
        if isinstance(value, (int, float)):
            self._count += count

    def result(self) -> int:
        return self._count


class Quantile:
    """A quantile of `count` numbers; between two of them it lies on the line that joins them."""

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
