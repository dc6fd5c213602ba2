"""Joins two lists by the values of fields: `inner_join`, `left_join` and `right_join`, as SQL does, in bounded memory.

Both lists are sorted by these values, on disk where they are long (row_order), and read side by side; the joined rows
come in the order of the list that is kept. Each pair of rows with equal values makes a row. None equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import groupby

from headrace.plan.rows.row_order import comparable, in_order
from headrace.plan.rows.spool import Spool
from headrace.survey.values import Fields, decode_fields, encode_fields, encode_value

_ROW, _PLACE, _RANK = "row", "place", "rank"
_NONE = b""  # the key of a row that equals no other; no JSON is empty


class JoinKind(Enum):
    """Which rows stay that have no partner."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"


def joined_rows(
    left: Iterable[Fields],
    right: Iterable[Fields],
    by: Sequence[str],
    kind: JoinKind,
    names: tuple[Sequence[str], Sequence[str]],
) -> Iterator[Fields]:
    """A row for each pair; `names` are the fields of both lists, which are None in a row without a partner.

    Where both rows have another field, the left one's value counts.
    """
    gaps: Fields = dict.fromkeys([*names[0], *names[1]])

    def pairs() -> Iterator[bytes]:
        for ours, theirs in _matches(_keyed(left, by), _keyed(right, by), kind):
            row: Fields = {**gaps, **(theirs[_ROW] if theirs else {}), **(ours[_ROW] if ours else {})}
            places = [held[_PLACE] if held else -1 for held in (ours, theirs)]
            rank = places[::-1] if kind is JoinKind.RIGHT else places
            yield encode_fields({_ROW: row, _RANK: rank})[0]

    return (decode_fields(row)[_ROW] for row in in_order(pairs(), lambda held: held[_RANK], reverse=False))


def _matches(
    left: Iterator[tuple[bytes, Iterator[Fields]]], right: Iterator[tuple[bytes, Iterator[Fields]]], kind: JoinKind
) -> Iterator[tuple[Fields | None, Fields | None]]:
    """The pairs of rows under equal keys, and the rows alone that this kind of join keeps."""
    ours, theirs = next(left, None), next(right, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and (ours[0] < theirs[0] or ours[0] == _NONE)):
            assert ours is not None
            if kind is JoinKind.LEFT:
                yield from ((row, None) for row in ours[1])
            ours = next(left, None)
        elif ours is None or theirs[0] < ours[0] or theirs[0] == _NONE:
            if kind is JoinKind.RIGHT:
                yield from ((None, row) for row in theirs[1])
            theirs = next(right, None)
        else:
            partners = Spool(theirs[1], "row")  # read again for each of ours, and there may be many
            for row in ours[1]:
                yield from ((row, decode_fields(partner)) for partner in partners.rows())
            ours, theirs = next(left, None), next(right, None)


def _keyed(rows: Iterable[Fields], by: Sequence[str]) -> Iterator[tuple[bytes, Iterator[Fields]]]:
    """The rows by their keys in order, each with its place."""
    placed = (encode_fields({_ROW: fields, _PLACE: place})[0] for place, fields in enumerate(rows))
    key = _key_of(by)
    return groupby(map(decode_fields, in_order(placed, key, reverse=False)), key)


def _key_of(by: Sequence[str]) -> Callable[[Fields], bytes]:
    def key(held: Fields) -> bytes:
        values = [comparable(held[_ROW].get(name)) for name in by]
        return _NONE if None in values else encode_value(values)

    return key
