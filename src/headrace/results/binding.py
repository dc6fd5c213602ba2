"""Binds the names of an expression to columns, when a user writes it: `filter`, `mutate`, `where` on the command line.

What was written before a `rename` or a `mutate` keeps its meaning behind it. Does not cover: the language
(expressions), or evaluating (conditions, records).
"""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import ExpressionError, InvalidInput
from headrace.expressions import Expression
from headrace.expressions.nodes import Name, Node
from headrace.expressions.substitution import substitute
from headrace.results.catalog import Catalog
from headrace.results.columns import Bound, ResultColumn


def bind(expression: Expression, catalog: Catalog) -> Bound:
    """The expression with its columns. A column that `mutate` made is replaced by the expression that it stands for, so
    that SQL may evaluate the whole.
    """
    found = {name: _find(name, expression, catalog) for name in expression.names}
    whole = substitute(expression, lambda name: _node(found[name]))
    columns = {source.full_name: source for column in found.values() for source in map(_as_stored, column.sources())}
    return Bound(whole, tuple(columns[name] for name in sorted(columns)))


def _node(column: ResultColumn) -> Node:
    return Name(_as_stored(column).full_name) if column.computed is None else column.computed.expression.tree


def _as_stored(column: ResultColumn) -> ResultColumn:
    """The column under the name that no `rename` changes."""
    return replace(column, label=None)


def _find(name: str, expression: Expression, catalog: Catalog) -> ResultColumn:
    try:
        return catalog.find(name)
    except InvalidInput as error:
        raise ExpressionError(error.message, source=expression.source, fix=error.fix) from None
