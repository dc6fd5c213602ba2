"""Lets a run file's scenarios point to where their files are now, once a job with the same files elsewhere goes on.

A plan's identity counts files by content, so a job whose directory was moved is the same job. Does not cover: files
whose content changed, which make another plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import apsw

from headrace.plan.job import Job
from headrace.store.contents import typed_rows
from headrace.store.run_file.checksums import fields_checksum
from headrace.store.transactions import transaction

_BATCH = 1_000


def follow_moved_files(connection: apsw.Connection, job: Job, pause: Callable[[], None]) -> None:
    """Write the scenarios' rows again that differ from the job's; `pause` is called between batches and may raise."""
    source = job.scenarios.source
    if job.origin is not None or not source.census.has_files:
        return
    rows = source.rows()
    for first in range(0, source.length, _BATCH):
        given = list(islice(rows, _BATCH))
        stored = "SELECT position, fields FROM scenarios WHERE position >= ? AND position < ? ORDER BY position"
        moved = list(_moved(typed_rows(connection, tuple[int, str], stored, (first, first + _BATCH)), first, given))
        if moved:
            with transaction(connection):
                connection.executemany("UPDATE scenarios SET fields = ?, checksum = ? WHERE position = ?", moved)
        pause()


def _moved(stored: list[tuple[int, str]], first: int, given: list[bytes]) -> Iterator[tuple[str, int, int]]:
    for position, fields in stored:
        row = given[position - first]
        if row != fields.encode():
            yield row.decode(), fields_checksum(position, row), position
