"""What each operator and function does to values: total functions, none of which raises for any `Value`.

Covers: truth, equality, order, membership, arithmetic, the named functions. Does not cover: when they are
called (`closures`) or how SQLite is made to agree (`sql`). The rules in words are in the package's docstring.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.expressions.nodes import Comparison, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

_SMALLEST_INT = -(2**63)
_LARGEST_INT = 2**63 - 1
# No finite float has a digit further than this from its point, and 10**digits must stay affordable.
_MOST_DIGITS = 400


def is_true(value: Value) -> bool:
    """Python's truthiness: None, 0 and whatever is empty are false; NaN is true."""
    return bool(value)


def fits_64_bits(value: int) -> bool:
    """Whether SQLite can hold this integer."""
    return _SMALLEST_INT <= value <= _LARGEST_INT


# --- comparisons


def equal(left: Value, right: Value) -> bool:
    """Python's `==`; lists nested too deeply to be compared are not equal."""
    try:
        return left == right
    except RecursionError:
        return False


def not_equal(left: Value, right: Value) -> bool:
    """The opposite of `equal`, always."""
    return not equal(left, right)


def contained(item: Value, container: Value) -> bool:
    """An item of a list, a key of a dict, a part of a text; False for anything else."""
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    if isinstance(container, list):
        try:
            return item in container
        except RecursionError:
            return False
    return False


def not_contained(item: Value, container: Value) -> bool:
    """The opposite of `contained`, always."""
    return not contained(item, container)


def _among_one_family(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def ordered(left: Value, right: Value) -> bool:
        if isinstance(left, (int, float)):
            return isinstance(right, (int, float)) and compare(left, right)
        return isinstance(left, str) and isinstance(right, str) and compare(left, right)

    return ordered


# Python's own, for where one side is known to be a scalar: it then raises TypeError where we say False.
RAW_ORDER: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.LESS: operator.lt,
    Comparison.LESS_OR_EQUAL: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.GREATER_OR_EQUAL: operator.ge,
}

COMPARISONS: Mapping[Comparison, Callable[[Value, Value], bool]] = {
    Comparison.EQUAL: equal,
    Comparison.NOT_EQUAL: not_equal,
    Comparison.IN: contained,
    Comparison.NOT_IN: not_contained,
    **{comparison: _among_one_family(compare) for comparison, compare in RAW_ORDER.items()},
}


# --- arithmetic


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _not_nan(number: float) -> float | None:
    return None if math.isnan(number) else number


def _within_64_bits(number: int) -> float:
    return number if fits_64_bits(number) else _as_float(number)


def _on_numbers(operate: Callable[[Any, Any], float]) -> Callable[[Value, Value], Value]:
    def calculate(left: Value, right: Value) -> Value:
        if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
            return None
        try:
            if isinstance(left, int) and isinstance(right, int) and fits_64_bits(left) and fits_64_bits(right):
                exact = operate(left, right)
                if _SMALLEST_INT <= exact <= _LARGEST_INT:
                    return exact
            # As SQLite does on overflow: the operands become floats, not the exact result.
            return _not_nan(operate(_as_float(left), _as_float(right)))
        except ZeroDivisionError:
            return None

    return calculate


def _floor_divide(left: float, right: float) -> float:
    return left // right


def _divide_as_floats(left: float, right: float) -> float:
    # Not int / int, which rounds once: SQLite has only the division of two floats.
    return float(left) / float(right)


subtract = _on_numbers(operator.sub)
_add_numbers = _on_numbers(operator.add)


def add(left: Value, right: Value) -> Value:
    """The sum of two numbers, or two texts joined."""
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    return _add_numbers(left, right)


def negate(value: Value) -> Value:
    """Zero minus the value, which is how SQLite does it."""
    return subtract(0, value)


OPERATIONS: Mapping[Operation, Callable[[Value, Value], Value]] = {
    Operation.ADD: add,
    Operation.SUBTRACT: subtract,
    Operation.MULTIPLY: _on_numbers(operator.mul),
    Operation.DIVIDE: _on_numbers(_divide_as_floats),
    Operation.FLOOR_DIVIDE: _on_numbers(_floor_divide),
    Operation.REMAINDER: _on_numbers(operator.mod),
}


# --- items


def item_of(value: Value, key: int | str) -> Value:
    """The item of a list or a text by its position, of a dict by its key; None where there is none."""
    if isinstance(value, dict):
        return value.get(key) if isinstance(key, str) else None
    if isinstance(key, str) or not isinstance(value, (list, str)):
        return None
    return value[key] if -len(value) <= key < len(value) else None


# --- functions


def length(value: Value) -> Value:
    """Code points of a text, items of a list or dict."""
    return len(value) if isinstance(value, (str, list, dict)) else None


def lower(value: Value) -> Value:
    """The text in lower case."""
    return value.lower() if isinstance(value, str) else None


def upper(value: Value) -> Value:
    """The text in upper case."""
    return value.upper() if isinstance(value, str) else None


def strip(value: Value) -> Value:
    """The text without white space at its ends."""
    return value.strip() if isinstance(value, str) else None


def absolute(value: Value) -> Value:
    """The number without its sign."""
    if isinstance(value, int):
        return _within_64_bits(abs(value))
    return _not_nan(abs(value)) if isinstance(value, float) else None


def round_to_whole(value: Value) -> Value:
    """The nearest integer, half to even; an infinity stays what it is."""
    if isinstance(value, int):
        return _within_64_bits(int(value))
    if not isinstance(value, float):
        return None
    return _within_64_bits(round(value)) if math.isfinite(value) else _not_nan(value)


def round_to_digits(value: Value, digits: Value) -> Value:
    """Python's `round(value, digits)`; digits that no number has are cut to those it could have."""
    if not isinstance(value, (int, float)) or not isinstance(digits, int):
        return None
    within = max(-_MOST_DIGITS, min(_MOST_DIGITS, digits))
    if isinstance(value, int) and fits_64_bits(value):
        return _within_64_bits(round(value, within))
    try:
        return _not_nan(round(_as_float(value), within))
    except OverflowError:
        return None


def to_integer(value: Value) -> Value:
    """A number cut towards zero, or the integer that a text spells."""
    try:
        return _within_64_bits(int(value)) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None


def to_number(value: Value) -> Value:
    """The float nearest to a number, or the one that a text spells."""
    try:
        if isinstance(value, str):
            return _not_nan(float(value))
        return _not_nan(_as_float(value)) if isinstance(value, (int, float)) else None
    except ValueError:
        return None


def to_text(value: Value) -> Value:
    """A number or bool as Python writes it; None, lists and dicts have no text."""
    try:
        return str(value) if isinstance(value, (int, float, str)) else None
    except ValueError:  # An integer of more digits than Python is willing to write.
        return None


def contains(container: Value, item: Value) -> bool:
    """`item in container`, for those who prefer it as a function."""
    return contained(item, container)


def starts_with(value: Value, start: Value) -> bool:
    """Whether a text begins with another."""
    return isinstance(value, str) and isinstance(start, str) and value.startswith(start)


def ends_with(value: Value, end: Value) -> bool:
    """Whether a text ends with another."""
    return isinstance(value, str) and isinstance(end, str) and value.endswith(end)


UNARY: Mapping[str, Callable[[Value], Value]] = {
    "abs": absolute,
    "float": to_number,
    "int": to_integer,
    "len": length,
    "lower": lower,
    "round": round_to_whole,
    "str": to_text,
    "strip": strip,
    "upper": upper,
}

BINARY: Mapping[str, Callable[[Value, Value], Value]] = {
    "contains": contains,
    "endswith": ends_with,
    "round": round_to_digits,
    "startswith": starts_with,
}

# Those that may also be written as methods of a text: mood.startswith('G').
METHODS = frozenset({"endswith", "lower", "startswith", "strip", "upper"})
