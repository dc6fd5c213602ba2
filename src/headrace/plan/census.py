"""Counts which fields a list's rows have, and with what kinds of values; bounded, however long the list is."""

from __future__ import annotations

from headrace.errors import ListError
from headrace.expressions import ColumnKind
from headrace.survey.values import Fields, Remark, decode_fields, kind_of

MOST_FIELDS = 10_000
_MOST_SHAPES = 1_000


class FieldCensus:
    """`kinds[field]` holds every kind of value seen in that field."""

    def __init__(self) -> None:
        self.kinds: dict[str, set[ColumnKind]] = {}
        self.always: set[str] | None = None  # the fields of every row; None where that is not known
        self.repaired = 0
        self.has_files = False
        self._shapes: set[tuple[object, ...]] = set()

    def add_encoded(self, fields: Fields, row: bytes, remark: Remark) -> None:
        """Counts one row, given as the user's fields and as it is stored."""
        if remark is Remark.REPAIRED:
            fields = decode_fields(row)  # names may have been repaired too
        if remark is Remark.PLAIN:
            # Rows are mostly alike: names and types seen once need no second look.
            shape = (*fields, *map(type, fields.values()))
            if shape in self._shapes:
                return
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes.add(shape)
        self.repaired += remark is Remark.REPAIRED
        self.has_files = self.has_files or b'"$file"' in row
        self.always = set(fields) if self.always is None else self.always & fields.keys()
        for name, value in fields.items():
            self.see(name, kind_of(value))

    def copy(self) -> FieldCensus:
        made = FieldCensus()
        made.kinds = {name: set(kinds) for name, kinds in self.kinds.items()}
        made.always = None if self.always is None else set(self.always)
        made.repaired, made.has_files, made._shapes = self.repaired, self.has_files, self._shapes.copy()
        return made

    def forget(self, name: str) -> None:
        """Leave out a field that rows have for our own use."""
        self.kinds.pop(name, None)
        if self.always is not None:
            self.always.discard(name)

    def see(self, name: str, kind: ColumnKind) -> None:
        if name not in self.kinds and len(self.kinds) >= MOST_FIELDS:
            raise ListError(
                f"The rows have more than {MOST_FIELDS:,} different fields.",
                fix="Put what varies into one field that holds a dict.",
            )
        self.kinds.setdefault(name, set()).add(kind)
