"""Turns an expression into a function of a row.

Covers: composing `meaning`'s operations into closures, with short cuts where one side is a literal. Does not
cover: what the operations do (`meaning`) or fetching values (the caller's getters).
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Generic, TypeVar, assert_never

from headrace.expressions.meaning import (
    BINARY,
    COMPARISONS,
    OPERATIONS,
    RAW_ORDER,
    UNARY,
    Value,
    is_true,
    item_of,
    negate,
)
from headrace.expressions.nodes import (
    Arithmetic,
    Call,
    Choice,
    Compare,
    Comparison,
    Expression,
    Item,
    Joint,
    Literal,
    Logic,
    Name,
    Negate,
    Node,
    Not,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Row = TypeVar("Row")


def compile_closure(expression: Expression, resolve: Callable[[str], Callable[[Row], Value]]) -> Callable[[Row], Value]:
    """The expression as a function of a row; `resolve` is asked for each name's getter once, now."""
    getters = {name: resolve(name) for name in sorted(expression.names)}
    return _ClosureCompiler(getters).node(expression.tree)


def truth(closure: Callable[[Row], Value]) -> Callable[[Row], bool]:
    """The closure as a predicate."""
    return lambda row: is_true(closure(row))


class _ClosureCompiler(Generic[Row]):
    """Carries the getters down the tree."""

    def __init__(self, getters: Mapping[str, Callable[[Row], Value]]) -> None:
        self._getters = getters

    def node(self, node: Node) -> Callable[[Row], Value]:
        match node:
            case Name(name):
                return self._getters[name]
            case Literal(value):
                return _constant(value)
            case Not(operand):
                return _not(self.node(operand))
            case Negate(operand):
                return _apply(negate, self.node(operand))
            case Logic(joint, operands):
                return _logic(joint, tuple(self.node(operand) for operand in operands))
            case Compare(first, ((comparison, Literal(value)),)):
                return _compare_with_literal(comparison, self.node(first), value)
            case Compare(first, ((comparison, operand),)):
                return _apply_two(COMPARISONS[comparison], self.node(first), self.node(operand))
            case Compare(first, steps):
                return _chain(self.node(first), [(COMPARISONS[by], self.node(operand)) for by, operand in steps])
            case Arithmetic(operation, left, right):
                return _apply_two(OPERATIONS[operation], self.node(left), self.node(right))
            case Choice(condition, then, otherwise):
                return _choose(self.node(condition), self.node(then), self.node(otherwise))
            case Item(operand, key):
                return _item(self.node(operand), key)
            case Call(function, (argument,)):
                return _apply(UNARY[function], self.node(argument))
            case Call(function, arguments):
                first, second = arguments
                return _apply_two(BINARY[function], self.node(first), self.node(second))
            case _:
                assert_never(node)


def _constant(value: Value) -> Callable[[Row], Value]:
    if isinstance(value, list):
        # A caller may keep and change what it is given; the expression's own list must not change with it.
        return lambda _row: deepcopy(value)
    return lambda _row: value


def _item(operand: Callable[[Row], Value], key: int | str) -> Callable[[Row], Value]:
    return lambda row: item_of(operand(row), key)


def _not(operand: Callable[[Row], Value]) -> Callable[[Row], Value]:
    return lambda row: not operand(row)


def _apply(function: Callable[[Value], Value], operand: Callable[[Row], Value]) -> Callable[[Row], Value]:
    return lambda row: function(operand(row))


def _apply_two(
    function: Callable[[Value, Value], Value], left: Callable[[Row], Value], right: Callable[[Row], Value]
) -> Callable[[Row], Value]:
    return lambda row: function(left(row), right(row))


def _choose(
    condition: Callable[[Row], Value], then: Callable[[Row], Value], otherwise: Callable[[Row], Value]
) -> Callable[[Row], Value]:
    return lambda row: then(row) if condition(row) else otherwise(row)


def _logic(joint: Joint, operands: tuple[Callable[[Row], Value], ...]) -> Callable[[Row], Value]:
    match operands:
        case (left, right) if joint is Joint.AND:
            return lambda row: bool(left(row) and right(row))
        case (left, right):
            return lambda row: bool(left(row) or right(row))
        case _:
            every_or_any = all if joint is Joint.AND else any
            return lambda row: every_or_any(operand(row) for operand in operands)


def _chain(
    first: Callable[[Row], Value], steps: list[tuple[Callable[[Value, Value], bool], Callable[[Row], Value]]]
) -> Callable[[Row], Value]:
    def chained(row: Row) -> bool:
        left = first(row)
        for compare, operand in steps:
            right = operand(row)
            if not compare(left, right):
                return False
            left = right
        return True

    return chained


def _compare_with_literal(
    comparison: Comparison, operand: Callable[[Row], Value], literal: Value
) -> Callable[[Row], Value]:
    """The comparisons that filters consist of, without the checks that a known right side makes needless."""
    if isinstance(literal, list):
        return _compare_with_list(comparison, operand, literal)
    if comparison is Comparison.EQUAL:
        return lambda row: operand(row) == literal
    if comparison is Comparison.NOT_EQUAL:
        return lambda row: operand(row) != literal
    if comparison in RAW_ORDER:
        return _order_with_literal(comparison, operand, literal)
    compare = COMPARISONS[comparison]
    return lambda row: compare(operand(row), literal)


def _order_with_literal(
    comparison: Comparison, operand: Callable[[Row], Value], literal: Value
) -> Callable[[Row], Value]:
    compare = RAW_ORDER[comparison]

    def ordered(row: Row) -> bool:
        value = operand(row)
        if value is None:  # Common among answers, and an exception costs more than all the rest.
            return False
        try:
            return compare(value, literal)
        except TypeError:  # Of another family than the literal, which is a number, a text or None.
            return False

    return ordered


def _compare_with_list(
    comparison: Comparison, operand: Callable[[Row], Value], items: list[Value]
) -> Callable[[Row], Value]:
    compare = COMPARISONS[comparison]
    if comparison not in (Comparison.IN, Comparison.NOT_IN) or any(isinstance(item, list) for item in items):
        return lambda row: compare(operand(row), items)
    found = comparison is Comparison.IN
    choices = frozenset(item for item in items if not isinstance(item, (list, dict)))

    def among(row: Row) -> bool:
        value = operand(row)
        try:
            return (value in choices) is found
        except TypeError:  # A list or dict has no hash, and equals none of the choices.
            return not found

    return among
