"""The chosen columns of one view, or of several read as one: their names, rows, batches and kinds of values.

The first view says which columns; the others have them by name. Does not cover: how rows of several views come together
(joining), or reading those of one (stages, bulk_reading).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from headrace.expressions import ColumnKind
from headrace.results.columns.result_column import ResultColumn
from headrace.results.reading import joining
from headrace.results.reading.file_view import FileView
from headrace.results.tabular import Columns, Values
from headrace.store.queries.query_clock import QueryClock


def names_of(parts: Sequence[FileView]) -> list[str]:
    catalog = parts[0].catalog()
    return [catalog.shown(column) for column in parts[0].columns(catalog)]


def rows_of(parts: tuple[FileView, ...], clock: QueryClock | None = None) -> Iterator[Values]:
    """The values of each interview; with a clock, one time limit holds for all of them together."""
    return joining.merged(parts, [part.values(columns, clock) for part, columns in _columns(parts)], clock)


def batches_of(parts: Sequence[FileView], places: Sequence[int] | None = None) -> Iterator[Columns]:
    """The columns, or those at these places, in batches: one view after the other, whatever the order of the sum."""
    chosen = [(part, held if places is None else [held[place] for place in places]) for part, held in _columns(parts)]
    return chain.from_iterable(part.opened().batches(columns) for part, columns in chosen)


def kinds_of(parts: Sequence[FileView]) -> list[frozenset[ColumnKind]]:
    """The kinds of values in each column."""
    kinds = [part.kinds(columns) for part, columns in _columns(parts)]
    return [frozenset[ColumnKind]().union(*held) for held in zip(*kinds, strict=True)]


def kept_kinds_of(parts: Sequence[FileView]) -> list[frozenset[ColumnKind] | None]:
    """The kinds of values in each column, None where a file does not keep them."""
    kinds = [part.file.kept_kinds(columns) for part, columns in _columns(parts)]
    return [_all_kinds(held) for held in zip(*kinds, strict=True)]


def _columns(parts: Sequence[FileView]) -> Iterator[tuple[FileView, list[ResultColumn]]]:
    first, *others = parts
    catalog = first.catalog()
    columns = list(first.columns(catalog))
    yield first, columns
    names = [catalog.shown(column) for column in columns]
    for part in others:
        held = part.catalog()
        yield part, [held.find(name) for name in names]


def _all_kinds(held: Sequence[frozenset[ColumnKind] | None]) -> frozenset[ColumnKind] | None:
    known = [kinds for kinds in held if kinds is not None]
    return frozenset[ColumnKind]().union(*known) if len(known) == len(held) else None
