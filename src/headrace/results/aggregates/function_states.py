"""The states of functions: each has a bounded size, whatever is added to it, and is written down as JSON.

Covers: what the functions mean, and which values are missing. A caller leaves missing values out; `count()` of rows is
a count of something that no row lacks. Does not cover: which values (grouping, running_totals), functions that need all
values at once (ordered_values).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from headrace.expressions import is_true
from headrace.results.aggregates.exact_sums import ExactSum, as_float, checked_count
from headrace.results.columns.value_keys import canonical_json


class FunctionState(Protocol):
    def add(self, value: Any, count: int = 1) -> None:
        """Take a value that is not missing and occurs `count` times."""
        ...

    def encode(self) -> list[Any]:
        """The state as values that tagged JSON has."""
        ...

    def decode(self, state: list[Any]) -> None:
        """Go on from this state. One that `encode` cannot have given raises one of contents.UNREADABLE."""
        ...

    def result(self) -> Any: ...


def is_missing(value: Any) -> bool:
    """None and NaN, which every function leaves out."""
    return value is None or value != value


def order_of(value: Any) -> tuple[int, Any, int]:
    """What sorts as the value does in `sort_by`: missing first, numbers, texts, then the rest by its JSON. Of equal
    numbers a whole one comes first and a bool last.
    """
    if isinstance(value, str):
        return 2, value, 0
    if is_missing(value):
        return 0, 0, 0
    if isinstance(value, (int, float)):
        return 1, value, 2 if isinstance(value, bool) else int(isinstance(value, float))
    return 3, canonical_json(value), 0


class Counted:
    """`count(x)`."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any, count: int = 1) -> None:
        self._count += count

    def encode(self) -> list[Any]:
        return [self._count]

    def decode(self, state: list[Any]) -> None:
        (count,) = state
        self._count = checked_count(count)

    def result(self) -> int:
        return self._count


class Summed(ExactSum):
    """`sum(x)`: a whole number where all of them are."""

    __slots__ = ()

    def result(self) -> int | float | None:
        total = self.total()
        if total is None:
            return self.infinity()
        return as_float(total) if self.has_floats else int(total)


class Averaged(ExactSum):
    """`mean(x)`."""

    __slots__ = ()

    def result(self) -> float | None:
        total = self.total()
        if total is None:
            return self.infinity()
        return as_float(total / self.count) if self.count else None


class Spread:
    """`var(x)`, and its root `std(x)`, of a sample, as pandas has it: divided by one less than there are."""

    __slots__ = ("_is_root", "_numbers", "_squares")

    def __init__(self, *, is_root: bool) -> None:
        self._numbers, self._squares = ExactSum(), ExactSum(power=2)
        self._is_root = is_root

    def add(self, value: Any, count: int = 1) -> None:
        self._numbers.add(value, count)
        self._squares.add(value, count)

    def encode(self) -> list[Any]:
        return [self._numbers.encode(), self._squares.encode()]

    def decode(self, state: list[Any]) -> None:
        numbers, squares = state
        self._numbers.decode(numbers)
        self._squares.decode(squares)

    def result(self) -> float | None:
        total, squares, count = self._numbers.total(), self._squares.total(), self._numbers.count
        if total is None or squares is None or count < 2:
            return None
        variance = as_float((squares - total * total / count) / (count - 1))
        return math.sqrt(variance) if self._is_root else variance


class Extreme:
    """`min(x)` and `max(x)`, in the order of `sort_by`."""

    __slots__ = ("_is_most", "_order", "_value")

    def __init__(self, *, is_most: bool) -> None:
        self._is_most = is_most
        self._order: tuple[int, Any, int] | None = None
        self._value: Any = None

    def add(self, value: Any, count: int = 1) -> None:
        order = order_of(value)
        if self._order is None or (order > self._order if self._is_most else order < self._order):
            self._order, self._value = order, value

    def encode(self) -> list[Any]:
        return [self._value]

    def decode(self, state: list[Any]) -> None:
        (value,) = state
        if value is not None:
            self.add(value)

    def result(self) -> Any:
        return self._value


class TruthCount:
    """`share(x)`, the part of the values that are true; whether `any(x)` or `all(x)` of them are."""

    __slots__ = ("_count", "_function", "_true")

    def __init__(self, function: str) -> None:
        self._count = self._true = 0
        self._function = function

    def add(self, value: Any, count: int = 1) -> None:
        self._count += count
        self._true += count if is_true(value) else 0

    def encode(self) -> list[Any]:
        return [self._count, self._true]

    def decode(self, state: list[Any]) -> None:
        self._count, self._true = map(checked_count, state)
        if self._true > self._count:
            raise ValueError("more are true than there are")

    def result(self) -> float | bool | None:
        match self._function:
            case "any":
                return self._true > 0
            case "all":
                return self._true == self._count
            case _:
                return self._true / self._count if self._count else None


STATE_FUNCTIONS = ("count", "sum", "mean", "min", "max", "var", "std", "share", "any", "all")


def new_state(function: str) -> FunctionState:
    """The state of one of STATE_FUNCTIONS before anything is added to it."""
    match function:
        case "count":
            return Counted()
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
