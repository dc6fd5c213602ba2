"""Shapes: which values a column holds, as a value that two batches can be compared and joined by. Pure.

    1, None, 2           INT                    [1, 2], [], None         a list of INT
    1, 0.5               REAL                   {"a": 1}, {"a": None}    a dict with a field `a` of INT
    True, None           BOOL                   {"a": 1}, {"b": 1}       MIXED: other keys
    "x", None            TEXT                   1, "x"                   MIXED
    None, None           NOTHING                2**70, or bytes          MIXED

Joining is associative and commutative, so a column's shape depends on which values it has and not on their order.
Inside lists and dicts the same holds; one that holds a MIXED value is MIXED as a whole. Does not cover: what a format
makes of a shape (arrow_batches).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from enum import Enum
from functools import reduce
from typing import Any, TypeAlias, cast

import msgspec

from headrace.expressions import ColumnKind

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_DEEPEST, _MOST_FIELDS = 8, 200  # beyond, a list or dict is JSON: no tool shows such a column well
_NONE = type(None)
_ONLY_INTS, _ONLY_TIMES = frozenset[type]({int}), frozenset[type]({dt.datetime})


class Leaf(Enum):
    NOTHING = "nothing"
    BOOL = "bool"
    INT = "int"
    REAL = "real"
    TEXT = "text"
    DATE = "date"
    TIME = "time"  # a date with a time, without a zone
    MIXED = "mixed"


class ListOf(msgspec.Struct, frozen=True):
    item: Shape


class DictOf(msgspec.Struct, frozen=True):
    """Every dict has exactly these keys: a format that has no missing field could not tell it from None."""

    fields: tuple[tuple[str, Shape], ...]


Shape: TypeAlias = Leaf | ListOf | DictOf

_LEAVES: dict[frozenset[type], Leaf] = {
    frozenset(): Leaf.NOTHING,
    frozenset({bool}): Leaf.BOOL,
    frozenset({int}): Leaf.INT,
    frozenset({float}): Leaf.REAL,
    frozenset({int, float}): Leaf.REAL,
    frozenset({str}): Leaf.TEXT,
    frozenset({dt.date}): Leaf.DATE,
}
_TYPES: dict[Leaf, frozenset[type]] = {
    Leaf.NOTHING: frozenset({_NONE}),
    Leaf.BOOL: frozenset({_NONE, bool}),
    Leaf.INT: frozenset({_NONE, int}),
    Leaf.REAL: frozenset({_NONE, int, float}),
    Leaf.TEXT: frozenset({_NONE, str}),
    Leaf.DATE: frozenset({_NONE, dt.date}),
}
_OF_KINDS: dict[frozenset[ColumnKind], Leaf] = {
    frozenset(): Leaf.NOTHING,
    frozenset({ColumnKind.BOOL}): Leaf.BOOL,
    frozenset({ColumnKind.INT}): Leaf.INT,
    frozenset({ColumnKind.REAL}): Leaf.REAL,
    frozenset({ColumnKind.INT, ColumnKind.REAL}): Leaf.REAL,
    frozenset({ColumnKind.TEXT}): Leaf.TEXT,
}
_UNCLEAR = frozenset({ColumnKind.JSON, ColumnKind.TAGGED})


def leaf_of(values: Sequence[Any]) -> Leaf:
    """The shape of these values; lists and dicts are MIXED."""
    types = frozenset[type](map(type, values))
    held = types - {_NONE}
    if int in held and _has_huge(values, types):
        return Leaf.MIXED
    if held == _ONLY_TIMES:
        is_local = all(value is None or value.tzinfo is None for value in values)
        return Leaf.TIME if is_local else Leaf.MIXED
    return _LEAVES.get(held, Leaf.MIXED)


def _has_huge(values: Sequence[Any], types: frozenset[type]) -> bool:
    """Whether an integer is beyond 64 bits."""
    ints = values if types == _ONLY_INTS else [value for value in values if type(value) is int]
    return min(ints) < _INT_MIN or max(ints) > _INT_MAX


def shape_of(values: Sequence[Any], depth: int = 0) -> Shape:
    """The shape of these values."""
    leaf = leaf_of(values)
    if leaf is not Leaf.MIXED or depth >= _DEEPEST:
        return leaf
    types = set(map(type, values)) - {_NONE}
    if types == {list}:
        item = shape_of([item for value in values if value is not None for item in value], depth + 1)
        return Leaf.MIXED if item is Leaf.MIXED else ListOf(item)
    if types == {dict}:
        return _dict_shape([value for value in values if value is not None], depth)
    return Leaf.MIXED


def _dict_shape(values: list[dict[Any, Any]], depth: int) -> Shape:
    orders = {tuple(value) for value in values}
    first = next(iter(orders))
    if not first or len(first) > _MOST_FIELDS or any(set(order) != set(first) for order in orders):
        return Leaf.MIXED
    keys = first if len(orders) == 1 else tuple(sorted(first))
    if not all(type(key) is str for key in keys):
        return Leaf.MIXED
    fields = tuple((key, shape_of([value[key] for value in values], depth + 1)) for key in keys)
    return Leaf.MIXED if any(shape is Leaf.MIXED for _, shape in fields) else DictOf(fields)


def joined(one: Shape, other: Shape) -> Shape:
    """The narrowest shape that holds the values of both."""
    if one == other or other is Leaf.NOTHING:
        return one
    if one is Leaf.NOTHING:
        return other
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        item = joined(one.item, other.item)
        return Leaf.MIXED if item is Leaf.MIXED else ListOf(item)
    if isinstance(one, DictOf) and isinstance(other, DictOf):
        return _joined_dicts(dict(one.fields), dict(other.fields))
    return joined_leaves(one, other) if isinstance(one, Leaf) and isinstance(other, Leaf) else Leaf.MIXED


def joined_leaves(one: Leaf, other: Leaf) -> Leaf:
    if one is other or other is Leaf.NOTHING:
        return one
    if one is Leaf.NOTHING:
        return other
    return Leaf.REAL if {one, other} == {Leaf.INT, Leaf.REAL} else Leaf.MIXED


def _joined_dicts(one: dict[str, Shape], other: dict[str, Shape]) -> Shape:
    if one.keys() != other.keys():
        return Leaf.MIXED
    # In the order that all dicts have, or by name: never in that of whichever came first.
    keys = list(one) if list(one) == list(other) else sorted(one)
    fields = tuple((key, joined(one[key], other[key])) for key in keys)
    return Leaf.MIXED if any(shape is Leaf.MIXED for _, shape in fields) else DictOf(fields)


def holds(shape: Shape, values: Sequence[Any]) -> bool:
    """Whether these values have this shape or a narrower one; of a plain column a look at the types is enough, but for
    integers beyond 64 bits.
    """
    if shape is Leaf.MIXED:
        return True
    if isinstance(shape, Leaf) and shape in _TYPES:
        return _TYPES[shape].issuperset(map(type, values))
    return joined(shape, shape_of(values)) == shape


def shape_of_kinds(kinds: frozenset[ColumnKind]) -> Shape | None:
    """The shape of a column with these kinds; None where its values have to be looked at."""
    held = kinds - {ColumnKind.NULL}
    return None if held & _UNCLEAR else _OF_KINDS.get(held, Leaf.MIXED)


def joined_all(shapes: Sequence[Shape]) -> Shape:
    return reduce(joined, shapes, cast("Shape", Leaf.NOTHING))
