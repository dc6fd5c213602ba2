"""The functions that SQLite computes exactly: counts and extremes of any column, sums and means of whole numbers.

Does not cover: the query (tables.grouping), or what has to be computed in Python (function_states, ordered_values).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headrace.expressions import ColumnKind

_WHOLE = frozenset({ColumnKind.INT, ColumnKind.NULL})


class SqlAggregate(msgspec.Struct, frozen=True):
    """SQL terms, and the result made of their values, which come first in the tuple."""

    texts: tuple[str, ...]
    finish: Callable[[tuple[Any, ...]], Any]


ROW_COUNT = SqlAggregate(("count(*)",), lambda found: found[0])


def sql_aggregate(function: str, name: str, kinds: frozenset[ColumnKind], *, as_bool: bool) -> SqlAggregate | None:
    """The function of the SQL column `name`, whose values are stored as they are (no tagged JSON). None where SQLite's
    result might differ from that of Python.
    """
    is_whole = kinds <= _WHOLE or as_bool
    match function:
        case "count":
            return SqlAggregate((f"count({name})",), lambda found: found[0])
        case "nunique":
            return SqlAggregate((f"count(DISTINCT {name})",), lambda found: found[0])
        case "min" | "max":
            return SqlAggregate((f"{function}({name})",), lambda found: _as_stored(found[0], as_bool))
        case "sum" if is_whole:
            return SqlAggregate(_whole_sum(name), _total)
        case "mean" if is_whole:
            return SqlAggregate((*_whole_sum(name), f"count({name})"), lambda f: _total(f) / f[2] if f[2] else None)
        case "any" if is_whole:
            return SqlAggregate((f"max({name} <> 0)",), lambda found: bool(found[0]))
        case "all" if is_whole:
            return SqlAggregate((f"min({name} <> 0)",), lambda found: found[0] != 0)
        case "share" if is_whole:
            return SqlAggregate((f"sum({name} <> 0)", f"count({name})"), lambda f: f[0] / f[1] if f[1] else None)
        case _:
            return None


def _whole_sum(name: str) -> tuple[str, str]:
    # In two halves: SQLite refuses a sum beyond 64 bits.
    return f"sum({name} >> 32)", f"sum({name} & 4294967295)"


def _total(found: tuple[Any, ...]) -> int:
    return 0 if found[0] is None else (found[0] << 32) + found[1]


def _as_stored(value: Any, as_bool: bool) -> Any:
    return bool(value) if as_bool and value is not None else value
