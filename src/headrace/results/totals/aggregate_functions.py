"""The functions of totals: each has a state of bounded size to which values are added, one by one.

They mean what those of `results.group_by(...).agg(...)` mean (tables.aggregates), and give the same numbers: None and
NaN are skipped, `sum`, `mean`, `var` and `std` take numbers and are rounded once, at the end, so that no order of
completion and no kill shows in them. Does not cover: which values (written_totals).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

from headrace.expressions import is_true
from headrace.results.tables.aggregates import as_float

_MOST_EXPONENT = 2 * 1_100  # of a float's denominator, squared


class Accumulator(Protocol):
    def add(self, value: Any) -> None: ...

    def encode(self) -> list[Any]:
        """The state as values that JSON has, tagged."""
        ...

    def decode(self, state: list[Any]) -> None:
        """Go on from this state."""
        ...

    def value(self) -> Any: ...


class Counted:
    """`count()` and `count(x)`: rows, or values that are not None."""

    __slots__ = ("_count", "_every")

    def __init__(self, *, every: bool = False) -> None:
        self._count = 0
        self._every = every

    def add(self, value: Any) -> None:
        if self._every or _is_value(value):
            self._count += 1

    def encode(self) -> list[Any]:
        return [self._count]

    def decode(self, state: list[Any]) -> None:
        (self._count,) = state

    def value(self) -> int:
        return self._count


class ExactSum:
    """A sum that depends on no order: floats are added as fractions, by the exponent of their denominator, of which
    there are about a thousand at most.
    """

    __slots__ = ("_above", "_infinite", "_whole", "count", "has_floats")

    def __init__(self) -> None:
        self.count = 0
        self.has_floats = False
        self._whole = 0
        self._infinite = 0.0
        self._above: dict[int, int] = {}  # numerators by the exponent of their denominator, a power of two

    def add(self, value: float, power: int = 1) -> None:
        """Add a number, or its square with a `power` of 2."""
        self.count += 1
        if isinstance(value, int):
            self._whole += value**power
            return
        self.has_floats = True
        if math.isinf(value):
            self._infinite += value**power
            return
        above, below = value.as_integer_ratio()
        exponent = power * (below.bit_length() - 1)
        self._above[exponent] = self._above.get(exponent, 0) + above**power

    def total(self) -> Fraction | None:
        """None where an infinity is among the numbers."""
        if self._infinite:
            return None
        return self._whole + sum((Fraction(n, 1 << exponent) for exponent, n in self._above.items()), Fraction(0))

    def infinity(self) -> float | None:
        return None if math.isnan(self._infinite) else self._infinite

    def encode(self) -> list[Any]:
        return [self.count, self.has_floats, self._whole, self._infinite, [[*pair] for pair in self._above.items()]]

    def decode(self, state: list[Any]) -> None:
        self.count, self.has_floats, self._whole, self._infinite, above = state
        self._above = {min(max(0, exponent), _MOST_EXPONENT): number for exponent, number in above}


class Summed:
    """`sum(x)`."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = ExactSum()

    def add(self, value: Any) -> None:
        if _is_number(value):
            self.numbers.add(value)

    def encode(self) -> list[Any]:
        return self.numbers.encode()

    def decode(self, state: list[Any]) -> None:
        self.numbers.decode(state)

    def value(self) -> Any:
        total = self.numbers.total()
        if total is None:
            return self.numbers.infinity()
        return as_float(total) if self.numbers.has_floats else int(total)


class Averaged(Summed):
    """`mean(x)`."""

    __slots__ = ()

    def value(self) -> float | None:
        total = self.numbers.total()
        if total is None:
            return self.numbers.infinity()
        return as_float(total / self.numbers.count) if self.numbers.count else None


class Spread(Summed):
    """`var(x)`, and its root `std(x)`, of a sample."""

    __slots__ = ("_is_root", "_squares")

    def __init__(self, *, is_root: bool = False) -> None:
        super().__init__()
        self._squares = ExactSum()
        self._is_root = is_root

    def add(self, value: Any) -> None:
        if _is_number(value):
            self.numbers.add(value)
            self._squares.add(value, 2)

    def encode(self) -> list[Any]:
        return [self.numbers.encode(), self._squares.encode()]

    def decode(self, state: list[Any]) -> None:
        numbers, squares = state
        self.numbers.decode(numbers)
        self._squares.decode(squares)

    def value(self) -> float | None:
        total, squares, count = self.numbers.total(), self._squares.total(), self.numbers.count
        if total is None or squares is None or count < 2:
            return None
        spread = as_float((squares - total * total / count) / (count - 1))
        return math.sqrt(spread) if self._is_root else spread


class Extreme:
    """`min(x)` and `max(x)`: of numbers, then of texts; lists and dicts are skipped."""

    __slots__ = ("_is_most", "_key", "_value")

    def __init__(self, *, is_most: bool) -> None:
        self._is_most = is_most
        self._key: tuple[bool, Any] | None = None
        self._value: Any = None

    def add(self, value: Any) -> None:
        if not _is_number(value) and not isinstance(value, str):
            return
        key = isinstance(value, str), value
        if self._key is None or (key > self._key if self._is_most else key < self._key):
            self._key, self._value = key, value

    def encode(self) -> list[Any]:
        return [self._value]

    def decode(self, state: list[Any]) -> None:
        (value,) = state
        self.add(value)

    def value(self) -> Any:
        return self._value


class TruthCount:
    """`share(x)`: the part of the values that are true, of those that are not None; and whether any or all are."""

    __slots__ = ("_count", "_function", "_true")

    def __init__(self, function: str) -> None:
        self._count = self._true = 0
        self._function = function

    def add(self, value: Any) -> None:
        if _is_value(value):
            self._count += 1
            self._true += is_true(value)

    def encode(self) -> list[Any]:
        return [self._count, self._true]

    def decode(self, state: list[Any]) -> None:
        self._count, self._true = state

    def value(self) -> float | bool | None:
        match self._function:
            case "any":
                return self._true > 0
            case "all":
                return self._true == self._count
            case _:
                return self._true / self._count if self._count else None


FUNCTIONS = ("count", "sum", "mean", "min", "max", "var", "std", "share", "any", "all")


def accumulator(function: str, *, of_rows: bool) -> Accumulator:
    """A new state of this function; `of_rows` where it is given no value."""
    match function:
        case "count":
            return Counted(every=of_rows)
        case "sum":
            return Summed()
        case "mean":
            return Averaged()
        case "min" | "max":
            return Extreme(is_most=function == "max")
        case "var" | "std":
            return Spread(is_root=function == "std")
        case "share" | "any" | "all":
            return TruthCount(function)
        case _:
            raise ValueError(f"there is no function {function!r}")


def _is_value(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))
