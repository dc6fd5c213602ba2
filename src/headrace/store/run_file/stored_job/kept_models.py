"""The settings of models that a run file keeps beside what identifies them: prices, key variables, limits, time-outs.

They are in force for `headrace resume` and `Job.open` as they were given last, by a program, a command or a study. A
model that was read from a run file gives nothing. Models keep their positions: the plan is the same with other
settings. Does not cover: models of questions, which are part of the survey with all of their settings, or whether this
user has confirmed an address, a key or a price (interviews.permissions).
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from headrace.plan.job import Job
from headrace.store.contents import typed_rows
from headrace.store.run_file.stored_job.creation import write_plan_check
from headrace.survey.model import Model


class ModelRow(NamedTuple):
    """A model as a file holds it, behind its position."""

    position: int
    row: str


def changed_models(connection: apsw.Connection, job: Job) -> list[ModelRow]:
    """List the models that the job gives with other settings than the file of its plan keeps; as many as a person
    writes.
    """
    sql = "SELECT position, model FROM models WHERE position >= 0 AND position < ? ORDER BY position"
    stored = dict(typed_rows(connection, tuple[int, str], sql, (len(job.models),)))
    given = (ModelRow(at, model.to_row().decode()) for at, model in enumerate(job.models) if _is_given(job, model))
    return [each for each in given if each.row != stored[each.position]]


def write_models(connection: apsw.Connection, changed: list[ModelRow]) -> None:
    """Write these models, and the plan's checksum with them, inside the caller's transaction."""
    if changed:
        connection.executemany(
            "UPDATE models SET model = ? WHERE position = ?", ((each.row, each.position) for each in changed)
        )
        write_plan_check(connection)


def _is_given(job: Job, model: Model) -> bool:
    """Whether a model comes from elsewhere than the run file that the job was read from."""
    return job.origin is None or model.origin is None
