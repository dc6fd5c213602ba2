"""One aggregate as a user writes it: `mean(answer.rating)`. Covers: reading the text, the names of all functions.

Does not cover: what the functions compute (function_states, ordered_values).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from headrace.errors import ExpressionError, InvalidInput
from headrace.expressions import Expression, parse_call
from headrace.expressions.known_truth import known_truth
from headrace.expressions.nodes import Literal, Name
from headrace.results.aggregates.function_states import STATE_FUNCTIONS
from headrace.results.columns.result_column import without_group

QUANTILES = ("median", "quantile")
PLACED = ("first", "last")
FUNCTIONS = frozenset({*STATE_FUNCTIONS, "nunique", *QUANTILES, *PLACED})


class Aggregation(msgspec.Struct, frozen=True):
    """A column: a function of an expression. `part` is the quantile; `count()` has no expression."""

    name: str
    function: str
    expression: Expression | None
    part: float = 0.5


def read_aggregation(source: str, name: str | None = None) -> Aggregation:
    """Read `mean(answer.rating)`. Without a name it is called `mean_rating`, and `count()` is called `count`."""
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _no_text(source, name)
    call = parse_call(source, FUNCTIONS)
    expected = 2 if call.function == "quantile" else 1
    if len(call.arguments) != expected and not (call.function == "count" and not call.arguments):
        example = "quantile(answer.rating, 0.9)" if expected == 2 else f"{call.function}(answer.rating)"
        raise ExpressionError(
            f"{call.function}() does not take {len(call.arguments)} arguments.", source=source, fix=f"Write {example}."
        )
    expression = known_truth(call.arguments[0]) if call.arguments else None
    part = _part(call.arguments[1], source) if expected == 2 else 0.5
    return Aggregation(name or _default_name(source, call.function, expression, part), call.function, expression, part)


def _no_text(given: object, name: str | None) -> InvalidInput:
    """The error for what pandas takes: a dict of columns, or a function."""
    kind, example = type(given).__name__, 'agg(mean="mean(answer.rating)")'
    if isinstance(given, Mapping):
        pairs = cast("Mapping[object, object]", given).items()
        calls = [f'"{how}({of})"' for of, how in pairs if isinstance(of, str) and how in FUNCTIONS]
        example = f"agg({', '.join(calls)})" if calls else example
    elif callable(given) and (called := getattr(given, "__name__", "")) in FUNCTIONS:
        example = f'agg({name or called}="{called}(answer.rating)")'
    return InvalidInput(f"agg takes functions as texts, not {kind}.", fix=f"Write {example}.")


def _part(given: Expression, source: str) -> float:
    match given.tree:
        case Literal(int() | float() as part) if 0 <= part <= 1 and not isinstance(part, bool):
            return float(part)
        case _:
            fix = "Write it like quantile(answer.rating, 0.9)."
            raise ExpressionError("A quantile is a number from 0 to 1.", source=source, fix=fix)


def _default_name(source: str, function: str, expression: Expression | None, part: float) -> str:
    if expression is None:
        return function
    if not isinstance(expression.tree, Name):
        fix = f'Give it one: agg(name="{source}").'
        raise ExpressionError("Only a function of one column has a name of its own.", source=source, fix=fix)
    behind = f"_{part:g}".replace(".", "_") if function == "quantile" else ""
    return f"{function}_{without_group(expression.tree.name)}{behind}"
