"""Sums of numbers without rounding. Covers: adding, the state as JSON, the total as a fraction, rounding it once.

Does not cover: means and variances, which are made of such totals (function_states).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

_MOST_EXPONENT = 2 * 1_100  # of a float's denominator, squared


def as_float(number: Fraction | float) -> float:
    """The nearest float; infinity where it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def checked_count(held: object) -> int:
    """A count that a file holds; ValueError where nothing can have been counted that way."""
    if type(held) is not int or held < 0:
        raise ValueError(f"{str(held)[:40]} is no count")
    return held


class ExactSum:
    """A sum of numbers, or of their squares with a `power` of 2, that depends on no order. Other values are left out.

    Floats are added as fractions, by the exponent of their denominator, of which there are about a thousand at most.
    """

    __slots__ = ("_above", "_infinite", "_power", "_whole", "count", "has_floats")

    def __init__(self, power: int = 1) -> None:
        self.count = 0
        self.has_floats = False
        self._power = power
        self._whole = 0
        self._infinite = 0.0
        self._above: dict[int, int] = {}  # numerators by the exponent of their denominator, a power of two

    def add(self, value: Any, count: int = 1) -> None:
        if isinstance(value, int):
            self.count += count
            self._whole += value**self._power * count
        elif isinstance(value, float):
            self.count += count
            self.has_floats = True
            if math.isinf(value):
                self._infinite += value**self._power
                return
            above, below = value.as_integer_ratio()
            exponent = self._power * (below.bit_length() - 1)
            self._above[exponent] = self._above.get(exponent, 0) + above**self._power * count

    def total(self) -> Fraction | None:
        """None where an infinity is among the numbers."""
        if self._infinite:
            return None
        return self._whole + sum((Fraction(n, 1 << exponent) for exponent, n in self._above.items()), Fraction(0))

    def infinity(self) -> float | None:
        """The sum where an infinity is among the numbers; None where both are."""
        return None if math.isnan(self._infinite) else self._infinite

    def encode(self) -> list[Any]:
        return [self.count, self.has_floats, self._whole, self._infinite, [[*pair] for pair in self._above.items()]]

    def decode(self, state: list[Any]) -> None:
        count, has_floats, whole, infinite, above = state
        numbers = [whole, *(number for pair in above for number in pair)]
        if (
            type(has_floats) is not bool
            or type(infinite) is not float
            or any(type(each) is not int for each in numbers)
        ):
            raise ValueError("a sum that was never written")
        if any(exponent not in range(_MOST_EXPONENT + 1) for exponent, _ in above):
            raise ValueError("a sum of fractions that no float has")
        self.count, self.has_floats, self._whole, self._infinite = checked_count(count), has_floats, whole, infinite
        self._above = dict(above)
