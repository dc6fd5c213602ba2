"""Writing a job into a run file: all of it at first, its additions later. Lists of any length go in batches.

The boxes of the plan are written last: a file without boxes was never finished and holds nothing to lose. Does not
cover: answers (run_journal).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import apsw
import msgspec
from msgspec.structs import asdict

from headrace.errors import PlanMismatch, spelled
from headrace.limits import Budgets
from headrace.plan.bitmap import Bitmap
from headrace.plan.identity import Identity
from headrace.plan.job import Job
from headrace.plan.product import Plan
from headrace.plan.sources.row_source import RowSource
from headrace.store.contents import one_value, typed_rows
from headrace.store.run_file.checksums import CHECK, CheckedPart, counters_checksum, fields_checksum, plan_checksum
from headrace.store.run_file.column_kinds import kinds_to_bits
from headrace.store.run_file.keeping.stored_keep import Keeping, write_keeping
from headrace.store.run_file.run_schema import create_tables, create_view
from headrace.store.run_file.stored_job.kept_budgets import write_budgets
from headrace.store.run_file.stored_job.plan_check import write_part_check
from headrace.store.run_file.stored_job.stored_where import left_out_of, write_where
from headrace.store.transactions import transaction
from headrace.survey.asked_question import asked_questions
from headrace.survey.people.agent_settings import SettingsTable
from headrace.survey.prompts import persona
from headrace.survey.record import AnswerRecord, AnswerState, Detail, Usage, encode_detail
from headrace.survey.templates import CannotRender
from headrace.survey.values import without_paths

_BATCH = 10_000
SETTINGS = "agent_settings"  # of the agents: codebooks and templates, each once
_MOST_DICTIONARY_BYTES = 64_000
COUNTERS = ("done", "failed", *Usage.__struct_fields__)


def write_job(
    connection: apsw.Connection,
    job: Job,
    plan: Plan,
    budgets: Budgets,
    keeping: Keeping,
    pause: Callable[[], None],
) -> None:
    """Fill an empty run file; `pause` is called between batches and may raise to stop."""
    with transaction(connection):
        create_tables(connection, len(job.survey), with_totals=not keeping.is_usual)
        connection.executemany(
            "INSERT INTO questions(position, name, kind, holds_bools) VALUES(?, ?, ?, ?)",
            ((p, q.question_name, q.kind, int(q.holds_bools)) for p, q in enumerate(job.survey.questions)),
        )
        connection.executemany(
            "INSERT INTO models VALUES(?, ?, ?, ?)",
            ((p, m.name, m.service_name, m.to_row().decode()) for p, m in enumerate(job.models)),
        )
        write_counters(connection, dict.fromkeys(COUNTERS, 0))
        _write_meta(connection, "survey", job.survey.to_row().decode())
        _write_meta(connection, "dictionary", detail_dictionary(job))
        _write_meta(connection, "created_at", time.time())
        write_budgets(connection, budgets)
        write_keeping(connection, keeping)
    for table, source in _lists(job):
        _append_rows(connection, table, source.rows(), 0, pause)
    finish_plan(connection, job, plan, left_out_of(job, plan))


def check_lists_begin_alike(connection: apsw.Connection, path: Path, job: Job, plan: Plan) -> None:
    """Refuse to extend a file with lists that do not begin with the stored rows."""
    if not job.agents.settings.begins_with(read_settings(connection)):
        raise PlanMismatch(
            path,
            expected={"agents": "another codebook or traits_presentation_template"},
            found={"agents": "those of the file"},
            fix=spelled("{extend} only appends: the agents of the file must be as they were.", extend=True),
        )
    for table, source, stored in _lists_stored(job, plan):
        _check_begins_alike(connection, path, table, source, stored)


def extend_lists(connection: apsw.Connection, job: Job, plan: Plan, pause: Callable[[], None]) -> None:
    """Append the rows that the job's lists have beyond those of the stored `plan`."""
    for table, source, stored in _lists_stored(job, plan):
        # An extension that was cut short left rows that no plan knows of.
        connection.execute(f"DELETE FROM {table} WHERE position >= ?", (stored,))
        _append_rows(connection, table, islice(source.rows(), stored, None), stored, pause)


def finish_plan(connection: apsw.Connection, job: Job, plan: Plan, left_out: Bitmap | None) -> None:
    """Replace the plan in one transaction: the file has the old plan before it and the new one after it."""
    with transaction(connection):
        write_identity(connection, job.identity())
        for owner, source in (("agent", job.agents.source), ("scenario", job.scenarios.source)):
            connection.executemany(
                "INSERT INTO fields VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET kinds = kinds | excluded.kinds",
                (
                    (owner, name, kinds_to_bits(kinds), at)
                    for at, (name, kinds) in enumerate(source.census.kinds.items())
                ),
            )
            _write_meta(connection, f"repaired.{owner}s", source.census.repaired)
        if settings := job.agents.settings.to_row():
            _write_meta(connection, SETTINGS, settings.decode())
        write_box_rows(connection, plan)
        write_where(connection, job, left_out)
        create_view(connection)
        write_plan_check(connection)


def write_boxes(connection: apsw.Connection, job: Job, plan: Plan, left_out: Bitmap | None) -> None:
    with transaction(connection):
        write_box_rows(connection, plan)
        write_where(connection, job, left_out)
        write_plan_check(connection)


def write_identity(connection: apsw.Connection, identity: Identity) -> None:
    for part, value in asdict(identity).items():
        if value:
            _write_meta(connection, f"identity.{part}", value)


def write_counters(connection: apsw.Connection, counters: dict[str, float]) -> None:
    checked = {**counters, CHECK: counters_checksum(counters)}
    connection.executemany("INSERT OR REPLACE INTO counters VALUES(?, ?)", checked.items())


def write_plan_check(connection: apsw.Connection) -> None:
    """Write the checksums of the plan and of its agents' settings, inside the transaction that writes these."""
    _write_meta(connection, CHECK, plan_checksum(connection))
    write_part_check(connection, CheckedPart.AGENT_SETTINGS)


def read_identity(connection: apsw.Connection) -> Identity:
    rows = typed_rows(connection, tuple[str, str], "SELECT key, value FROM meta WHERE key GLOB 'identity.*' LIMIT 10")
    return Identity(**{key.removeprefix("identity."): value for key, value in rows})


def read_meta(connection: apsw.Connection, key: str) -> str:
    return one_value(connection, str, "SELECT value FROM meta WHERE key = ?", (key,))


def read_settings(connection: apsw.Connection) -> SettingsTable:
    """The agents' codebooks and templates; files before them hold none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (SETTINGS,)).fetchone()
    return SettingsTable.from_row(msgspec.convert(row[0], str) if row else "")


def detail_dictionary(job: Job) -> bytes:
    """The texts that the details of this job's interviews have in common: details are compressed against them."""
    agent = next(iter(job.agents))
    asked = asked_questions(job.survey)
    records = [AnswerRecord(a.position, AnswerState.ANSWERED, prompt=a.specimen(), attempts=1) for a in asked]
    try:
        system = persona(agent.to_fields(), agent.settings, job.survey.wording)
    except CannotRender:  # that agent's interviews will say so
        system = ""
    encoded = encode_detail(Detail(system, time.time(), records))
    return bytes(encoded[-_MOST_DICTIONARY_BYTES:])


def _lists_stored(job: Job, plan: Plan) -> tuple[tuple[str, RowSource, int], ...]:
    stored = (plan.shape.agent, plan.shape.scenario)
    return tuple((table, source, count) for (table, source), count in zip(_lists(job), stored, strict=True))


def _lists(job: Job) -> tuple[tuple[str, RowSource], ...]:
    return ("agents", job.agents.source), ("scenarios", job.scenarios.source)


def _append_rows(
    connection: apsw.Connection, table: str, rows: Iterator[bytes], first: int, pause: Callable[[], None]
) -> None:
    numbered = enumerate(rows, first)
    for head in numbered:
        with transaction(connection):
            batch = (
                (position, row.decode(), fields_checksum(position, row))
                for position, row in chain([head], islice(numbered, _BATCH))
            )
            connection.executemany(f"INSERT INTO {table} VALUES(?, ?, ?)", batch)
        pause()


def _check_begins_alike(connection: apsw.Connection, path: Path, table: str, source: RowSource, stored: int) -> None:
    rows = source.rows()
    kept = connection.execute(f"SELECT fields FROM {table} WHERE position < ? ORDER BY position", (stored,))
    for position, (fields,) in enumerate(kept):
        if without_paths(next(rows, b"")) != without_paths(fields.encode()):
            what = f"{table[:-1]} {position}"
            raise PlanMismatch(
                path,
                expected={what: "another one, or none"},
                found={what: fields[:200]},
                fix=spelled(
                    "{extend} only appends: what the file holds must be the beginning of the new list.", extend=True
                ),
            )


def write_box_rows(connection: apsw.Connection, plan: Plan) -> None:
    connection.execute("DELETE FROM boxes")
    for number, box in enumerate(plan.boxes):
        corners = [",".join(map(str, corner)) for corner in box]
        connection.execute("INSERT INTO boxes VALUES(?, ?, ?)", (number, *corners))


def _write_meta(connection: apsw.Connection, key: str, value: str | float | bytes) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
