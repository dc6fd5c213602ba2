"""What every source of rows gives: rows of fields as JSON, their number, their digest, and which fields they have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from headrace.errors import ListError
from headrace.plan.census import FieldCensus
from headrace.survey.values import Fields

# Other names for columns; a function makes them out of the names in the header, or in each row of JSON.
Renames: TypeAlias = dict[str, str] | Callable[[Collection[str]], dict[str, str]]


def renamed_fields(fields: dict[str, Any], renames: dict[str, str], where: str) -> dict[str, Any]:
    """A row with other names for its fields; an error where two would have one name."""
    if not renames:
        return fields
    made = {renames.get(name, name): value for name, value in fields.items()}
    if len(made) < len(fields):
        taken = next(new for old, new in renames.items() if old != new and old in fields and new in fields)
        raise ListError(f"{where} has a field {taken!r} of its own.", fix="Name that one, or rename it.")
    return made


class RowSource(Protocol):
    """Rows in a fixed order, as often as they are asked for. `length`, `digest` and `census` may need one pass over all
    of them, the first time that one of these is asked for.
    """

    @property
    def length(self) -> int: ...

    @property
    def digest(self) -> str: ...

    @property
    def census(self) -> FieldCensus: ...

    @property
    def field_names(self) -> Collection[str]:
        """The fields that any row has, in the order they were met."""
        ...

    def rows(self, first: int = 0) -> Iterator[bytes]:
        """The rows from this position on."""
        ...


@runtime_checkable
class FieldSource(Protocol):
    """A source that has its rows as dicts before it encodes them: a verb takes them so."""

    def fields(self, first: int = 0) -> Iterator[Fields]: ...


@runtime_checkable
class FileSource(Protocol):
    """A source that reads its rows from a file each time."""

    path: Path
