"""How the plan in a run file grows to that of a job: more iterations (`n`), or longer lists (`extend`).

Covers: comparing the two, refusing another job with what differs, and writing the additions. Ordinals that are in the
file never move. Does not cover: the rows of lists (creation), or the plan itself (stored_plan).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from headrace.errors import OptionError, spelled
from headrace.limits import RunOptions
from headrace.plan import differences
from headrace.plan.job import Job
from headrace.plan.product import Plan
from headrace.store.contents import decoding
from headrace.store.live_file import LiveFile
from headrace.store.run_file import creation
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.stored_plan import check_fits, check_lists, read_plan
from headrace.survey.model import Model
from headrace.survey.survey import Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The growth of a stored plan to `plan`. `lists_from` is the stored plan where its lists get longer."""

    plan: Plan
    lists_from: Plan | None

    def carry_out(self, live: LiveFile, job: Job, pause: Callable[[], None]) -> None:
        """Write what the job adds; `pause` is called between batches and may raise to stop."""

        def between_batches() -> None:
            live.keep_log_short()
            pause()

        if self.lists_from is None:
            creation.write_boxes(live.connection, self.plan)
        else:
            creation.extend_lists(live.connection, job, self.lists_from, between_batches)
            creation.finish_plan(live.connection, job, self.plan)


def find_growth(path: Path, job: Job, options: RunOptions, budget_bytes: int | None) -> Growth | None:
    """Compare a file with a job: the growth it needs, None where it needs none; another job is refused.

    It only reads, so that a refused file stays as it was.
    """
    connection = open_run_file(path)
    try:
        RunHeader.load(connection, path)  # refuses what cannot be read
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
                raise wanted.mismatch(found, path, _differences(connection, job, plan))
        grown = plan.grown(job.shape(n))
        if budget_bytes is not None:
            check_fits(grown, path, budget_bytes)
        return Growth(plan=grown, lists_from=plan if is_longer else None) if grown != plan else None
    finally:
        connection.close()


def _differences(connection: apsw.Connection, job: Job, plan: Plan) -> Iterator[str]:
    """Say in words how the file's job differs from this one."""
    yield from differences.of_surveys(Survey.from_row(creation.read_meta(connection, "survey")), job.survey)
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
