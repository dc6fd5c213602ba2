"""The questions without an answer, and why: of a whole file or of a view, read a page at a time.

A table says under its rows how many interviews failed, and marks the answers that failed: a skipped one is empty too.
Does not cover: drawing the table (printing).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.display import cell_text, counted
from headrace.plan.portion import RunScope
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.reading.scopes import ordinals_in
from headrace.results.reading.stages import OpenView
from headrace.results.stats import read_stats
from headrace.store.contents import decoding
from headrace.store.run_file.details import FailureRow, count_failed_interviews, failures_after, failures_of
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import ORDINAL, Projection
from headrace.store.run_file.reader import Reader

if TYPE_CHECKING:
    from headrace.results.export.pandas_frames import DataFrame

_PAGE = 256
_MARK = "(failed)"
_LONGEST_MESSAGE = 200
_LONGEST = 240  # letters of a line, where failures are printed


class FailedQuestion(NamedTuple):
    """A question without an answer; `cause` is one of the texts of survey.record.Cause."""

    ordinal: int
    question: str
    cause: str
    message: str


def all_failures(reader: Reader, header: RunHeader, scope: RunScope | None) -> Iterator[FailedQuestion]:
    """Those of a whole run or file, in plan order."""
    last, chosen = (-1, -1), ordinals_in(scope, reader)
    while True:
        with reader.snapshot() as connection, decoding(header.path, "its failures"):
            page = failures_after(connection, *last, _PAGE, chosen)
            failed = _failed(page, header)
        yield from failed
        if len(page) < _PAGE:
            return
        last = page[-1][0], page[-1][1]


def count_failed(reader: Reader, scope: RunScope | None) -> int:
    """How many interviews of a whole run or file failed."""
    if scope is None:
        return read_stats(reader).failed
    chosen = ordinals_in(scope, reader)
    with reader.snapshot() as connection, decoding(reader.path, "its failures"):
        return count_failed_interviews(connection, chosen)


class FailedQuestions(Iterator[FailedQuestion]):
    """Questions that failed, read as they are consumed, once; `print`, `to_dicts` and `to_pandas` read them anew."""

    def __init__(self, read: Callable[[], Iterator[FailedQuestion]]) -> None:
        self._read = read
        self._failures = read()

    def __next__(self) -> FailedQuestion:
        return next(self._failures)

    def __str__(self) -> str:
        return "\n".join(failure_lines(self._read()))

    def to_dicts(self) -> list[dict[str, Any]]:
        """All of them, in RAM: `[{"ordinal": 3, "question": "mood", "cause": ..., "message": ...}, ...]`."""
        return [failure._asdict() for failure in self._read()]

    def to_pandas(self) -> DataFrame:
        """All of them, in RAM, as a data frame."""
        from headrace.results.export.pandas_frames import to_pandas
        from headrace.results.tabular import columns_of

        fields = FailedQuestion._fields
        return to_pandas([*fields], columns_of(self._read(), len(fields)), lists_as_strings=False)

    def __repr__(self) -> str:
        return "FailedQuestions: for failure in results.failed() reads them, print(results.failed()) shows the first"


def failures_in(opened: OpenView) -> Iterator[FailedQuestion]:
    """Those of a view that holds failed interviews alone, in its order."""
    for page in opened.pages(Projection()):
        ordinals = [row[ORDINAL] for row in page]
        place = {ordinal: number for number, ordinal in enumerate(ordinals)}
        with opened.reader.snapshot() as connection, decoding(opened.header.path, "its failures"):
            failed = _failed(failures_of(connection, ordinals), opened.header)
        failed.sort(key=lambda failure: place[failure.ordinal])
        yield from failed


def failures_among(opened: OpenView, ordinals: list[int]) -> Iterator[FailedQuestion]:
    """Those of these interviews, in the order of the plan within each page."""
    for start in range(0, len(ordinals), _PAGE):
        with opened.reader.snapshot() as connection, decoding(opened.header.path, "its failures"):
            failed = _failed(failures_of(connection, ordinals[start : start + _PAGE]), opened.header)
        yield from failed


def failure_note(failed: int, of: int, first: FailedQuestion | None, *, shown: bool = False) -> tuple[str, ...]:
    """`2 of 8 interviews failed, the first: ...`; nothing where none failed. `shown` says that only the rows of the
    table were counted.
    """
    if not failed:
        return ()
    why = ""
    if first is not None:
        message = cell_text(first.message, _LONGEST_MESSAGE).rstrip(".")
        why = f", the first: interview {first.ordinal:,}, {first.question}: {first.cause}: {message}"
    what = f"the {counted(of, 'interview')} shown" if shown else counted(of, "interview")
    return (f"{failed:,} of {what} failed{why}; results.failed() lists them",)


def marked(
    rows: list[tuple[Any, ...]], columns: Sequence[ResultColumn], ordinals: Sequence[int], failed: set[tuple[int, str]]
) -> list[tuple[Any, ...]]:
    """The rows with a mark for each answer that failed; `failed` are ordinals and questions."""
    places = [(place, each.name) for place, each in enumerate(columns) if _is_asked(each)]

    def mark(row: tuple[Any, ...], ordinal: int) -> tuple[Any, ...]:
        gone = {place for place, question in places if (ordinal, question) in failed}
        return tuple(_MARK if place in gone else value for place, value in enumerate(row)) if gone else row

    return [mark(row, ordinal) for row, ordinal in zip(rows, ordinals, strict=True)] if failed else rows


def print_failures(failures: Iterator[FailedQuestion], most: int = 20) -> None:
    """Print the first of them, a line each."""
    sys.stdout.writelines(f"{line}\n" for line in failure_lines(failures, most))


def failure_lines(failures: Iterator[FailedQuestion], most: int = 20) -> list[str]:
    """A line for each of the first."""
    first = list(islice(failures, most + 1))
    lines = [f"interview {each.ordinal}, {each.question}: {each.cause}: {each.message}" for each in first[:most]]
    if len(first) > most:
        lines.append("... and more: results.failed().to_dicts() gives all of them.")
    elif not first:
        lines = ["No question has failed."]
    return [cell_text(line, _LONGEST) for line in lines]


def _failed(page: list[FailureRow], header: RunHeader) -> list[FailedQuestion]:
    names = header.question_names
    return [FailedQuestion(ordinal, names[q], cause, message) for ordinal, q, cause, message in page]


def _is_asked(column: ResultColumn) -> bool:
    return column.group is Group.ANSWER and column.computed is None
