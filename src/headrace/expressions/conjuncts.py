"""Splits an expression at its outermost `and`, so that each part can be evaluated where its names are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from headrace.expressions.nodes import Expression, Joint, Logic, Name, Node


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts of `a and b and (c and d)`: all hold where the whole does. One part where there is no outer `and`."""
    for node in _operands(expression.tree):
        yield Expression(expression.source, frozenset(_names(node)), node)


def _operands(node: Node) -> Iterator[Node]:
    if isinstance(node, Logic) and node.joint is Joint.AND:
        for operand in node.operands:
            yield from _operands(operand)
    else:
        yield node


def _names(held: Any) -> Iterator[str]:
    """The names below a node, or in a tuple of nodes."""
    match held:
        case Name(name):
            yield name
        case tuple():
            for item in held:  # pyright: ignore[reportUnknownVariableType]
                yield from _names(item)
        case _ if hasattr(held, "__dataclass_fields__"):
            for field in fields(held):
                yield from _names(getattr(held, field.name))
        case _:
            pass
