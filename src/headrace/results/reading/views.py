"""A View is what a user has asked of results, as a value: filters, then order, then a window. It reads nothing (stages
do).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from headrace.plan.portion import RunScope
from headrace.results.columns.result_column import ORDINAL, Bound, ResultColumn


class SortKey(msgspec.Struct, frozen=True):
    column: ResultColumn
    descending: bool


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The interviews of `parent` that pass the filters, sorted, from `start` up to `stop`.

    Without a parent they are of the file: of those in `scope`, or of all where that is None.
    """

    scope: RunScope | None = None
    parent: View | None = None
    filters: tuple[Bound, ...] = ()
    keys: tuple[SortKey, ...] = ()
    start: int = 0
    stop: int | None = None
    is_of_sum: bool = False  # of `one + other`: its keys, and those of views made of it, sort the whole sum

    @property
    def is_whole(self) -> bool:
        """Whether these are all interviews of the scope, in plan order."""
        return self.parent is None and self == View(scope=self.scope, is_of_sum=self.is_of_sum)

    @property
    def is_narrowed(self) -> bool:
        """Whether a filter or a window may have left interviews of the scope out."""
        return any(view.filters or view.has_window for view in self.lineage())

    @property
    def root(self) -> View:
        """The view of the file that this one was made of."""
        return self if self.parent is None else self.parent.root

    @property
    def unsorted(self) -> View:
        """The same interviews in the order they had, without the window."""
        return View(scope=self.scope, parent=self.parent, filters=self.filters)

    def lineage(self) -> Iterator[View]:
        """This view and those that it was made of."""
        view: View | None = self
        while view is not None:
            yield view
            view = view.parent

    def size_within(self, total: int) -> int | None:
        """How many interviews these are, of so many in the scope; None where filters would have to be asked."""
        if self.filters:
            return None
        held = total if self.parent is None else self.parent.size_within(total)
        if held is None:
            return None
        return max(0, (held if self.stop is None else min(held, self.stop)) - self.start)

    def filtered(self, condition: Bound) -> View:
        view = self._behind_window()
        return replace(view, filters=(*view.filters, condition))

    def ordered(self, keys: tuple[SortKey, ...]) -> View:
        """Sorted by `keys`; rows with equal keys stay in the order they had."""
        view = self._behind_window()
        return replace(view, keys=(*keys, *view.keys))

    def windowed(self, start: int, stop: int | None) -> View:
        """The part of this view from `start` up to `stop`, both counted within it and not negative."""
        ends = [end for end in (self.stop, None if stop is None else self.start + stop) if end is not None]
        first = self.start + start
        return replace(self, start=first, stop=max(first, min(ends)) if ends else None)

    def from_end(self, start: int, stop: int) -> View | None:
        """The rows from `start` up to `stop`, counted from the end, the last one first; None where only counting can
        find them: behind a window.
        """
        if self.parent is not None or self.has_window:
            return None
        backwards = tuple(SortKey(key.column, not key.descending) for key in self._in_full_order)
        return replace(self, keys=backwards, start=start, stop=stop)

    def last(self, count: int) -> View | None:
        """The last rows in their order; None as for `from_end`."""
        end = self.from_end(0, count)
        return None if end is None else View(parent=end, keys=self._in_full_order)

    def joined(self) -> View:
        """This view as a part of a sum: what sorts the sum is told from what sorted this part before."""
        return View(parent=self, is_of_sum=True) if self.keys or self.has_window else replace(self, is_of_sum=True)

    @property
    def _in_full_order(self) -> tuple[SortKey, ...]:
        """The sort keys with the ordinal behind them, by which no two rows are alike."""
        return (*self.keys, SortKey(ORDINAL, False))

    @property
    def has_window(self) -> bool:
        return (self.start, self.stop) != (0, None)

    def _behind_window(self) -> View:
        # A filter and an order may change places; neither may pass a window.
        return View(parent=self) if self.has_window else self
