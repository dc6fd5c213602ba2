"""Filters and computed fields of lists, in the language of rules and filters: `age > 30`, `double = x * 2`.

Covers: what a name stands for in the rows of a list. Does not cover: the language (expressions).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias, cast

from headrace.errors import ExpressionError, ListError, nearest_field
from headrace.expressions import Expression, Value, compile_closure, parse, truth
from headrace.survey.agent import NAME
from headrace.survey.values import Fields

Getter: TypeAlias = Callable[[Fields], Any]
WITH_FUNCTIONS = 'Write a text like "double = x * 2". Functions of yours: scenarios.transform("x", function, "double").'


def condition(source: str, what: str, fields: Collection[str]) -> Callable[[Fields], bool]:
    """The test that a filter makes of a row; `what` the rows are, and the fields that any of them has."""
    return truth(_compiled(source, what, fields))


def assignment(text: str, what: str, fields: Collection[str]) -> tuple[str, Getter]:
    """The new field of `double = x * 2`, and how its value is computed from a row."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError(f"{text!r} is not an expression.", fix=WITH_FUNCTIONS)
    name, equals, source = text.partition("=")
    name = name.strip()
    if not equals or source.startswith("="):
        raise ListError(f"{text!r} names no new field.", fix='Write it like "double = x * 2".')
    if not name.isidentifier():
        raise ListError(f"{name!r} cannot be the name of a field.", fix="Use letters, digits and underscores.")
    return name, _compiled(source.strip(), what, fields)


def _compiled(source: str, what: str, fields: Collection[str]) -> Callable[[Fields], Value]:
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError(f"{source!r} is not an expression.", fix='Write it as a text, like "age > 30".')
    expression = parse(source)
    return compile_closure(expression, lambda name: _getter(name, expression, what, fields))


def _getter(name: str, expression: Expression, what: str, fields: Collection[str]) -> Getter:
    """What a name stands for: a field, `scenario.` or `agent.` and a field, or an item of a dict: `address.city`."""
    for spelling in (name, name.removeprefix(f"{what}.")):
        root, *inner = _split(spelling, fields)
        if root in fields or (root, what) == (NAME, "agent"):
            return _field(root, inner)
        if (spelling, what) == ("name", "agent"):
            return _field(NAME, [])
    raise ExpressionError(
        f"No {what} of the list has a field {name!r}.", source=expression.source, fix=nearest_field(what, name, fields)
    )


def _split(name: str, fields: Collection[str]) -> list[str]:
    """The field that a dotted name begins with, and the rest in parts: a field's own name may have dots."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        if ".".join(parts[:count]) in fields:
            return [".".join(parts[:count]), *parts[count:]]
    return parts


def _field(name: str, inner: list[str]) -> Getter:
    if not inner:
        return lambda fields: fields.get(name)

    def found(fields: Fields) -> Any:
        value = fields.get(name)
        for key in inner:
            value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
        return value

    return found
