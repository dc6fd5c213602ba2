"""Several run files read as one: `results + other`. Verbs are applied to each file's view, rows are read side by side.

    one, two ──► added: each has the columns of both, None where it lacks one
    sorted   ──► each file sorts its own rows; reading merges them by their sort keys
    a window ──► a window of each file's view, found by counting (unsorted) or by merging up to its end (sorted)

Does not cover: verbs on one file (file_view), or SQL, which reads one file.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from msgspec.structs import replace

from headrace.errors import InvalidInput
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.columns.value_keys import sort_keys
from headrace.results.reading.file_view import FileView
from headrace.results.reading.views import SortKey
from headrace.store.queries.query_clock import QueryClock

Item = TypeVar("Item")


def added(one: tuple[FileView, ...], other: tuple[FileView, ...]) -> tuple[FileView, ...]:
    """The views of two sums as those of one, with the same columns by name: one that lacks a column gets it, empty."""
    for parts in (one, other):
        if len(parts) > 1 and _sort_keys(parts[0]):
            raise InvalidInput("This sum of run files is sorted already.", fix="Add all files first, then sort.")
    parts = (*one, *other)
    catalogs = [part.catalog() for part in parts]
    names = dict.fromkeys(column.full_name for catalog in catalogs for column in catalog.first)
    completed: list[FileView] = []
    for part, catalog in zip(parts, catalogs, strict=True):
        own = {column.full_name for column in catalog.data}
        changes = part.changes
        for name in names:
            if name not in own:
                changes = changes.adding(ResultColumn(Group.ABSENT, name))
        completed.append(replace(part, changes=changes, view=part.view.joined()))
    if all(part.selected is None for part in parts):
        return tuple(completed)
    chosen = dict.fromkeys(
        column.full_name for part, catalog in zip(parts, catalogs, strict=True) for column in part.columns(catalog)
    )
    return tuple(part.selecting(chosen) for part in completed)


def merged(
    parts: tuple[FileView, ...], streams: list[Iterator[Item]], clock: QueryClock | None = None
) -> Iterator[Item]:
    """The items of the views' streams as one: in the order of their sort keys, or one view after the other."""
    if len(streams) == 1:
        return streams[0]
    keys = _sort_keys(parts[0])
    if not keys:
        return chain.from_iterable(streams)
    keyed = [_keyed(part, stream, clock) for part, stream in zip(parts, streams, strict=True)]
    return (item for _, item in heapq.merge(*keyed, key=lambda pair: pair[0]))


def are_mixed(parts: tuple[FileView, ...]) -> bool:
    """Whether rows of one view come between those of another."""
    return len(parts) > 1 and bool(_sort_keys(parts[0]))


def _keyed(
    part: FileView, stream: Iterator[Item], clock: QueryClock | None
) -> Iterator[tuple[tuple[_SortPlace, ...], Item]]:
    """Each item with its place in the order."""
    keys = _sort_keys(part)
    for values, item in zip(part.values([key.column for key in keys], clock), stream, strict=False):
        yield tuple(_SortPlace(value, key.descending) for value, key in zip(values, keys, strict=True)), item


def windowed(parts: tuple[FileView, ...], start: int, stop: int | None) -> tuple[FileView, ...]:
    """The views of the rows from `start` up to `stop` of all of them together."""
    if len(parts) == 1:
        return (_window(parts[0], start, stop),)
    firsts = _shares(parts, start)
    lasts = [None] * len(parts) if stop is None else _shares(parts, stop)
    return tuple(_window(part, first, last) for part, first, last in zip(parts, firsts, lasts, strict=True))


def _window(part: FileView, start: int, stop: int | None) -> FileView:
    return replace(part, view=part.view.windowed(start, stop))


def _shares(parts: tuple[FileView, ...], count: int) -> list[int]:
    """How many of the first `count` rows each view has."""
    if _sort_keys(parts[0]):
        numbers = [iter([number] * part.opened().count()) for number, part in enumerate(parts)]
        first = list(islice(merged(parts, numbers), count))
        return [first.count(number) for number in range(len(parts))]
    shares: list[int] = []
    for part in parts:
        shares.append(min(count, part.opened().count()))
        count -= shares[-1]
    return shares


def _sort_keys(part: FileView) -> list[SortKey]:
    """What the sum is sorted by: the latest order first, then those before it; not what sorted a part before."""
    keys: list[SortKey] = []
    for view in part.view.lineage():
        keys += view.keys
        if view.is_of_sum:
            break
    return keys


class _SortPlace:
    """Compares values as SQLite sorts them: None, numbers, texts, then lists."""

    __slots__ = ("_descending", "_value")

    def __init__(self, value: Any, descending: bool) -> None:
        stored, tie = sort_keys(value)
        rank = 0 if stored is None else 1 if isinstance(stored, (int, float)) else 2 if isinstance(stored, str) else 3
        place = 0 if stored is None else stored.encode() if isinstance(stored, str) else stored
        self._value = (rank, place, tie or "")
        self._descending = descending

    def __lt__(self, other: _SortPlace) -> bool:
        return other._value < self._value if self._descending else self._value < other._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SortPlace) and self._value == other._value

    __hash__ = None  # pyright: ignore[reportAssignmentType]
