"""Reads a call around expressions: `mean(answer.rating * 2)`, `quantile(rating, 0.9)`. The function is the caller's.

Covers: the outermost call, whose arguments are expressions of the language. Does not cover: calls inside an expression
(`syntax`), or what the function does (the caller knows).
"""

from __future__ import annotations

import ast
from collections.abc import Collection

import msgspec

from headrace.errors import ExpressionError, nearest
from headrace.expressions.nodes import Expression
from headrace.expressions.scan import to_python, too_deep
from headrace.expressions.syntax import parse


class OuterCall(msgspec.Struct, frozen=True):
    """A function's name and its arguments."""

    function: str
    arguments: tuple[Expression, ...]


def parse_call(source: str, functions: Collection[str]) -> OuterCall:
    """Read a call of one of these functions, or raise ExpressionError with what to write instead."""
    python = to_python(source).strip()
    try:
        tree = ast.parse(python, mode="eval").body
    except SyntaxError as error:
        fix = "Write a function around it: mean(answer.rating)."
        raise ExpressionError(f"Not a valid expression: {error.msg}.", source=source, fix=fix) from None
    except (RecursionError, MemoryError, ValueError):
        raise too_deep(source) from None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
        fix = f"Write one of {', '.join(sorted(functions))} around a column: mean(answer.rating)."
        raise ExpressionError("This is no call of a function.", source=source, fix=fix)
    if tree.func.id not in functions:
        fix = nearest(tree.func.id, functions)
        raise ExpressionError(f"There is no function {tree.func.id} for groups.", source=source, fix=fix)
    return OuterCall(tree.func.id, tuple(parse(ast.get_source_segment(python, each) or "") for each in tree.args))
