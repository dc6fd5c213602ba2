"""Which agent, scenario, model and iteration each result of EDSL's belongs to: found in a first pass over the results.

EDSL writes all of them with every result. Here they stand once, in lists, in the order in which they are met; equal
agents stay apart where EDSL says that their places in its list differ. A combination that is there twice gets the next
iteration. Everything is in temporary files. Does not cover: the answers (result_rows).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self, cast

from headrace.edsl_files.carried_over import CarriedOver
from headrace.errors import EdslFileError
from headrace.plan.product import Coordinates
from headrace.store.queries.query_clock import QueryClock
from headrace.store.scratch.scratch_table import ScratchTable

_AXES = ("agent", "scenario", "model")
_ITERATIONS = "SELECT max(c3) FROM rows WHERE c0 = ? AND c1 = ? AND c2 = ?"


class PlacedResults:
    """The coordinates of the results that were added, in their order, and the items of each list."""

    def __init__(self) -> None:
        clock = QueryClock(math.inf)
        self._lists = {axis: _DistinctItems(clock) for axis in _AXES}
        self._places = ScratchTable(4, clock)
        self._places.index(4)
        self._iterations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for table in (self._places, *(held.table for held in self._lists.values())):
            table.close()

    def __len__(self) -> int:
        return self._places.count

    def add(self, result: Any, notes: CarriedOver) -> None:
        """Find the place of one more result."""
        held: Mapping[str, Any] = cast("Mapping[str, Any]", result) if isinstance(result, Mapping) else {}
        indices: Any = held.get("indices")
        places: list[int] = []
        for axis in _AXES:
            item = held.get(axis)
            if not isinstance(item, Mapping):
                raise EdslFileError(
                    f"{notes.place}: result {len(self)} has no {axis}.", fix="Give what EDSL's Results.save() wrote."
                )
            index = cast("Mapping[str, Any]", indices).get(axis) if isinstance(indices, Mapping) else None
            places.append(self._lists[axis].position(cast("Mapping[str, Any]", item), index))
        iteration = self._free(places, held.get("iteration"))
        self._iterations = max(self._iterations, iteration + 1)
        self._places.add([(*places, iteration)])

    @property
    def shape(self) -> Coordinates:
        return Coordinates(self._iterations, *(self._lists[axis].table.count for axis in _AXES))

    def items(self, axis: str) -> Iterator[Mapping[str, Any]]:
        """The agents, scenarios or models, each once, in the order of their places."""
        return (json.loads(text) for _, _, text in self._lists[axis].table.rows())

    def coordinates(self) -> Iterator[Coordinates]:
        """Where each result stands, in the order in which they were added."""
        for agent, scenario, model, iteration in self._places.rows():
            yield Coordinates(iteration, agent, scenario, model)

    def _free(self, places: list[int], given: Any) -> int:
        """The iteration that EDSL names, or the next one where the combination has that already."""
        iteration = given if type(given) is int and 0 <= given < 2**31 else 0
        if next(self._places.matching([*places, iteration]), None) is None:
            return iteration
        (highest,) = next(iter(self._places.connection.execute(_ITERATIONS, places)))
        return highest + 1


class _DistinctItems:
    """Items of one list, each once: by content, and by their index in EDSL's list where that is known."""

    def __init__(self, clock: QueryClock) -> None:
        self.table = ScratchTable(3, clock)
        self.table.index(1)
        self._latest: tuple[str, int] | None = None  # results of one agent mostly stand together

    def position(self, item: Mapping[str, Any], index: Any) -> int:
        text = json.dumps(item)
        key = hashlib.blake2b(f"{index if type(index) is int else ''}|{text}".encode(), digest_size=16).hexdigest()
        if self._latest is not None and self._latest[0] == key:
            return self._latest[1]
        found = next(self.table.matching([key]), None)
        position = self.table.count if found is None else found[1]
        if found is None:
            self.table.add([(key, position, text)])
        self._latest = key, position
        return position
