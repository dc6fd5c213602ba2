"""A run file opened to be written: locked, checked against the job, made or grown where needed.

Covers: the life of the file from `open` to `close`, and what in it is finished. Does not cover: reading it for results
(store.run_file.reader).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
from msgspec import structs

from headrace.errors import OptionError, RunFileBusy, RunFileError, spelled
from headrace.limits import Budgets, RunOptions
from headrace.plan import differences
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.plan.product import Plan
from headrace.store.claim import refuse_live_writer
from headrace.store.connections import open_reader, open_writer, roll_back
from headrace.store.contents import damaged, decoding, one_value, typed_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.live_file import LiveFile, seal
from headrace.store.lock import WriterLock
from headrace.store.making import made_whole
from headrace.store.private import make_directory
from headrace.store.run_file import creation
from headrace.store.run_file.checksums import record_checksum
from headrace.store.run_file.details import read_counters, stored_detail
from headrace.store.run_file.header import RunHeader, read_dictionary
from headrace.store.run_file.interview_rows import check_none_is_missing
from headrace.store.run_file.kept_budgets import read_budgets, write_budgets
from headrace.store.run_file.row_check import warn_of_damage
from headrace.store.run_file.rows import DetailPacker
from headrace.store.run_file.run_journal import Journal
from headrace.store.run_file.run_schema import WITHOUT_CHECKSUMS, add_checksums
from headrace.store.run_file.stored_lists import StoredLists
from headrace.store.run_file.stored_plan import check_fits, check_lists, read_plan
from headrace.survey.model import Model
from headrace.survey.record import OUTSIDE_CAUSES, AnswerRecord, AnswerState, Usage, decode_record
from headrace.survey.survey import Survey


@dataclass(slots=True, kw_only=True)
class RunFile:
    """An open run file. `done` are the ordinals not to be run again, `stored` all that have a row.

    `budgets` are those of this run: what it was given, and otherwise what the file keeps.
    """

    path: Path
    plan: Plan
    budgets: Budgets
    live: LiveFile
    dictionary: bytes
    done: Bitmap
    stored: Bitmap
    journal: Journal
    last_run_at: float | None
    retry_failed: bool
    questions: int
    _packer: DetailPacker
    _lists: StoredLists  # reads while the journal's thread writes
    _pending: dict[int, list[AnswerRecord]]

    @classmethod
    def open(
        cls, path: Path, job: Job, options: RunOptions, pause: Callable[[], None], budget_bytes: int | None = None
    ) -> RunFile:
        """Lock the file, make or check or grow it, and find out what is finished. A plan that could not be kept track
        of within the memory budget is refused before anything is made.
        """
        if budget_bytes is not None:
            check_fits(Plan.of(job.shape(options.n or 1)), path, budget_bytes)
        lock = _locked(path)
        try:
            with translated_errors(path):
                return cls._open_locked(path, job, options, pause, budget_bytes, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _open_locked(
        cls,
        path: Path,
        job: Job,
        options: RunOptions,
        pause: Callable[[], None],
        budget_bytes: int | None,
        lock: WriterLock,
    ) -> RunFile:
        roll_back(path)
        if options.fresh:
            set_aside(path)
        if not path.exists() or path.stat().st_size == 0:
            plan = Plan.of(job.shape(options.n or 1))
            with made_whole(path) as empty:
                # With its budgets: a kill before the first interview must not leave a file that `resume` runs without.
                creation.write_job(empty, job, plan, options.budgets(Budgets()), pause)
        growth = _growth(path, job, options, budget_bytes)
        live = LiveFile(path, lock)
        try:
            if live.connection.pragma("user_version") == WITHOUT_CHECKSUMS:
                _upgrade(live)
            if growth is not None:
                growth.carry_out(live.connection, job, pause)
            return cls._load(live, len(job.survey), options)
        except BaseException:
            live.close()
            raise

    @classmethod
    def _load(cls, live: LiveFile, questions: int, options: RunOptions) -> RunFile:
        path, connection = live.path, live.connection
        plan = read_plan(connection, path)
        with decoding(path, "what is finished"):
            stored, done = _finished(connection, path, plan, retry_failed=options.retry_failed)
            warn_of_damage(connection, path)
        with decoding(path, "the answers of interviews in flight"):
            pending = _pending_records(connection, plan, questions)
            dictionary = read_dictionary(connection)
            last_run_at = one_value(connection, float | None, "SELECT max(started_at) FROM runs")
        return cls(
            path=path,
            plan=plan,
            budgets=options.budgets(read_budgets(connection, path)),
            live=live,
            dictionary=dictionary,
            done=done,
            stored=stored,
            journal=Journal(live, questions, stored, pending),
            questions=questions,
            last_run_at=last_run_at,
            retry_failed=options.retry_failed,
            _packer=DetailPacker(dictionary),
            _lists=StoredLists(path),
            _pending=pending,
        )

    @property
    def connection(self) -> apsw.Connection:
        return self.live.connection

    def rows(self, table: str, positions: list[int]) -> dict[int, bytes]:
        """The rows of agents or scenarios at these positions, as JSON."""
        return self._lists.rows(table, positions)

    def usage_before(self) -> tuple[Usage, int]:
        """What all runs of this file have taken so far, and for how many interviews."""
        counted = read_counters(self.connection, self.path)
        return Usage(*(counted[name] for name in Usage.__struct_fields__)), int(counted["done"])

    def keep_budgets(self) -> None:
        """Put this run's budgets in force for the runs after it."""
        if read_budgets(self.connection, self.path) != self.budgets:
            with self.live.transaction():
                write_budgets(self.connection, self.budgets)

    def keep_concurrency(self, concurrency: int) -> None:
        self.budgets = structs.replace(self.budgets, concurrency=concurrency)
        self.keep_budgets()

    def has_answers(self, ordinal: int) -> bool:
        return ordinal in self._pending or ordinal in self.stored

    def answers_kept(self, ordinal: int) -> tuple[list[AnswerRecord], Usage]:
        """The answers that an unfinished or failed interview has on disk, and what the uncounted of them cost."""
        pending = self._pending.pop(ordinal, [])
        uncounted = Usage()
        for record in pending:
            uncounted.add(record)
        sealed: list[AnswerRecord] = []
        if ordinal in self.stored:
            sealed = stored_detail(self._lists.connection, self._packer, ordinal, self.path).records
            with decoding(self.path, f"the detail of interview {ordinal}"):
                for record in sealed:
                    _check_record(record, self.questions)
        # What is pending came after what was sealed, so it stands where both have a record.
        kept = {record.question: record for record in (*sealed, *pending) if self._is_settled(record)}
        return list(kept.values()), uncounted

    def _is_settled(self, record: AnswerRecord) -> bool:
        """Whether a record stands: an answer does, and so does a failure that is not to be tried again."""
        if record.failure is None:
            return record.state is AnswerState.ANSWERED
        return not self.retry_failed and record.failure.cause not in OUTSIDE_CAUSES

    def close(self) -> None:
        """Leave one plain file behind, where no reader is in the way."""
        self._lists.close()
        self.live.close()


def set_aside(path: Path) -> Path | None:
    """Rename an earlier run file out of the way; never delete it."""
    if not path.exists():
        return None
    if path.stat().st_size:
        earlier = open_reader(path, needs_log=False)  # refuses to move what is not a run file
        try:
            refuse_live_writer(earlier, path)
        finally:
            earlier.close()
        _gather_into_one_file(path)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = next(p for p in _names_beside(path, stamp) if not p.exists())
    path.rename(kept)
    return kept


def _gather_into_one_file(path: Path) -> None:
    """Bring what a log beside the file still holds into it: one file is renamed at once, two could be torn apart."""
    connection = open_writer(path)
    try:
        with suppress(apsw.BusyError, apsw.LockedError):
            seal(connection)
    finally:
        connection.close()
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise RunFileBusy(f"{path} is being read.", path=path, fix="Close its readers, then start over.")


def _names_beside(path: Path, stamp: str) -> Iterator[Path]:
    yield path.with_name(f"{path.stem}.{stamp}{path.suffix}")
    number = 2
    while True:
        yield path.with_name(f"{path.stem}.{stamp}-{number}{path.suffix}")
        number += 1


def _locked(path: Path) -> WriterLock:
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "not a regular file"
        raise RunFileError(f"{path} is {what}.", path=path, fix="Give the path of a file.")
    try:
        make_directory(path.parent)
    except OSError as error:
        raise RunFileError(
            f"{path.parent} cannot be made: {error.strerror}.", path=path, fix="Use another path."
        ) from None
    return WriterLock(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    """How a stored plan is to grow: to `plan`, with longer lists where the stored ones ended at `lists_from`."""

    plan: Plan
    lists_from: Plan | None

    def carry_out(self, connection: apsw.Connection, job: Job, pause: Callable[[], None]) -> None:
        if self.lists_from is None:
            creation.write_boxes(connection, self.plan)
        else:
            creation.extend_lists(connection, job, self.lists_from, pause)
            creation.finish_plan(connection, job, self.plan)


def _growth(path: Path, job: Job, options: RunOptions, budget_bytes: int | None) -> _Growth | None:
    """What the file lacks of this job; refuses another job. It only reads, so that a refused file stays as it was."""
    connection = open_reader(path)
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
        return _Growth(plan=grown, lists_from=plan if is_longer else None) if grown != plan else None
    finally:
        connection.close()


def _differences(connection: apsw.Connection, job: Job, plan: Plan) -> Iterator[str]:
    """How the file's job is not this one, in words."""
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


def _upgrade(live: LiveFile) -> None:
    with live.transaction():
        add_checksums(live.connection)
        creation.write_counters(live.connection, read_counters(live.connection, live.path))
        creation.write_plan_check(live.connection)


def _finished(connection: apsw.Connection, path: Path, plan: Plan, *, retry_failed: bool) -> tuple[Bitmap, Bitmap]:
    """What has a row, and what of that is not to be run again."""
    check_none_is_missing(connection, path)
    stored = Bitmap(len(plan))
    first, last, count = next(iter(connection.execute("SELECT min(ordinal), max(ordinal), count(*) FROM interviews")))
    if count and (first < 0 or last >= len(plan)):
        raise damaged(path, f"interview {first if first < 0 else last} is none of its plan")
    if count and (first, last + 1) == (0, count):  # no holes: nothing to look for
        stored.fill(count)
    else:
        stored.update(ordinal for (ordinal,) in connection.execute("SELECT ordinal FROM interviews"))
    done = stored.copy()
    causes = [cause.value for cause in OUTSIDE_CAUSES]
    where = "" if retry_failed else f" WHERE cause IN ({', '.join('?' * len(causes))})"
    for (ordinal,) in connection.execute(
        f"SELECT DISTINCT ordinal FROM failures{where}", () if retry_failed else causes
    ):
        if ordinal not in range(len(plan)):
            raise damaged(path, f"a failure is of interview {ordinal}, which is none of its plan")
        done.discard(ordinal)
    return stored, done


def _check_record(record: AnswerRecord, questions: int) -> None:
    """Refuse a record that a run would go on with and that no run can have written."""
    value = record.value
    is_value = value is None or isinstance(value, (str, bytes, float)) or (type(value) is int and value < 2**63)
    if record.question >= questions or not is_value:
        raise ValueError(f"it has an answer to question {record.question} that is none of its survey")


def _pending_records(connection: apsw.Connection, plan: Plan, questions: int) -> dict[int, list[AnswerRecord]]:
    pending: dict[int, list[AnswerRecord]] = {}  # bounded by the window of the run that was cut short
    for ordinal, question, encoded, checksum in typed_rows(
        connection, tuple[int, int, bytes, int | None], "SELECT ordinal, question, record, checksum FROM pending"
    ):
        record = decode_record(encoded)
        _check_record(record, questions)
        is_checked = checksum is None or checksum == record_checksum(ordinal, question, encoded)
        if not is_checked or record.question != question or ordinal not in range(len(plan)):
            raise ValueError(f"that of interview {ordinal} to question {question} is not as it was written")
        pending.setdefault(ordinal, []).append(record)
    return pending
