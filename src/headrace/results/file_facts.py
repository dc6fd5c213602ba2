"""A run file in figures: its statistics, its plan's size and what it keeps.

Read without the survey in it, whose questions and models take longer to load than all of this: `headrace status`, the
page and lists of runs need no more. Does not cover: its results (results.results).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from headrace.limits import Keep
from headrace.results.stats import Stats, read_stats
from headrace.store.run_file.details import RunOutcome, latest_note, latest_outcome
from headrace.store.run_file.keeping.stored_keep import read_keeping
from headrace.store.run_file.reader import Reader, check_is_set_up
from headrace.store.run_file.stored_job.plan_check import check_plan
from headrace.store.run_file.stored_job.stored_boxes import count_planned, read_plan


class FileFacts(NamedTuple):
    """`noted_at` is until when the latest run is known to have gone on, `outcome` how it ended; None before the first
    run.
    """

    stats: Stats
    planned: int
    keep: Keep
    noted_at: float | None
    outcome: RunOutcome | None


def read_facts(given: Path) -> FileFacts:
    reader = Reader(path := given.expanduser().absolute())
    try:
        with reader.snapshot() as connection:
            check_is_set_up(connection, path)
            check_plan(connection, path)
            planned = count_planned(connection, path, read_plan(connection, path))
            keep, noted_at = read_keeping(connection, path).keep, latest_note(connection, path)
            outcome = latest_outcome(connection, path)
        return FileFacts(read_stats(reader), planned, keep, noted_at, outcome)
    finally:
        reader.close()
