"""The totals in a run file as a table: a row for each group, in the order of their values.

Read again each time it is looked at, so that it shows how far a run is, also one in another process. Does not cover:
adding (running_totals).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from headrace.errors import InvalidInput, Spelled
from headrace.results.aggregates.function_states import order_of
from headrace.results.printing import Glance
from headrace.results.tables.table import Table
from headrace.results.tables.table_rows import TableRows
from headrace.results.tabular import Values
from headrace.results.totals.aggregator import WHOLE, Aggregator, take_up
from headrace.results.totals.running_totals import GroupOfTotals
from headrace.results.totals.written_totals import WrittenTotals, class_name, no_own_totals, totals_from_text
from headrace.store.contents import decoding
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.stored_totals import TotalState, read_totals
from headrace.store.run_file.reader import Reader


class TotalRows(TableRows):
    """The columns of `group_by`, then those of `aggregate`."""

    is_counted = True

    def __init__(self, reader: Reader, written: WrittenTotals) -> None:
        super().__init__(reader.path, [*written.group_by, *written.functions])
        self._reader = reader
        self._written = written

    @contextmanager
    def reading(self, _clock: QueryClock, /) -> Generator[Iterator[Values]]:
        with decoding(self.path, "its totals"):
            rows = _rows(self._written, _states(self._reader))
        yield iter(rows)  # at most MOST_GROUPS


def _rows(written: WrittenTotals, states: list[TotalState]) -> list[Values]:
    columns = written.columns()
    groups = [GroupOfTotals.decode(each, columns, len(written.group_by)) for each in states]
    if not groups and not written.group_by:
        groups = [GroupOfTotals("[]", columns)]  # of no interview: a count of 0
    groups.sort(key=lambda group: [order_of(value) for value in group.values])
    return [(*group.values, *(each.result() for each in group.functions)) for group in groups]


def check_totals(text: str, states: list[TotalState]) -> None:
    """Raises one of contents.UNREADABLE where the states cannot be those of a file whose totals are this text."""
    held = totals_from_text(text)
    if isinstance(held, WrittenTotals):
        _rows(held, states)
    elif any(each.key != WHOLE for each in states):
        raise ValueError(f"{held} has one state, and another one is there")


def totals_of(reader: Reader, header: RunHeader, aggregator: Aggregator | None) -> Table | Aggregator:
    """The totals of a file: a table, or the user's own aggregator at the file's state."""
    text = header.keeping.totals
    if text is None:
        raise InvalidInput(
            f"{reader.path} has no totals.",
            fix=Spelled(
                'They are asked for when the file is made: job.run(path, aggregate={"n": "count()"}).',
                command="They are asked for when the file is made: headrace run ... --aggregate 'n=count()'. Of what"
                " the file keeps, --group-by and --agg compute them.",
            ),
        )
    with decoding(reader.path, "its totals"):
        held = totals_from_text(text)
    if isinstance(held, WrittenTotals):
        if aggregator is not None:
            raise InvalidInput(f"The totals of {reader.path} are a table.", fix="Write results.aggregate().")
        return Table(TotalRows(reader, held))
    if aggregator is None:
        raise no_own_totals(reader.path, held)
    if class_name(aggregator) != held:
        raise InvalidInput(f"The totals of {reader.path} are of {held}, not of {class_name(aggregator)}.")
    take_up(aggregator, _states(reader))
    return aggregator


def totals_of_a_part(reader: Reader) -> InvalidInput:
    """The error where totals are asked of a view that has left interviews out."""
    return InvalidInput(
        f"The totals in {reader.path} are those of all its interviews, and these results are a part of them.",
        fix="Write Results.open(path).aggregate() for the totals, or results.group_by(...).agg(...) to compute some of"
        " this part.",
    )


def glance_without_rows(reader: Reader, header: RunHeader, line: str, most_rows: int) -> Glance:
    """What there is to see of a file that keeps no rows: its totals, and one line about it."""
    with decoding(reader.path, "its totals"):
        held = None if header.keeping.totals is None else totals_from_text(header.keeping.totals)
    if not isinstance(held, WrittenTotals):
        return Glance(columns=[], rows=[], total=0, notes=(line,))
    source = TotalRows(reader, held)
    rows, total = source.first(most_rows, QueryClock())
    return Glance(columns=source.columns, rows=rows, total=total, notes=(line,))


def _states(reader: Reader) -> list[TotalState]:
    with reader.snapshot() as connection:
        return read_totals(connection, reader.path)
