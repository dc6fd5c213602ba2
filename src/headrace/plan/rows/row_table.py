"""A list as a table: what it shows at a terminal, and its exports. Nothing is read before it is needed.

Does not cover: drawing and writing the formats, which results do in the same way (results.tabular). This module reaches
up to them, so it is imported when a list is looked at or exported, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from headrace.display import counted
from headrace.errors import OptionError
from headrace.expressions import ColumnKind
from headrace.results.printing import Glance
from headrace.results.tabular import Tabular, Values
from headrace.survey.people.field_verbs import check_known
from headrace.survey.values import Fields

_MOST_COLUMNS = 30


class RowTable(Tabular):
    """The rows of a list under their fields' names.

    `kinds` has each column's kinds of values, `rows` reads the rows again each time, `what` is what a row is.
    """

    is_chosen = False  # by the user, so that nothing is left out or cut

    def __init__(
        self, kinds: Mapping[str, set[ColumnKind]], rows: Callable[[], Iterator[Fields]], total: int, what: str
    ) -> None:
        self._held_kinds = kinds
        self._names = self._labels = list(kinds)
        self._read, self._total, self._what = rows, total, what
        self.file: Path | None = None  # that the list is read from

    def chosen(self, fields: Sequence[str], labels: Mapping[str, str], most: int | None) -> RowTable:
        """This table with these columns, or all; other headings; no more rows than `most`."""
        names = list(fields) or self._names
        check_known([*names, *labels], self._names, f"No {self._what} of the list has a")
        total = self._total if most is None else min(self._total, max(0, most))
        made = RowTable({name: self._held_kinds[name] for name in names}, self._read, total, self._what)
        made._labels = [labels.get(name, name) for name in names]
        made.is_chosen, made.file = bool(fields), self.file
        return made

    @property
    def columns(self) -> list[str]:
        return list(self._labels)

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[Values]:
        return self._values()

    def __repr__(self) -> str:
        return str(self)

    def _values(self) -> Iterator[Values]:
        names = self._names
        return (tuple([fields.get(name) for name in names]) for fields in islice(self._read(), self._total))

    def _kept_kinds(self) -> list[frozenset[ColumnKind] | None]:
        return [*self._kinds()]

    def _kinds(self) -> list[frozenset[ColumnKind]]:
        return [frozenset(self._held_kinds[name]) for name in self._names]

    def _glance(self, most_rows: int) -> Glance:
        rows, columns, notes = list(islice(self._values(), most_rows)), self.columns, tuple[str, ...]()
        if len(columns) > _MOST_COLUMNS and not self.is_chosen:
            notes = (f"{_MOST_COLUMNS} of {len(columns):,} columns",)
            columns, rows = columns[:_MOST_COLUMNS], [row[:_MOST_COLUMNS] for row in rows]
        if not columns or not self._total:
            notes = (counted(self._total, self._what),)
        return Glance(columns=columns, rows=rows, total=self._total, notes=notes, is_overview=not self.is_chosen)

    def _target(self, path: str | Path) -> Path:
        target = Path(path)
        if self.file is not None and target.exists() and target.samefile(self.file):
            raise OptionError(f"The list is read from {path}, row by row.", fix="Write to another path.")
        return target
