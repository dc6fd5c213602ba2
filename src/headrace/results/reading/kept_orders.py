"""Keeps a piece of the order of a sorted view, so that the pages behind the first one need not read the file again.

    the first page: the whole file is read, and the next two thousand ordinals are kept ──► further pages: from those

A piece is that of a file as it is: once something is committed to the file, its pieces are of no use, and are dropped
for newer ones. A search that ran out of time leaves what it had found, for whoever goes on with it. Does not cover: the
search (keyset_search).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from headrace.store.run_file.range_digests import FileState, file_state

MOST_AHEAD = 2_000
_MOST_ORDERS = 4

Keyed: TypeAlias = tuple[Any, ...]  # an ordinal, and the two values that it is sorted by


class _Piece(msgspec.Struct, frozen=True):
    """Some ordinals that follow one another; whether the first is the first of all, and the last the last."""

    ordinals: tuple[int, ...] = ()
    begins: bool = False
    ends: bool = False

    def turned(self, is_back: bool) -> _Piece:
        return _Piece(self.ordinals[::-1], self.ends, self.begins) if is_back else self

    def behind(self, ordinal: int | None, most: int) -> list[int] | None:
        """The next ones and, where there are more, one of them; None where the piece does not have them."""
        if ordinal is None:
            start = 0 if self.begins else None
        else:
            start = self.ordinals.index(ordinal) + 1 if ordinal in self.ordinals else None
        if start is None:
            return None
        found = self.ordinals[start : start + most + 1]
        return list(found) if len(found) > most or self.ends else None

    def and_then(self, other: _Piece) -> _Piece:
        """Both, as many of the last as are kept."""
        ordinals = self.ordinals + other.ordinals
        kept = ordinals[-2 * MOST_AHEAD :]
        return _Piece(kept, self.begins and len(kept) == len(ordinals), other.ends)


class _InterruptedSearch(msgspec.Struct, frozen=True):
    behind: int | None
    is_back: bool
    read_to: int
    best: list[Keyed]


class KeptOrder:
    """What is kept of one order. Threads may share it: each change replaces a value."""

    def __init__(self) -> None:
        self._piece = _Piece()
        self._interrupted: _InterruptedSearch | None = None

    def next_of(self, behind: int | None, most: int, *, is_back: bool) -> list[int] | None:
        """The ordinals behind one (the first where it is None), or those before it, the nearest first: `most`, and one
        more where there are more. None where they are not kept.
        """
        return self._piece.turned(is_back).behind(behind, most)

    def keep(self, behind: int | None, found: Sequence[int], *, is_back: bool, is_all: bool) -> None:
        """Keep what a search has found behind a place; `is_all` where there are no more."""
        piece, before = _Piece(tuple(found), behind is None, is_all), self._piece.turned(is_back)
        if behind is not None and before.ordinals[-1:] == (behind,):
            piece = before.and_then(piece)
        self._piece = piece.turned(is_back)

    def best_of_interrupted(self, behind: int | None, read_to: int | None, *, is_back: bool) -> list[Keyed] | None:
        """What the search had found that was interrupted there; None where it is not kept."""
        kept = self._interrupted
        is_it = kept is not None and (kept.behind, kept.is_back, kept.read_to) == (behind, is_back, read_to)
        return list(kept.best) if kept is not None and is_it else None

    def keep_interrupted(self, behind: int | None, read_to: int, best: list[Keyed], *, is_back: bool) -> None:
        self._interrupted = _InterruptedSearch(behind, is_back, read_to, best)


class KeptOrders:
    """Those of the latest few views that were looked at, each of a file as it was then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: OrderedDict[tuple[Path, FileState, Hashable], KeptOrder] = OrderedDict()

    def of(self, path: Path, asked: Hashable) -> KeptOrder:
        """What is kept of this order of the file as it is now. Ask before the file is read."""
        key = path, file_state(path), asked
        with self._lock:
            order = self._orders.setdefault(key, KeptOrder())
            self._orders.move_to_end(key)
            while len(self._orders) > _MOST_ORDERS:
                self._orders.popitem(last=False)
            return order
