"""Turns an expression into SQLite's SQL, but only where SQLite gives exactly what the closure gives.

Covers: which operations are exact, judged by the kinds of values that each column holds. Does not cover: the
query around it (`results`), texts in lists and dicts (`json_sql`), or what is not exact (lower, %, numbers in
lists, texts among numbers): `closures`.

Nothing here has affinity, so SQLite never turns a text into a number to compare them. Every part gives a
value whose kinds are known; a comparison gives 0 or 1 and never NULL. Literals are bound, never pasted.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias, assert_never

import msgspec

from headrace.expressions import json_sql
from headrace.expressions.meaning import Value, fits_64_bits
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Parameter: TypeAlias = int | float | str | None


class ColumnKind(Enum):
    """What a column has been seen to hold."""

    NULL = "null"
    BOOL = "bool"
    INT = "int"
    REAL = "real"
    TEXT = "text"
    JSON = "json"
    TAGGED = "tagged"


class Column(msgspec.Struct, frozen=True):
    """A value in SQL: `sql` has no affinity and needs no parentheses; `kinds` is all it holds in any row.

    None is NULL, whatever else there is. BOOL is 0 or 1. JSON is a list or dict, TAGGED what SQLite cannot hold
    (NaN, integers beyond 64 bits): both are tagged JSON in a BLOB or a TEXT.
    """

    sql: str
    kinds: frozenset[ColumnKind]


class Sql(msgspec.Struct, frozen=True):
    """The truth of an expression as an SQL expression that gives 0 or 1, with the values for its `?`s."""

    text: str
    parameters: tuple[Parameter, ...]


class SqlTerm(msgspec.Struct, frozen=True):
    """The value of an expression in SQL, with the values for its `?`s and the kinds it may have."""

    text: str
    parameters: tuple[Parameter, ...]
    kinds: frozenset[ColumnKind]


def compile_sql(expression: Expression, column: Callable[[str], Column | None]) -> Sql | None:
    """The expression as a predicate for WHERE, or None where only the closure is exact."""
    try:
        part = _truth(_SqlCompiler(column).node(expression.tree))
    except _InexactError:
        return None
    return Sql(part.text, part.parameters)


def compile_value(expression: Expression, column: Callable[[str], Column | None]) -> SqlTerm | None:
    """The expression's value for SELECT, or None where only the closure is exact."""
    try:
        part = _only(_SCALARS, _SqlCompiler(column).node(expression.tree))
    except _InexactError:
        return None
    return SqlTerm(part.text, part.parameters, part.kinds)


class _InexactError(Exception):
    """This part has no exact SQL, so the whole has none. Never leaves this module."""


class _Part(msgspec.Struct, frozen=True):
    text: str
    parameters: tuple[Parameter, ...]
    kinds: frozenset[ColumnKind]


_BOOL = frozenset({ColumnKind.BOOL})
_NUMBERS = frozenset({ColumnKind.BOOL, ColumnKind.INT, ColumnKind.REAL, ColumnKind.NULL})
_CALCULATED = _NUMBERS - _BOOL
_TEXT = frozenset({ColumnKind.TEXT})
_TEXTS = _TEXT | {ColumnKind.NULL}
_LISTS = frozenset({ColumnKind.JSON, ColumnKind.TAGGED, ColumnKind.NULL})
_SCALARS = _NUMBERS | _TEXTS

# FLOOR_DIVIDE and REMAINDER are missing: SQLite cuts towards zero and casts to integers, Python rounds down.
_INTEGERS = frozenset({ColumnKind.INT, ColumnKind.NULL})
_NO_LETTER = "CAST(X'FF' AS TEXT)"
_LONGEST_SOUGHT = 1_000  # letters
_OPERATORS: Mapping[Operation, str] = {Operation.ADD: "+", Operation.SUBTRACT: "-", Operation.MULTIPLY: "*"}


class _SqlCompiler:
    """Carries the columns down the tree."""

    def __init__(self, column: Callable[[str], Column | None]) -> None:
        self._column = column

    def node(self, node: Node) -> _Part:
        match node:
            case Name(name):
                return self._name(name)
            case Literal(value):
                return _literal(value)
            case Not(operand):
                return _boolean("(NOT {})", _truth(self.node(operand)))
            case Negate(operand):
                return _number("(- {})", _only(_NUMBERS, self.node(operand)))
            case Logic(joint, operands):
                return _join(joint, [_truth(self.node(operand)) for operand in operands])
            case Compare(first, steps):
                return self._compare(first, steps)
            case Arithmetic(operation, left, right):
                return _arithmetic(operation, self.node(left), self.node(right))
            case Choice(condition, then, otherwise):
                return _choice(_truth(self.node(condition)), self.node(then), self.node(otherwise))
            case Call("startswith", (text, start)):
                return _find("= 1", self.node(start), self.node(text))
            case Call("endswith", (text, Literal(str() as end))):
                return _ends_with(self.node(text), end)
            case Call("len", (text,)):
                return _length(self.node(text))
            case Call("contains", (container, item)):
                return self._step(item, Comparison.IN, container)
            case Call() | Item():
                raise _InexactError
            case _:
                assert_never(node)

    def _name(self, name: str) -> _Part:
        column = self._column(name)
        if column is None:
            raise _InexactError
        return _Part(column.sql, (), column.kinds)

    def _compare(self, first: Node, steps: tuple[tuple[Comparison, Node], ...]) -> _Part:
        operands = [first, *(operand for _, operand in steps)]
        # The inner operands appear twice: harmless for a name, exponential for chains within chains.
        if not all(isinstance(operand, (Name, Literal)) for operand in operands[1:-1]):
            raise _InexactError
        return _join(Joint.AND, [self._step(left, *step) for left, step in zip(operands, steps, strict=False)])

    def _step(self, left: Node, comparison: Comparison, right: Node) -> _Part:
        match comparison, right:
            case Comparison.NOT_IN, _:
                return _boolean("(NOT {})", self._step(left, Comparison.IN, right))
            case Comparison.IN, Literal(list() as items) if isinstance(left, Item):
                return self._item_among(left, items)
            case Comparison.IN, Literal(list() as items):
                return _among(self.node(left), items)
            case Comparison.IN, _:
                return self._contained(left, right)
            case ((Comparison.EQUAL | Comparison.NOT_EQUAL), _) if isinstance(left, Item) or isinstance(right, Item):
                return self._item_equality(comparison, left, right)
            case ((Comparison.EQUAL | Comparison.NOT_EQUAL), _):
                return _equality(comparison, self.node(left), self.node(right))
            case _:
                return _order(comparison, self.node(left), self.node(right))

    # --- lists and dicts

    def _contained(self, item: Node, container: Node) -> _Part:
        sought, held = self.node(item), self.node(container)
        if isinstance(container, Name) and held.kinds <= _LISTS:
            if sought.text != "?" or sought.kinds != _TEXT:
                raise _InexactError
            return _Part(json_sql.holds_text(held.text), sought.parameters, _BOOL)
        return _find("> 0", sought, held)

    def _item_equality(self, comparison: Comparison, left: Node, right: Node) -> _Part:
        item, other = (left, right) if isinstance(left, Item) else (right, left)
        if not isinstance(item, Item) or not isinstance(other, Literal):
            raise _InexactError
        found = self._item_among(item, [other.value])
        return found if comparison is Comparison.EQUAL else _boolean("(NOT {})", found)

    def _item_among(self, item: Item, choices: list[Value]) -> _Part:
        texts = [_literal(choice) for choice in choices]
        if not isinstance(item.operand, Name) or not isinstance(item.key, int) or abs(item.key) > json_sql.MOST_PLACES:
            raise _InexactError
        held = _only(_LISTS, self.node(item.operand))
        if not texts or any(text.kinds != _TEXT for text in texts):
            raise _InexactError
        path = json_sql.path_of(item.key)
        sought = tuple(value for text in texts for value in text.parameters)
        return _Part(json_sql.text_at(held.text, len(texts)), (path, path, *sought), _BOOL)


def _only(allowed: frozenset[ColumnKind], part: _Part) -> _Part:
    if not part.kinds <= allowed:
        raise _InexactError
    return part


def _combine(template: str, kinds: frozenset[ColumnKind], *parts: _Part) -> _Part:
    text = template.format(*(part.text for part in parts))
    return _Part(text, tuple(value for part in parts for value in part.parameters), kinds)


def _boolean(template: str, *parts: _Part) -> _Part:
    return _combine(template, _BOOL, *parts)


def _number(template: str, *parts: _Part) -> _Part:
    return _combine(template, _CALCULATED, *parts)


def _not_null(part: _Part, *operands: _Part) -> _Part:
    """A condition that is false, not NULL, when an operand is NULL."""
    return _boolean("ifnull({}, 0)", part) if any(ColumnKind.NULL in each.kinds for each in operands) else part


def _literal(value: Value) -> _Part:
    match value:
        case None:
            return _Part("?", (None,), frozenset({ColumnKind.NULL}))
        case bool():
            return _Part("?", (int(value),), _BOOL)
        case int() if fits_64_bits(value):
            return _Part("?", (value,), frozenset({ColumnKind.INT}))
        case float() if math.isfinite(value):
            return _Part("?", (value,), frozenset({ColumnKind.REAL}))
        case str() if not any("\ud800" <= char <= "\udfff" for char in value):
            return _Part("?", (value,), frozenset({ColumnKind.TEXT}))
        case _:
            raise _InexactError


def _truth(part: _Part) -> _Part:
    if part.kinds == _BOOL:
        return part
    # NOT IN rather than two comparisons: the part's text must not appear twice.
    template = "({} <> 0)" if part.kinds <= _NUMBERS else "({} NOT IN (0, ''))"
    return _not_null(_boolean(template, _only(_SCALARS, part)), part)


def _join(joint: Joint, parts: Sequence[_Part]) -> _Part:
    # In halves: SQLite refuses trees deeper than 1000, which a long chain of ORs would be.
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    operator = "AND" if joint is Joint.AND else "OR"
    return _boolean(f"({{}} {operator} {{}})", _join(joint, parts[:middle]), _join(joint, parts[middle:]))


def _equality(comparison: Comparison, left: _Part, right: _Part) -> _Part:
    operator = "IS" if comparison is Comparison.EQUAL else "IS NOT"
    if frozenset({ColumnKind.NULL}) not in (left.kinds, right.kinds):
        _only(_SCALARS, left)
        _only(_SCALARS, right)
    return _boolean(f"({{}} {operator} {{}})", left, right)


def _order(comparison: Comparison, left: _Part, right: _Part) -> _Part:
    both = left.kinds | right.kinds
    if not (both <= _NUMBERS or both <= _TEXTS):
        raise _InexactError
    return _not_null(_boolean(f"({{}} {comparison.value} {{}})", left, right), left, right)


def _find(found: str, needle: _Part, haystack: _Part) -> _Part:
    # instr() counts by length, so texts with NULs are safe with it; length() and LIKE are not. It compares at every
    # place: looking for one long text in another would take hours in a step that nothing interrupts.
    if not _is_short_text(needle):
        raise _InexactError
    _only(_TEXTS, needle)
    _only(_TEXTS, haystack)
    return _not_null(_boolean(f"(instr({{}}, {{}}) {found})", haystack, needle), haystack, needle)


def _is_short_text(part: _Part) -> bool:
    text = part.parameters[0] if part.text == "?" else None
    return isinstance(text, str) and len(text) <= _LONGEST_SOUGHT


def _ends_with(text: _Part, end: str) -> _Part:
    _only(_TEXTS, text)
    if not end:
        return _boolean("({} IS NOT NULL)", text)
    # As bytes, which have no NUL that would end them; where a letter begins, so does its text in UTF-8. The end of no
    # bytes is NULL to SQLite.
    last = f"ifnull(substr(CAST({{}} AS BLOB), -{len(end.encode())}), x'') = CAST({{}} AS BLOB)"
    return _not_null(_boolean(f"({last})", text, _literal(end)), text)


def _length(text: _Part) -> _Part:
    if text.kinds <= _LISTS and not text.parameters:
        return _Part(json_sql.length_of(text.text), (), _INTEGERS)
    # length() stops at a NUL, instr() does not. No text has the byte FF, so it is found behind the last letter.
    _only(_TEXTS, text)
    return _combine(f"(instr({{}} || {_NO_LETTER}, {_NO_LETTER}) - 1)", _INTEGERS, text)


def _among(part: _Part, items: list[Value]) -> _Part:
    choices = [_literal(item) for item in items if item is not None]
    if items and not choices:
        # NULL IN () is 0 in SQLite, not NULL, so that a list of None alone needs a way of its own.
        return _equality(Comparison.EQUAL, part, _literal(None))
    marks = ", ".join("{}" for _ in choices)
    found = _boolean(f"({{}} IN ({marks}))", _only(_SCALARS, part), *choices)
    return _boolean("ifnull({}, 1)", found) if None in items else _not_null(found, part)


def _arithmetic(operation: Operation, left: _Part, right: _Part) -> _Part:
    _only(_NUMBERS, left)
    _only(_NUMBERS, right)
    if operation is Operation.DIVIDE:
        return _number("(CAST({} AS REAL) / {})", left, right)
    if operation not in _OPERATORS:
        raise _InexactError
    return _number(f"({{}} {_OPERATORS[operation]} {{}})", left, right)


def _choice(condition: _Part, then: _Part, otherwise: _Part) -> _Part:
    kinds = then.kinds | otherwise.kinds
    return _combine("(CASE WHEN {} THEN {} ELSE {} END)", kinds, condition, then, otherwise)
