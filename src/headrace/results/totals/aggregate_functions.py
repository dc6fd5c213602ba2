"""The functions of totals: each has a state of bounded size to which values are added, one by one.

None is skipped, and so is NaN; `count()` counts rows. `sum`, `mean`, `var` and `std` take numbers, True as 1, and skip
what is none. `var` and `std` are those of a sample (n - 1), as in pandas. Sums of whole numbers are exact; those of
floats carry the part that rounding would lose. Does not cover: which values (written_totals).
"""

from __future__ import annotations

import math
from typing import Any, Protocol, cast

from headrace.expressions import is_true


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


class Summed:
    """`sum(x)`: whole numbers exactly, floats with Neumaier's correction."""

    __slots__ = ("_float", "_int", "_lost", "count")

    def __init__(self) -> None:
        self.count = 0
        self._int = 0
        self._float = self._lost = 0.0

    def add(self, value: Any) -> None:
        if not _is_number(value):
            return
        self.count += 1
        if not isinstance(value, float):
            self._int += value
            return
        total = self._float + value
        if math.isfinite(total):
            larger, smaller = (self._float, value) if abs(self._float) >= abs(value) else (value, self._float)
            self._lost += (larger - total) + smaller
        self._float = total

    def encode(self) -> list[Any]:
        return [self.count, self._int, self._float, self._lost]

    def decode(self, state: list[Any]) -> None:
        self.count, self._int, self._float, self._lost = state

    def value(self) -> int | float:
        if self._float == 0.0 and self._lost == 0.0:
            return self._int
        return _as_float(self._int) + (self._float + self._lost)


class Averaged(Summed):
    """`mean(x)`."""

    __slots__ = ()

    def value(self) -> Any:
        if not self.count:
            return None
        total = super().value()
        try:
            return total / self.count
        except OverflowError:  # beyond what a float holds
            return math.copysign(math.inf, total)


class Spread:
    """`var(x)`, and its root `std(x)`, by Welford's method."""

    __slots__ = ("_count", "_is_root", "_mean", "_squares")

    def __init__(self, *, is_root: bool = False) -> None:
        self._count = 0
        self._mean = self._squares = 0.0
        self._is_root = is_root

    def add(self, value: Any) -> None:
        if not _is_number(value):
            return
        number = _as_float(value)
        self._count += 1
        delta = number - self._mean
        self._mean += delta / self._count
        self._squares += delta * (number - self._mean)

    def encode(self) -> list[Any]:
        return [self._count, self._mean, self._squares]

    def decode(self, state: list[Any]) -> None:
        self._count, self._mean, self._squares = state

    def value(self) -> float | None:
        if self._count < 2:
            return None
        spread = self._squares / (self._count - 1)
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


class Shared:
    """`share(x)`: the part of the values that are true, of those that are not None."""

    __slots__ = ("_count", "_true")

    def __init__(self) -> None:
        self._count = self._true = 0

    def add(self, value: Any) -> None:
        if _is_value(value):
            self._count += 1
            self._true += is_true(value)

    def encode(self) -> list[Any]:
        return [self._count, self._true]

    def decode(self, state: list[Any]) -> None:
        self._count, self._true = state

    def value(self) -> float | None:
        return self._true / self._count if self._count else None


FUNCTIONS = ("count", "sum", "mean", "min", "max", "var", "std", "share")


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
        case "share":
            return Shared()
        case _:
            raise ValueError(f"there is no function {function!r}")


def _is_value(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))


def _as_float(number: Any) -> float:
    try:
        return float(cast("float", number))
    except OverflowError:
        return math.inf if number > 0 else -math.inf
