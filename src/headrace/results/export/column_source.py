"""What an export reads: named columns, batch by batch, as often as it asks. Knows no format and no library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from headrace.expressions import ColumnKind

Batch: TypeAlias = Sequence[Sequence[Any]]  # the values of each column, some thousand rows
Kinds: TypeAlias = list[frozenset[ColumnKind] | None]  # of each column; None where its values have to be looked at


class ColumnSource(msgspec.Struct, frozen=True):
    """`kinds` and `batches` read anew each time: a run that goes on may have added rows meanwhile."""

    columns: list[str]
    kinds: Callable[[], Kinds]
    batches: Callable[[], Iterator[Batch]]
    batches_at: Callable[[list[int]], Iterator[Batch]] | None = None  # of the columns at these places alone

    def only(self, places: list[int]) -> Iterator[Batch]:
        """The columns at these places."""
        if self.batches_at is not None:
            return self.batches_at(places)
        return ([batch[place] for place in places] for batch in self.batches())

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows one by one, read in batches."""
        return chain.from_iterable(zip(*batch, strict=True) for batch in self.batches())
