"""A user's own totals: an object that results are added to, and that can write down where it is.

    class Moods:
        def __init__(self): self.seen = {}
        def add(self, result): self.seen[result.answer["mood"]] = self.seen.get(result.answer["mood"], 0) + 1
        def encode(self): return json.dumps(self.seen).encode()
        def decode(self, state): self.seen = json.loads(state)

    job.run("city.run", keep="nothing", aggregate=Moods())
    Results.open("city.run").aggregate(Moods()).seen

Covers: the protocol, and adding a run's rows. Does not cover: totals that are written as texts (running_totals).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from headrace.errors import InvalidInput
from headrace.results.result import Result
from headrace.results.totals.written_totals import TotalledRow, class_name
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.stored_totals import MOST_STATE_BYTES, TotalState
from headrace.store.run_file.rows import Status
from headrace.units import format_bytes

WHOLE = ""  # the key of its one state


@runtime_checkable
class Aggregator(Protocol):
    """`add` is called once for each interview that has all its answers, on the journal's thread, inside its commit.

    `encode` is called once a commit, so what it gives should stay small; `decode` takes up what `encode` gave in an
    earlier run. Neither may execute what it reads: use JSON or msgpack, never pickle.
    """

    def add(self, result: Result) -> None: ...

    def encode(self) -> bytes: ...

    def decode(self, state: bytes) -> None: ...


class OwnTotals:
    """A user's aggregator during a run."""

    needs_detail = True

    def __init__(self, aggregator: Aggregator, header: RunHeader, states: list[TotalState]) -> None:
        self._aggregator = aggregator
        self._header = header
        self._interviews = sum(each.interviews for each in states)
        take_up(aggregator, states)

    def take(self, rows: list[TotalledRow]) -> list[TotalState]:
        """Add rows, and give the state where it has changed."""
        complete = [each for each in rows if each.row.status is Status.DONE]
        for row, agent, scenario in complete:
            self._aggregator.add(Result.from_row(row, agent, scenario, self._header))
        self._interviews += len(complete)
        return [TotalState(WHOLE, self._interviews, self._encoded())] if complete else []

    def _encoded(self) -> bytes:
        state = self._aggregator.encode()
        if not isinstance(state, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            what = f"gave {type(state).__name__}, not bytes"
        elif len(state) > MOST_STATE_BYTES:
            what = f"gave {format_bytes(len(state))}; it is written with every commit, and may have 16 MB"
        else:
            return state
        raise InvalidInput(
            f"encode() of {class_name(self._aggregator)} {what}.",
            fix="What was committed before is safe. Change encode() and run again.",
        )


def take_up(aggregator: Aggregator, states: list[TotalState]) -> None:
    """Have an aggregator go on from the state that a file holds, where it holds one."""
    for each in states:
        aggregator.decode(each.state)
