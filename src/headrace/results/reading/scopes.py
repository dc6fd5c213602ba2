"""What one run was asked for, as SQL: `run` returns these interviews, whatever is added to the file later.

A limit is a bound of ordinals. A sample is a bitmap, drawn again from its seed when it is first needed, and asked for
each ordinal by a function in SQL. Does not cover: which interviews these are (plan.portion).
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.plan.portion import RunScope
from headrace.store.run_file.interview_queries import EVERYTHING, RowSet, rows_where
from headrace.store.run_file.keeping.finished_bits import FinishedBits
from headrace.store.run_file.keeping.unkept_rows import failed_by_bits
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.run_file.stored_job.stored_where import read_left_out


def rows_in(scope: RunScope | None, reader: Reader) -> RowSet:
    """The interviews of a scope, to be read on this reader; of the whole file where it is None."""
    if scope is None:
        return EVERYTHING
    return rows_where(ordinals_in(scope, reader), scope.stop, scope.total, is_drawn=scope.is_drawn)


def row_in(scope: RunScope | None, reader: Reader, ordinal: int) -> RowSet:
    """The same for one interview alone, if it is in the scope."""
    return rows_where(f"ordinal = {ordinal} AND {ordinals_in(scope, reader)}", ordinal + 1, 1, is_drawn=True)


def ordinals_in(scope: RunScope | None, reader: Reader) -> str:
    """A condition in SQL on a column `ordinal`."""
    if scope is None:
        return "1"
    if not scope.is_drawn:
        return f"ordinal < {scope.stop}"
    function = reader.function(scope, lambda: _is_drawn(scope, reader))
    return f"ordinal < {scope.stop} AND {function}(ordinal)"


def count_bits_of_run(reader: Reader, scope: RunScope, *, only_failed: bool) -> int:
    """How many interviews of a scope are finished, or have failed, in a file that keeps no rows."""
    with reader.snapshot() as connection:
        plan = read_plan(connection, reader.path)
        bits = FinishedBits.load(connection, reader.path, len(plan))
        left_out = read_left_out(connection, reader.path, plan) if scope.is_drawn and scope.has_gaps else None
    found = failed_by_bits(bits) if only_failed else bits.bitmap()
    if scope.is_drawn:
        found.remove(scope.passed_over(left_out))
    return found.count_below(scope.stop)


def _is_drawn(scope: RunScope, reader: Reader) -> Callable[[int], bool]:
    left_out = None
    if scope.has_gaps:
        with reader.snapshot() as connection:
            left_out = read_left_out(connection, reader.path, read_plan(connection, reader.path))
    passed_over = scope.passed_over(left_out)
    return lambda ordinal: 0 <= ordinal < scope.stop and ordinal not in passed_over
