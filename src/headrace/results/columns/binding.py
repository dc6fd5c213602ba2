"""Binds the names of an expression to columns, when a user writes it: `filter`, `mutate`, `where` on the command line.

What was written before a `rename` or a `mutate` keeps its meaning behind it. Does not cover: the language
(expressions), or evaluating (conditions, records).
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

from msgspec.structs import replace

from headrace.errors import ExpressionError, InvalidInput
from headrace.expressions import Expression
from headrace.expressions.nodes import Item, Name, Node
from headrace.expressions.rewriting import substitute
from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Bound, ResultColumn

_CONSTANTS = {"null": "None", "none": "None", "true": "True", "false": "False"}
Found = TypeVar("Found", covariant=True)


class NamedColumns(Protocol[Found]):
    """Columns that are found by name: those of a file, or of a table."""

    def find(self, name: str) -> Found: ...

    def has(self, name: str) -> bool: ...


def bind(expression: Expression, catalog: Catalog) -> Bound:
    """The expression with its columns. A column that `mutate` made is replaced by the expression that it stands for, so
    that SQL may evaluate the whole.
    """
    found = {name: find_column(name, expression, catalog) for name in expression.names}
    whole = substitute(expression, lambda name: _node(*found[name]))
    sources = (source for column, _ in found.values() for source in map(_as_stored, column.sources()))
    columns = {source.full_name: source for source in sources}
    return Bound(whole, tuple(columns[name] for name in sorted(columns)))


def _node(column: ResultColumn, keys: list[str]) -> Node:
    node: Node = Name(_as_stored(column).full_name) if column.computed is None else column.computed.expression.tree
    for key in keys:
        node = Item(node, key)
    return node


def _as_stored(column: ResultColumn) -> ResultColumn:
    """The column under the name that no `rename` changes."""
    return replace(column, label=None)


def find_column(name: str, expression: Expression, columns: NamedColumns[Found]) -> tuple[Found, list[str]]:
    """The column that an expression names, and the keys behind it: `answer.recipe["title"]` is the title in a recipe
    that is an object.
    """
    try:
        return columns.find(name), []
    except InvalidInput as error:
        # Of a dotted name behind a prefix alone: a bare `mood.anwser` is a mistake, and no key of `mood`.
        parts, shortest = name.split("."), 1 if name in expression.bracketed else 2
        for end in range(len(parts) - 1, shortest - 1, -1):
            if columns.has(whole := ".".join(parts[:end])):
                return columns.find(whole), parts[end:]
        constant = _CONSTANTS.get(name.lower())
        quoted = f"If it is a text, put it in quotes: '{name}'. " if _is_compared(name, expression) else ""
        fix = quoted + error.fix if constant is None else f"Write {constant}."
        raise ExpressionError(error.message, source=expression.source, fix=fix) from None


def _is_compared(name: str, expression: Expression) -> bool:
    """Whether a name stands where a text may have been meant: `mood == Good`."""
    return re.search(rf"(?:[=!]=|\bin\b)\s*{re.escape(name)}\b", expression.source) is not None
