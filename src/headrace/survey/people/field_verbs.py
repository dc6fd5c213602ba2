"""Renames, keeps and drops fields of one row: a scenario, or an agent's traits. Pure.

Does not cover: doing so for a list of any length (plan.lists).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.errors import ListError, nearest
from headrace.survey.values import Fields


def given_names(names: tuple[Any, ...]) -> list[str]:
    """The names given one by one, or as one list: `keep("a", "b")` and `keep(["a", "b"])`."""
    if len(names) == 1 and not isinstance(names[0], str) and isinstance(names[0], Iterable):
        names = tuple(cast("Iterable[Any]", names[0]))
    if not names:
        raise ListError("No field is named.", fix="Name at least one field.")
    for name in names:
        if not isinstance(name, str):
            raise ListError(f"{name!r} is not the name of a field.", fix="Field names are texts.")
    return list(names)


def given_renames(old: str | Mapping[str, str], new: str | None) -> dict[str, str]:
    """The new names by the old ones: `rename("age", "years")` and `rename({"age": "years"})`."""
    if isinstance(old, str):
        if not isinstance(new, str):
            raise ListError(f"{old!r} has no new name.", fix='Write rename("old", "new").')
        return {old: new}
    if not isinstance(old, Mapping) or new is not None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError(f"{old!r} is not a set of names.", fix='Write rename("old", "new") or rename({"old": "new"}).')
    for name, other in old.items():
        if not isinstance(name, str) or not isinstance(other, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ListError(f"{name!r} cannot become {other!r}.", fix="Field names are texts.")
    return dict(old)


def check_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a name that is not among the known ones; `what` has them or not: "The agent has no", "No agent has a"."""
    fields = set(known)
    for name in names:
        if name not in fields:
            raise ListError(f"{what} field {name!r}.", fix=nearest(name, fields))


def check_distinct(names: Iterable[str], renames: Mapping[str, str], what: str) -> None:
    """Refuse renames after which two fields would have one name."""
    taken: dict[str, str] = {}
    for name in names:
        new = renames.get(name, name)
        if (other := taken.setdefault(new, name)) != name:
            raise ListError(f"{what} would have the field {new!r} twice, from {other!r} and {name!r}.", fix="Drop one.")


def renamed(fields: Mapping[str, Any], renames: Mapping[str, str]) -> Fields:
    return {renames.get(name, name): value for name, value in fields.items()}


def kept(fields: Mapping[str, Any], names: Iterable[str]) -> Fields:
    """The named fields, in the order they are named; a field that this row lacks is left out."""
    return {name: fields[name] for name in names if name in fields}


def dropped(fields: Mapping[str, Any], names: Iterable[str]) -> Fields:
    gone = set(names)
    return {name: value for name, value in fields.items() if name not in gone}


def random_end(text: str) -> str:
    """The text with an end that no other has, for examples that have to differ."""
    from uuid import uuid4  # only examples need it

    return f"{text}{uuid4()}"
