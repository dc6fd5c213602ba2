"""What an expression is once it has been read: a small closed set of frozen nodes.

Covers: the shape of the tree. Does not cover: making it from text (`syntax`), what operators do to values
(`meaning`), or running it (`closures`, `sql`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from headrace.expressions.meaning import Value


class Joint(Enum):
    """How the operands of a `Logic` node are joined."""

    AND = "and"
    OR = "or"


class Comparison(Enum):
    """An operator that gives True or False. `is None` is read as `== None`: here they mean the same."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"


class Operation(Enum):
    """An operator that gives a number (or, for ADD, a text) or None."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    FLOOR_DIVIDE = "//"
    REMAINDER = "%"


class Name(msgspec.Struct, frozen=True):
    """A dotted name such as `answer.rating`; `scenario["Review Text"]` is the name `scenario.Review Text`."""

    name: str


class Literal(msgspec.Struct, frozen=True):
    """A value written in the source; a minus sign before a number belongs to it."""

    value: Value


class Not(msgspec.Struct, frozen=True):
    """`not operand`."""

    operand: Node


class Negate(msgspec.Struct, frozen=True):
    """`-operand`."""

    operand: Node


class Logic(msgspec.Struct, frozen=True):
    """Two or more operands joined by `and` or by `or`."""

    joint: Joint
    operands: tuple[Node, ...]


class Compare(msgspec.Struct, frozen=True):
    """`first < b <= c`: each step compares with the operand before it."""

    first: Node
    steps: tuple[tuple[Comparison, Node], ...]


class Arithmetic(msgspec.Struct, frozen=True):
    """`left + right` and the like."""

    operation: Operation
    left: Node
    right: Node


class Choice(msgspec.Struct, frozen=True):
    """`then if condition else otherwise`."""

    condition: Node
    then: Node
    otherwise: Node


class Call(msgspec.Struct, frozen=True):
    """A function from `meaning.UNARY` (one argument) or `meaning.BINARY` (two)."""

    function: str
    arguments: tuple[Node, ...]


class Item(msgspec.Struct, frozen=True):
    """`operand[0]`: one item of a list, a text or a dict."""

    operand: Node
    key: int | str


Node: TypeAlias = Name | Literal | Not | Negate | Logic | Compare | Arithmetic | Choice | Call | Item


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. The source decides the rest, so it alone is compared and hashed.

    `bracketed` are those names whose last parts were written as keys in brackets: `book["pages"]` is `book.pages`.
    """

    source: str
    names: frozenset[str] = field(compare=False)
    tree: Node = field(compare=False, repr=False)
    bracketed: frozenset[str] = field(compare=False, repr=False, default=frozenset())
