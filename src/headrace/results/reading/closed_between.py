"""A view's interviews in the order of the plan, batch by batch, with the file closed between two batches.

Whoever takes its time with a batch, such as a browser that has stopped reading, then holds nothing of the file: no
transaction, and no connection that would keep a run from sealing it. Does not cover: an order, which would have to be
kept somewhere (stages).
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.results.columns.result_column import ResultColumn
from headrace.results.reading.file_view import FileView
from headrace.results.reading.stages import ViewStage
from headrace.results.tabular import Columns
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.interview_queries import check_none_is_missing, range_end, rows_between

# Between two batches, whether a filter finds any among them or not. A client that stops reading holds one batch: with
# four of them and 5 KB a row, 500 rows were 4.7 MB of the server's memory and 150 are 1.8, for 4 us more CPU a row.
_ROWS_READ = 150
_BEFORE_ALL = -1


def batches_closed_between(view: FileView, columns: list[ResultColumn]) -> Iterator[Columns]:
    """These columns of the interviews that pass the view's filters. A batch may be empty: it says that time has gone
    by, so that the caller can look around.
    """
    opened, reader = view.opened(), view.file.reader
    after = _BEFORE_ALL
    try:
        while True:
            clock = QueryClock(view.timeout_s)
            with reader.snapshot(clock) as connection:
                end = range_end(connection, after, _ROWS_READ)
                if end is None:
                    check_none_is_missing(connection, opened.header.path)
                    return
            stage = ViewStage(opened, reader, rows_between(after + 1, end + 1), clock, counts_file=False)
            for batch in stage.batches(columns, 0, None):
                reader.close()
                yield batch
                clock.restart()
            reader.close()
            yield []
            after = end
    finally:
        reader.close()
