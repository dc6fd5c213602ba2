"""The plan in a run file: refusing one that cannot be run here, and growing it to that of a job.

A plan grows by more iterations (`n`) or longer lists (`extend`); ordinals that are in the file never move. Covers:
comparing a file with a job, and refusing another job with what differs. Does not cover: reading the
plan (stored_boxes), or writing lists (creation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from headrace.display import counted
from headrace.errors import OptionError, RunFileError, spelled
from headrace.limits import RunOptions
from headrace.plan import differences
from headrace.plan.bitmap import BLOCK_BITS, Bitmap
from headrace.plan.job import Job
from headrace.plan.product import Plan
from headrace.store.contents import damaged, decoding
from headrace.store.live_file import LiveFile
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.stored_keep import WantedKeeping
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.stored_job import creation
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.run_file.stored_job.stored_where import left_out_of, read_conditions, read_left_out
from headrace.survey.model import Model
from headrace.survey.survey import Survey
from headrace.units import format_bytes

# Sets of ordinals take memory by how irregular they are (plan.bitmap). A run holds what is finished, what has a row,
# what it passes over, and copies while it begins: at least a pointer a block in each.
_POINTER_BYTES, _MOST_SETS = 8, 8
_DRAWN_BYTES = 2  # of a number at random in a block with few others


def check_lists(connection: apsw.Connection, path: Path, plan: Plan) -> None:
    """Refuse a file whose lists are not as long as its plan says. Counting takes 30 ms for a million rows."""
    for table, length in (
        ("agents", plan.shape.agent),
        ("scenarios", plan.shape.scenario),
        ("models", plan.shape.model),
    ):
        held = connection.execute(f"SELECT count(*) FROM {table} WHERE position >= 0 AND position < ?", (length,)).get
        if held != length:
            raise damaged(path, f"it has {held:,} of the {length:,} {table} in its plan")


def check_fits(plan: Plan, path: Path, budget_bytes: int, *, leaves_out: bool, sample: int | None) -> None:
    """Refuse a plan where keeping track of its interviews would take most of the memory budget."""
    a_bit_each = plan.size // 8  # the most that what is left out, or not drawn, can take
    needed_bytes = _POINTER_BYTES * _MOST_SETS * plan.size // BLOCK_BITS + a_bit_each * leaves_out
    if sample is not None:
        few = min(sample, max(plan.size - sample, 0))
        needed_bytes += min(few * _DRAWN_BYTES, a_bit_each)
    if needed_bytes > budget_bytes // 2:
        raise RunFileError(
            f"{path} has a plan of {counted(plan.size, 'interview')}, and to keep track of them takes"
            f" {format_bytes(needed_bytes)} of a memory budget of {format_bytes(budget_bytes)}.",
            path=path,
            fix=spelled("Raise the budget ({memory}), or split the job into several run files.", memory=None),
        )


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The growth of a stored plan to `plan`. `lists_from` is the stored plan where its lists get longer; `left_out` are
    the ordinals that the stored plan leaves out.
    """

    plan: Plan
    lists_from: Plan | None
    left_out: Bitmap | None

    def carry_out(self, live: LiveFile, job: Job, pause: Callable[[], None]) -> None:
        """Write what the job adds; `pause` is called between batches and may raise to stop."""

        def between_batches() -> None:
            live.keep_log_short()
            pause()

        left_out = left_out_of(job, self.plan, self.left_out)
        if self.lists_from is None:
            creation.write_boxes(live.connection, job, self.plan, left_out)
        else:
            creation.extend_lists(live.connection, job, self.lists_from, between_batches)
            creation.finish_plan(live.connection, job, self.plan, left_out)


def find_growth(
    path: Path, job: Job, options: RunOptions, budget_bytes: int | None, wanted_keeping: WantedKeeping
) -> Growth | None:
    """Compare a file with a job: the growth it needs, None where it needs none; another job, or another keep, is
    refused.

    It only reads, so that a refused file stays as it was.
    """
    connection = open_run_file(path)
    try:
        header = RunHeader.load(connection, path)  # refuses what cannot be read
        plan = read_plan(connection, path)
        check_lists(connection, path, plan)
        with decoding(path, "its identity"):
            found = creation.read_identity(connection)
        n, wanted = options.n or plan.shape.iteration, job.identity()
        if n < plan.shape.iteration:
            raise OptionError(
                spelled(f"{path} has {{n}}, which may grow but not shrink.", n=plan.shape.iteration),
                fix=spelled("Leave {n} out, or use another path.", n=None),
            )
        is_longer = options.extend and wanted != found and wanted.may_extend(found)
        if is_longer:
            creation.check_lists_begin_alike(connection, path, job, plan)
        elif wanted != found:
            with decoding(path, "what it holds"):
                raise wanted.mismatch(found, path, _differences(connection, path, job, plan))
        wanted_keeping.check(header.keeping, path)
        grown = plan.grown(job.shape(n))
        if budget_bytes is not None:
            check_fits(grown, path, budget_bytes, leaves_out=bool(job.conditions), sample=options.sample)
        if grown == plan:
            return None
        left_out = read_left_out(connection, path, plan)
        return Growth(plan=grown, lists_from=plan if is_longer else None, left_out=left_out)
    finally:
        connection.close()


def _differences(connection: apsw.Connection, path: Path, job: Job, plan: Plan) -> Iterator[str]:
    """Say in words how the file's job differs from this one."""
    yield from differences.of_surveys(Survey.from_row(creation.read_meta(connection, "survey")), job.survey)
    yield from differences.of_conditions(read_conditions(connection, path), job.conditions)
    models = connection.execute("SELECT model FROM models ORDER BY position")
    yield from differences.of_models([Model.from_row(row) for (row,) in models], job.models)
    for what, wanted, count in (
        ("agent", job.agents, plan.shape.agent),
        ("scenario", job.scenarios, plan.shape.scenario),
    ):
        rows = connection.execute(
            f"SELECT fields FROM {what}s ORDER BY position LIMIT {min(count, differences.ROWS_COMPARED)}"
        )
        yield from differences.of_lists(what, (fields.encode() for (fields,) in rows), count, wanted)
