"""Reads an expression: Python's parser makes a tree of it, and whatever is outside the language is refused.

Covers: the grammar, and errors that say where and what to write instead. Does not cover: `{{ }}` and
characters (`scan`), what the operators mean (`meaning`), or whether a name exists (the caller knows).
"""

from __future__ import annotations

import ast
import warnings
from itertools import takewhile
from typing import TYPE_CHECKING

from headrace.errors import ExpressionError, nearest
from headrace.expressions.meaning import BINARY, METHODS, UNARY, Value
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
    Operation,
)
from headrace.expressions.scan import DEEPEST_NESTING, refusal, to_python, too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPARISONS: Mapping[type[ast.cmpop], Comparison] = {
    ast.Eq: Comparison.EQUAL,
    ast.NotEq: Comparison.NOT_EQUAL,
    ast.Lt: Comparison.LESS,
    ast.LtE: Comparison.LESS_OR_EQUAL,
    ast.Gt: Comparison.GREATER,
    ast.GtE: Comparison.GREATER_OR_EQUAL,
    ast.In: Comparison.IN,
    ast.NotIn: Comparison.NOT_IN,
    ast.Is: Comparison.EQUAL,
    ast.IsNot: Comparison.NOT_EQUAL,
}

_OPERATIONS: Mapping[type[ast.operator], Operation] = {
    ast.Add: Operation.ADD,
    ast.Sub: Operation.SUBTRACT,
    ast.Mult: Operation.MULTIPLY,
    ast.Div: Operation.DIVIDE,
    ast.FloorDiv: Operation.FLOOR_DIVIDE,
    ast.Mod: Operation.REMAINDER,
}

_NAMED_OUTSIDERS: Mapping[type[ast.AST], str] = {
    ast.Attribute: "An attribute of something that is not a name",
    ast.Await: "await",
    ast.BitAnd: "The operator &",
    ast.BitOr: "The operator |",
    ast.Call: "A call of something that is not a function",
    ast.Dict: "A dict",
    ast.DictComp: "A comprehension",
    ast.GeneratorExp: "A comprehension",
    ast.Invert: "The operator ~",
    ast.JoinedStr: "An f-string",
    ast.Lambda: "A lambda",
    ast.ListComp: "A comprehension",
    ast.NamedExpr: "The assignment :=",
    ast.Pow: "The operator **",
    ast.Set: "A set",
    ast.SetComp: "A comprehension",
    ast.Starred: "A starred value",
    ast.Slice: "A slice",
    ast.Subscript: "This subscript in square brackets",
    ast.UAdd: "A plus sign before a value",
    ast.Yield: "yield",
}

_INSTEAD: Mapping[type[ast.AST], str] = {
    ast.BitAnd: "Write 'and'.",
    ast.BitOr: "Write 'or'.",
    ast.Invert: "Write 'not'.",
    ast.Set: "Write a list in square brackets, or {{ name }} for a name.",
    ast.Subscript: 'Write one number or one text in the brackets: mood.answer[0], scenario["Review Text"].',
    ast.UAdd: "Leave the plus sign out.",
}

# What people write who know SQL. Its operators in small letters are those of this language, but for these.
_ONLY_IN_SQL = ("like", "between", "<>", "null")
_INSTEAD_OF_SQL: Mapping[str, str] = {
    "and": "Write 'and' in small letters.",
    "or": "Write 'or' in small letters.",
    "not": "Write 'not' in small letters.",
    "in": "Write 'in' in small letters, with a list in square brackets: mood in ['Good', 'Bad'].",
    "is": "Write 'is' in small letters: mood is None.",
    "like": "Write 'good' in lower(mood), startswith(mood, 'G') or endswith(mood, 'd').",
    "between": "Write 18 <= age <= 30.",
    "<>": "Write !=.",
    "null": "Write None: mood is None, mood is not None.",
}

_WHAT_THERE_IS = (
    "Use dotted names, numbers, texts, lists, and/or/not, comparisons, in, + - * / // %, 'a if c else b' and "
    f"{', '.join(sorted({*UNARY, *BINARY}))}."
)


def parse(source: str) -> Expression:
    """Read an expression, or raise ExpressionError with the place and what to write instead."""
    reader = _SyntaxReader(source)
    try:
        tree = reader.node(reader.python_tree(), 1)
    except (RecursionError, MemoryError):
        # Python's own parser gives up in these ways, at depths that differ between its versions.
        raise too_deep(source) from None
    return Expression(source, frozenset(reader.names), tree, frozenset(reader.bracketed))


class _SyntaxReader:
    """Carries the source, for errors, and collects the names."""

    def __init__(self, source: str) -> None:
        self.names: set[str] = set()
        self.bracketed: set[str] = set()
        self._source = source
        python = to_python(source)
        self._python = python.strip()
        self._indent = len(python) - len(python.lstrip())

    def python_tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                # An unknown escape such as "\d" is a warning to programmers; the text keeps its backslash.
                warnings.simplefilter("ignore")
                return ast.parse(self._python, mode="eval").body
        except SyntaxError as error:
            is_cut = error.offset == 0  # so Python says that the text has ended too early
            index = self._indent + (len(self._python) if is_cut else max(0, (error.offset or 1) - 1))
            problem = f"Not a valid expression: {'something is missing at its end' if is_cut else error.msg}"
            raise refusal(self._source, index, problem, self._instead_of_sql(index)) from None
        except ValueError as error:
            problem = f"A character that cannot be read: {error}"
            raise refusal(self._source, 0, problem, "Remove it, or write it as an escape inside quotes.") from None

    def _instead_of_sql(self, index: int) -> str:
        """What to write where the parser stumbled at a word of SQL, or right behind one."""
        near = (*self._source[index:].split()[:2], *self._source[:index].split()[-1:])
        words = (word.lower() for word in near if word in _ONLY_IN_SQL or word != word.lower())
        return next(
            (_INSTEAD_OF_SQL[word] for word in words if word in _INSTEAD_OF_SQL), "Check it from this column on."
        )

    def node(self, node: ast.expr, depth: int) -> Node:
        if depth > DEEPEST_NESTING:
            raise too_deep(self._source)
        match node:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._name(node)
            case ast.Constant() | ast.List() | ast.Tuple():
                return Literal(self._literal(node, depth))
            case ast.BoolOp(op=op, values=values):
                joint = Joint.AND if isinstance(op, ast.And) else Joint.OR
                return Logic(joint, tuple(self.node(value, depth + 1) for value in values))
            case ast.UnaryOp():
                return self._unary(node, depth)
            case ast.BinOp():
                return self._arithmetic(node, depth)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, then, otherwise = (self.node(part, depth + 1) for part in (test, body, orelse))
                return Choice(condition, then, otherwise)
            case ast.Call():
                return self._call(node, depth)
            case _:
                raise self._outsider(node, node)

    def _name(self, node: ast.Name | ast.Attribute | ast.Subscript) -> Node:
        """A name, and the items of its value: a key in brackets is a part of the name until a number comes."""
        keys: list[str | int] = []
        rest: ast.expr = node
        while isinstance(rest, (ast.Attribute, ast.Subscript)):
            keys.append(rest.attr if isinstance(rest, ast.Attribute) else self._key(rest))
            rest = rest.value
        if not isinstance(rest, ast.Name):
            raise self._outsider(node, node)
        if len(keys) > DEEPEST_NESTING:
            raise too_deep(self._source)
        keys = [rest.id, *reversed(keys)]
        if any(isinstance(key, str) and key.startswith("__") for key in keys):
            raise self._error(node, "A name may not begin with two underscores", "Use another name.")
        parts = list(takewhile(lambda key: isinstance(key, str), keys))
        name = ".".join(map(str, parts))
        self.names.add(name)
        if len(parts) > 1 and _has_key_in_brackets(node):
            self.bracketed.add(name)
        found: Node = Name(name)
        for key in keys[len(parts) :]:
            found = Item(found, key)
        return found

    def _key(self, node: ast.Subscript) -> str | int:
        match node.slice:
            case ast.Constant(value=str() as key) if key:
                return key
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)) if not isinstance(
                number, bool
            ):
                return -number
            case _:
                raise self._outsider(node, node)

    def _literal(self, node: ast.expr, depth: int) -> Value:
        if depth > DEEPEST_NESTING:
            raise too_deep(self._source)
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                # The sign belongs to the number: -2**63 fits into 64 bits, its opposite does not.
                return -number
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._literal(item, depth + 1) for item in items]
            case ast.Constant():
                raise self._error(
                    node,
                    f"A value of type {type(node.value).__name__} is not part of the language",
                    _WHAT_THERE_IS,
                )
            case _:
                fix = "Write the values themselves, or compare one by one with 'or'."
                raise self._error(node, "A list may hold only numbers, texts, True, False and None", fix)

    def _unary(self, node: ast.UnaryOp, depth: int) -> Node:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.node(operand, depth + 1))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return Literal(self._literal(node, depth))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Negate(self.node(operand, depth + 1))
            case _:
                raise self._outsider(node, node.op)

    def _arithmetic(self, node: ast.BinOp, depth: int) -> Node:
        operation = _OPERATIONS.get(type(node.op))
        if operation is None:
            raise self._outsider(node, node.op)
        return Arithmetic(operation, self.node(node.left, depth + 1), self.node(node.right, depth + 1))

    def _compare(self, node: ast.Compare, depth: int) -> Node:
        for op, operand in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, (ast.Is, ast.IsNot)) and not _is_none(operand):
                is_null = isinstance(operand, ast.Name) and operand.id.lower() in ("null", "none", "nan")
                fix = _INSTEAD_OF_SQL["null"] if is_null else "Write == or !=."
                raise self._error(operand, "'is' compares only with None", fix)
        comparisons = (_COMPARISONS[type(op)] for op in node.ops)
        operands = (self.node(operand, depth + 1) for operand in node.comparators)
        return Compare(self.node(node.left, depth + 1), tuple(zip(comparisons, operands, strict=True)))

    def _call(self, node: ast.Call, depth: int) -> Node:
        if isinstance(node.func, ast.Attribute):
            if node.func.attr not in METHODS:
                problem = f"There is no method .{node.func.attr}()"
                raise self._error(node, problem, _as_function(node.func, node.args))
            name, arguments = node.func.attr, [node.func.value, *node.args]
        elif isinstance(node.func, ast.Name):
            name, arguments = node.func.id, node.args
        else:
            raise self._outsider(node, node)
        if name not in UNARY and name not in BINARY:
            raise self._error(node, f"There is no function {name}", nearest(name, {*UNARY, *BINARY}))
        if node.keywords:
            raise self._error(node, f"{name}() takes no named arguments", "Write the arguments in order.")
        if len(arguments) not in _argument_counts(name):
            own = len(arguments) - len(node.args)  # what stands before the dot is not counted
            counts = " or ".join(str(count - own) for count in _argument_counts(name))
            raise self._error(node, f"{name}() does not take {len(node.args)} arguments", f"Give it {counts}.")
        return Call(name, tuple(self.node(argument, depth + 1) for argument in arguments))

    def _outsider(self, node: ast.expr, outsider: ast.AST) -> ExpressionError:
        kind = type(outsider)
        what = _NAMED_OUTSIDERS.get(kind, f"This ({kind.__name__})")
        return self._error(node, f"{what} is not part of the language", _INSTEAD.get(kind, _WHAT_THERE_IS))

    def _error(self, node: ast.expr, problem: str, fix: str) -> ExpressionError:
        # Python counts columns in bytes of UTF-8.
        before = self._python.encode()[: node.col_offset].decode()
        return refusal(self._source, self._indent + len(before), problem, fix)


def _as_function(method: ast.Attribute, arguments: list[ast.expr]) -> str:
    """What to write in place of a method's call: `startswith(mood, 'G')`."""
    name = method.attr
    if name not in UNARY and name not in BINARY:
        return nearest(name, METHODS)
    return f"Write {name}({', '.join(map(ast.unparse, (method.value, *arguments)))})."


def _has_key_in_brackets(node: ast.expr) -> bool:
    """Whether the first key behind a name, outside of all others, is a text in brackets."""
    inner = [each for each in ast.walk(node) if isinstance(each, (ast.Attribute, ast.Subscript))]
    return any(isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) for each in inner)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _argument_counts(function: str) -> list[int]:
    return [count for count, functions in ((1, UNARY), (2, BINARY)) if function in functions]
