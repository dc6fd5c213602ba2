"""The questions without an answer, and why: of a whole file or of a view, read a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.results.stages import OpenView
from headrace.store.contents import decoding
from headrace.store.run_file.details import FailureRow, failures_after, failures_of
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.interview_queries import ORDINAL, Projection
from headrace.store.run_file.reader import Reader

_PAGE = 256


class FailedQuestion(NamedTuple):
    """A question without an answer; `cause` is one of the texts of survey.record.Cause."""

    ordinal: int
    question: str
    cause: str
    message: str


def all_failures(reader: Reader, header: RunHeader) -> Iterator[FailedQuestion]:
    """Those of a whole file, in plan order."""
    last = (-1, -1)
    while True:
        with reader.snapshot() as connection, decoding(header.path, "its failures"):
            page = failures_after(connection, *last, _PAGE)
            failed = _failed(page, header)
        yield from failed
        if len(page) < _PAGE:
            return
        last = page[-1][0], page[-1][1]


def failures_in(opened: OpenView) -> Iterator[FailedQuestion]:
    """Those of a view that holds failed interviews alone, in its order."""
    for page in opened.pages(Projection()):
        ordinals = [row[ORDINAL] for row in page]
        place = {ordinal: number for number, ordinal in enumerate(ordinals)}
        with opened.reader.snapshot() as connection, decoding(opened.header.path, "its failures"):
            failed = _failed(failures_of(connection, ordinals), opened.header)
        failed.sort(key=lambda failure: place[failure.ordinal])
        yield from failed


def _failed(page: list[FailureRow], header: RunHeader) -> list[FailedQuestion]:
    names = header.question_names
    return [FailedQuestion(ordinal, names[q], cause, message) for ordinal, q, cause, message in page]
