"""The truth of a condition where that is known: `rating > 5` is neither true nor false where there is no rating.

Filters take an unknown condition for false. What is computed of conditions, such as the share of people who rate above
5, has to leave it out. Covers: the condition as an expression that is None where it is unknown, by the rules of SQL's
NULL; `x is None` and `x in [1, None]` are always known. Does not cover: evaluating it (`closures`, `sql`).
"""

from __future__ import annotations

from headrace.expressions.nodes import Call, Choice, Compare, Comparison, Expression, Joint, Literal, Logic, Node, Not

_TESTS = frozenset({"contains", "startswith", "endswith"})
_MEMBERSHIP = (Comparison.IN, Comparison.NOT_IN)
_NOTHING = Literal(None)


def known_truth(expression: Expression) -> Expression:
    """The expression with None for a condition that is unknown; as it is where it is no condition."""
    if not _is_condition(expression.tree):
        return expression
    known = Choice(_holds(expression.tree), Literal(True), Choice(_fails(expression.tree), Literal(False), _NOTHING))
    return Expression(expression.source, expression.names, known)


def _is_condition(node: Node) -> bool:
    match node:
        case Compare() | Logic() | Not():
            return True
        case Call(function):
            return function in _TESTS
        case _:
            return False


# Two trees, one for "known to be true" and one for "known to be false", grow with the condition; one tree with three
# truth values would name each operand several times at each level.


def _holds(node: Node) -> Node:
    match node:
        case Not(operand):
            return _fails(operand)
        case Logic(joint, operands):
            return Logic(joint, tuple(map(_holds, operands)))
        case Compare(first, steps):
            return _joined(Joint.AND, [_joined(Joint.AND, [*known, step]) for known, step in _steps(first, steps)])
        case Call(function, arguments) if function in _TESTS:
            return _joined(Joint.AND, [*_all_known(arguments), node])
        case _:
            return _joined(Joint.AND, [*_all_known((node,)), node])


def _fails(node: Node) -> Node:
    match node:
        case Not(operand):
            return _holds(operand)
        case Logic(joint, operands):
            other = Joint.OR if joint is Joint.AND else Joint.AND
            return Logic(other, tuple(map(_fails, operands)))
        case Compare(first, steps):
            return _joined(Joint.OR, [_joined(Joint.AND, [*known, Not(step)]) for known, step in _steps(first, steps)])
        case Call(function, arguments) if function in _TESTS:
            return _joined(Joint.AND, [*_all_known(arguments), Not(node)])
        case _:
            return _joined(Joint.AND, [*_all_known((node,)), Not(node)])


def _steps(first: Node, steps: tuple[tuple[Comparison, Node], ...]) -> list[tuple[list[Node], Node]]:
    """Each comparison of a chain, with the conditions under which it is known."""
    found: list[tuple[list[Node], Node]] = []
    left = first
    for comparison, right in steps:
        asks_for_none = _NOTHING in (left, right) or (comparison in _MEMBERSHIP and _has_none(right))
        known = [] if asks_for_none else _all_known((left, right))
        found.append((known, _compared(left, comparison, right)))
        left = right
    return found


def _has_none(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, list) and None in node.value


def _all_known(operands: tuple[Node, ...]) -> list[Node]:
    """Conditions that no operand is missing: not None, and equal to itself, which NaN is not."""
    return [
        Logic(Joint.AND, (_compared(each, Comparison.NOT_EQUAL, _NOTHING), _compared(each, Comparison.EQUAL, each)))
        for each in operands
        if not isinstance(each, Literal)
    ]


def _compared(left: Node, comparison: Comparison, right: Node) -> Node:
    return Compare(left, ((comparison, right),))


def _joined(joint: Joint, conditions: list[Node]) -> Node:
    return conditions[0] if len(conditions) == 1 else Logic(joint, tuple(conditions))
