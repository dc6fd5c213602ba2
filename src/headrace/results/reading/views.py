"""A View is what a user has asked of results, as a value: filters, then order, then a window. It reads nothing (stages
do).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.plan.portion import RunScope
from headrace.results.columns.result_column import Bound, ResultColumn


@dataclass(frozen=True, slots=True)
class SortKey:
    column: ResultColumn
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The interviews of `parent` that pass the filters, sorted, from `start` up to `stop`.

    Without a parent they are of the file: of those in `scope`, or of all where that is None.
    """

    scope: RunScope | None = None
    parent: View | None = None
    filters: tuple[Bound, ...] = ()
    keys: tuple[SortKey, ...] = ()
    start: int = 0
    stop: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are all interviews of the scope, in plan order."""
        return self.parent is None and self == View(scope=self.scope)

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

    def _behind_window(self) -> View:
        # A filter and an order may change places; neither may pass a window.
        return self if (self.start, self.stop) == (0, None) else View(parent=self)
