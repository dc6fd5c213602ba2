"""Rows of a list taken together, two or more: `create_comparisons` and `choose_k`.

Positions count through the spool of the list: a row for each loop is in memory, never the combinations.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from headrace.errors import ListError
from headrace.plan.rows.spool import Spool
from headrace.survey.values import Fields, decode_fields

_LETTERS = string.ascii_uppercase


def combinations(rows: Spool, count: int, *, in_any_order: bool) -> Iterator[list[Fields]]:
    """Each choice of so many rows, in the order of the list; `in_any_order` has each order of them too."""
    if count > rows.length:
        raise ListError(
            f"{count} rows cannot be taken together: there {'is' if rows.length == 1 else 'are'} {rows.length}.",
            fix="Take fewer, or give a longer list.",
        )

    def with_more(places: list[int], chosen: list[Fields]) -> Iterator[list[Fields]]:
        first = 0 if in_any_order or not places else places[-1] + 1
        for place, row in enumerate(map(decode_fields, rows.rows(first)), first):
            if place in places:
                continue
            if len(places) + 1 == count:
                yield [*chosen, row]
            else:
                yield from with_more([*places, place], [*chosen, row])

    return with_more([], [])


def compared(chosen: Iterator[list[Fields]], labels: Sequence[str]) -> Iterator[Fields]:
    """A row with a field for each of the chosen rows, which holds its fields."""
    return (dict(zip(labels, rows, strict=True)) for rows in chosen)


def numbered(chosen: Iterator[list[Fields]]) -> Iterator[Fields]:
    """A row with the one field of each of the chosen rows, numbered: `city_1`, `city_2`."""
    for rows in chosen:
        pairs = [next(iter(fields.items()), None) if len(fields) == 1 else None for fields in rows]
        if None in pairs:
            raise ListError("choose_k takes rows of one field.", fix="Keep one first, or use create_comparisons().")
        yield {f"{pair[0]}_{number}": pair[1] for number, pair in enumerate(pairs, 1) if pair is not None}


def labels(count: int, prefix: str, *, use_alphabet: bool) -> list[str]:
    if use_alphabet and count > len(_LETTERS):
        raise ListError(f"There are {len(_LETTERS)} letters for {count} options.", fix="Leave use_alphabet out.")
    return [*_LETTERS[:count]] if use_alphabet else [f"{prefix}{number}" for number in range(1, count + 1)]


def check_count(count: object, least: int, what: str) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ListError(f"{what} cannot be {count!r}.", fix=f"Give a whole number from {least} on.")
