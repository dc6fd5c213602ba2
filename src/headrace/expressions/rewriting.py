"""Makes new expressions of one: its parts at the outermost `and`, or the same with other names.

Covers: any kind of node, also those yet to come, since it knows only that nodes hold nodes. Does not cover: what a name
stands for (the caller knows).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.expressions.nodes import Expression, Joint, Logic, Name, Node

if TYPE_CHECKING:
    from collections.abc import Callable


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts of `a and b and (c and d)`: all hold where the whole does. One part where there is no outer `and`."""
    for node in _operands(expression.tree):
        yield Expression(expression.source, frozenset(_names_in(node)), node)


def substitute(expression: Expression, replacement: Callable[[str], Node]) -> Expression:
    """The expression with `replacement(name)` in the place of each name."""
    names = {name: replacement(name) for name in sorted(expression.names)}
    if all(node == Name(name) for name, node in names.items()):
        return expression
    tree = cast("Node", _replaced(expression.tree, names))
    # Expressions are compared by their source, and this one means something else than what was written.
    return Expression(repr(tree), frozenset(_names_in(tree)), tree)


def _operands(node: Node) -> Iterator[Node]:
    if isinstance(node, Logic) and node.joint is Joint.AND:
        for operand in node.operands:
            yield from _operands(operand)
    else:
        yield node


def _replaced(part: Any, names: dict[str, Node]) -> Any:
    if isinstance(part, Name):
        return names[part.name]
    if isinstance(part, tuple):
        return tuple(_replaced(item, names) for item in cast("tuple[Any, ...]", part))
    if not isinstance(part, msgspec.Struct):
        return part
    return type(part)(*(_replaced(getattr(part, field), names) for field in part.__struct_fields__))


def _names_in(part: Any) -> set[str]:
    if isinstance(part, Name):
        return {part.name}
    if isinstance(part, tuple):
        return set[str]().union(*map(_names_in, cast("tuple[Any, ...]", part)))
    if not isinstance(part, msgspec.Struct):
        return set()
    return set[str]().union(*(_names_in(getattr(part, field)) for field in part.__struct_fields__))
