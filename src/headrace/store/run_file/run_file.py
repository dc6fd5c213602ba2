"""RunFile: a run file opened to be written, from `open` to `close`.

Covers: making it or checking it against the job, and what a run reads from it. Does not cover: how a stored plan grows
(stored_plan), which interviews are finished (finished), writing rows (run_journal), reading for results (reader).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import apsw
from msgspec import structs

from headrace.limits import Budgets, Keep, RunOptions
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.plan.product import Plan
from headrace.store.contents import decoding, one_value
from headrace.store.history.stored_history import add_history, has_history
from headrace.store.live_file import LiveFile, make_where_missing, opening
from headrace.store.run_file.details import read_counters, stored_detail
from headrace.store.run_file.finished import check_record, count_failed, read_finished, read_pending
from headrace.store.run_file.header import read_dictionary
from headrace.store.run_file.keeping.finished_bits import FinishedBits
from headrace.store.run_file.keeping.stored_keep import Keeping, WantedKeeping, read_keeping
from headrace.store.run_file.keeping.stored_totals import TotalState, read_totals
from headrace.store.run_file.keeping.unkept_rows import UnkeptRows, failed_by_bits, kept_detail
from headrace.store.run_file.removal import set_aside
from headrace.store.run_file.row_blocks import RowBlocks
from headrace.store.run_file.row_check import warn_of_damage
from headrace.store.run_file.rows import DetailPacker
from headrace.store.run_file.run_journal import Journal
from headrace.store.run_file.run_schema import WITHOUT_CHECKSUMS, add_checksums, has_embedded_files
from headrace.store.run_file.stored_job import creation
from headrace.store.run_file.stored_job.embedded_files import embed_files
from headrace.store.run_file.stored_job.kept_budgets import KeptBudgets, read_budgets, write_budgets
from headrace.store.run_file.stored_job.kept_models import changed_models, write_models
from headrace.store.run_file.stored_job.moved_files import follow_moved_files
from headrace.store.run_file.stored_job.plan_check import add_part_checks
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.store.run_file.stored_job.stored_lists import StoredLists
from headrace.store.run_file.stored_job.stored_plan import check_fits, find_growth
from headrace.store.run_file.stored_job.stored_where import read_left_out
from headrace.survey.record import OUTSIDE_CAUSES, AnswerRecord, AnswerState, Cause, Usage

_AS_KEPT = WantedKeeping()


@dataclass(slots=True, kw_only=True)
class RunFile:
    """An open run file. `done` are the ordinals that this run does not conduct again, `stored` all that have a row,
    `left_out` those that the job's conditions leave out.

    `keeping` is what it keeps of its interviews, `totals` the encoded states of its totals as the last run left them.
    `budgets` are those of this run: the given ones, and otherwise those that the file keeps.
    """

    path: Path
    plan: Plan
    keeping: Keeping
    totals: list[TotalState]
    budgets: Budgets
    live: LiveFile
    dictionary: bytes
    done: Bitmap
    stored: Bitmap
    left_out: Bitmap | None
    journal: Journal
    last_run_at: float | None
    retry_failed: bool
    questions: int
    _bits: FinishedBits | None  # where rows are not kept
    _packer: DetailPacker
    _lists: StoredLists  # reads while the journal's thread writes
    _pending: dict[int, list[AnswerRecord]]

    @classmethod
    def open(
        cls,
        path: Path,
        job: Job,
        options: RunOptions,
        pause: Callable[[], None],
        budget_bytes: int | None = None,
        wanted: WantedKeeping = _AS_KEPT,
    ) -> RunFile:
        """Lock the file; make it, or check it against the job and let it grow; read which interviews are finished.

        A plan is refused before anything is made where keeping track of its interviews would take most of the memory
        budget.
        """
        if budget_bytes is not None:
            plan, leaves_out = Plan.of(job.shape(options.n or 1)), bool(job.conditions)
            check_fits(plan, path, budget_bytes, leaves_out=leaves_out, sample=options.sample)
        with opening(path) as lock:
            if options.fresh:
                set_aside(path)
            # With its budgets: a kill before the first interview must not leave a file that `resume` runs without.
            plan, budgets = Plan.of(job.shape(options.n or 1)), options.budgets(Budgets())
            keeping = wanted.of_new_file()
            was_there = path.exists()
            make_where_missing(path, lambda empty: creation.write_job(empty, job, plan, budgets, keeping, pause))
            # A file that was just made is the job's: counting its lists again would delay a long one's first result.
            growth = find_growth(path, job, options, budget_bytes, wanted) if was_there else None
            live = LiveFile(path, lock, _bring_up_to_date)
            try:
                if growth is not None:
                    growth.carry_out(live, job, pause)
                if was_there:
                    follow_moved_files(live.connection, job, pause)
                if options.embed:
                    embed_files(live, job, pause)
                return cls._load(live, len(job.survey), options)
            except BaseException:
                live.close()
                raise

    @classmethod
    def _load(cls, live: LiveFile, questions: int, options: RunOptions) -> RunFile:
        path, connection = live.path, live.connection
        plan = read_plan(connection, path)
        keeping = read_keeping(connection, path)
        with decoding(path, "what is finished"):
            held = (FinishedBits if keeping.keep is Keep.NOTHING else RowBlocks).load(connection, path, len(plan))
            stored, done = read_finished(connection, path, held, len(plan), retry_failed=options.retry_failed)
            warn_of_damage(connection, path)
        bits, blocks = (held, None) if isinstance(held, FinishedBits) else (None, held)
        if blocks is not None and blocks.is_table_due:
            with live.transaction():
                blocks.write_anew()
            blocks.committed()
        left_out = read_left_out(connection, path, plan)
        with decoding(path, "the answers of interviews in flight"):
            pending = read_pending(connection, plan, questions)
            dictionary = read_dictionary(connection)
            last_run_at = one_value(connection, float | None, "SELECT max(started_at) FROM runs")
        packer = DetailPacker(dictionary)
        unkept = None if bits is None else UnkeptRows(connection, bits, packer)
        return cls(
            path=path,
            plan=plan,
            keeping=keeping,
            totals=read_totals(connection, path) if keeping.totals is not None else [],
            budgets=read_budgets(connection).of_run(options, path),
            live=live,
            dictionary=dictionary,
            done=done,
            stored=stored,
            left_out=left_out,
            journal=Journal(live, questions, stored, pending, keeping.keep, unkept, blocks),
            questions=questions,
            last_run_at=last_run_at,
            retry_failed=options.retry_failed,
            _bits=bits,
            _packer=packer,
            _lists=StoredLists(path),
            _pending=pending,
        )

    @property
    def connection(self) -> apsw.Connection:
        return self.live.connection

    @property
    def has_embedded_files(self) -> bool:
        """Whether it holds contents of files in prompts."""
        return has_embedded_files(self._lists.connection)

    def rows(self, table: str, positions: list[int]) -> dict[int, bytes]:
        """The rows of agents or scenarios at these positions, as JSON."""
        return self._lists.rows(table, positions)

    def usage_before(self) -> tuple[Usage, int]:
        """The usage of all earlier runs of this file, and for how many interviews."""
        counted = read_counters(self.connection, self.path)
        return Usage(*(counted[name] for name in Usage.__struct_fields__)), int(counted["done"])

    def failed_among(self, finished: Bitmap, stop: int) -> int:
        """How many of these interviews below `stop` have failed, and are not asked again by this run."""
        if self._bits is not None:
            failed = failed_by_bits(self._bits)
            return failed.count_below(stop) - _outside(failed, finished).count_below(stop)
        return count_failed(self.connection, finished, stop)

    def failed_to_ask_again(self, causes: Collection[Cause]) -> Bitmap:
        """The interviews that have failed for one of these causes and that this run would not conduct again. From now
        on it asks those again, too, whose answer was not valid.

        Those that are committed and not in `done` yet are left out: the run has not counted them.
        """
        self.retry_failed = True
        connection = self._lists.connection
        if self._bits is not None:  # which the journal's thread may be changing just now
            stored = FinishedBits.load(connection, self.path, len(self.plan))
            failed = failed_by_bits(stored, causes)
        else:
            failed = Bitmap(len(self.plan))
            wanted = f"SELECT DISTINCT ordinal FROM failures WHERE cause IN ({', '.join('?' * len(causes))})"
            failed.update(ordinal for (ordinal,) in connection.execute(wanted, [cause.value for cause in causes]))
        failed.remove(_outside(failed, self.done))
        return failed

    def keep_given(self, job: Job) -> None:
        """Put this run's budgets, and its models' settings, in force for the runs after it."""
        models = changed_models(self.connection, job)
        if models or self._has_other_budgets:
            with self.live.transaction():  # one for both: a limit of cost is worth what its prices are
                write_budgets(self.connection, self.budgets)
                write_models(self.connection, models)

    def keep_concurrency(self, concurrency: int) -> None:
        self.budgets = structs.replace(self.budgets, concurrency=concurrency)
        if self._has_other_budgets:
            with self.live.transaction():
                write_budgets(self.connection, self.budgets)

    @property
    def _has_other_budgets(self) -> bool:
        """Whether this run's budgets are not those that the file keeps."""
        return read_budgets(self.connection) != KeptBudgets(self.budgets)

    def has_answers(self, ordinal: int) -> bool:
        return ordinal in self._pending or ordinal in self.stored

    def answers_kept(self, ordinal: int) -> tuple[list[AnswerRecord], Usage]:
        """The answers that an unfinished or failed interview has on disk, and the usage of those not counted yet."""
        pending = self._pending.pop(ordinal, [])
        uncounted = Usage()
        for record in pending:
            uncounted.add(record)
        finished: list[AnswerRecord] = []
        if ordinal in self.stored:
            finished = self._stored_records(ordinal)
            with decoding(self.path, f"the detail of interview {ordinal}"):
                for record in finished:
                    check_record(record, self.questions)
        # What is pending came after what was finished, so it stands where both have a record.
        kept = {record.question: record for record in (*finished, *pending) if self._is_settled(record)}
        return list(kept.values()), uncounted

    def _stored_records(self, ordinal: int) -> list[AnswerRecord]:
        """The records of a failed interview; none where a file that keeps no rows has not kept them."""
        connection = self._lists.connection
        if self._bits is None:
            return stored_detail(connection, self._packer, ordinal, self.path).records
        detail = kept_detail(connection, self._packer, ordinal, self.path)
        return [] if detail is None else detail.records

    def _is_settled(self, record: AnswerRecord) -> bool:
        """Whether a question is not asked again: it has an answer, or a failure that this run does not retry."""
        if record.failure is None:
            return record.state is AnswerState.ANSWERED
        return not self.retry_failed and record.failure.cause not in OUTSIDE_CAUSES

    def close(self) -> None:
        """Leave one plain file behind, unless a reader is in the way, and release its lock. Raises RunFileGone where
        the file was moved, removed or replaced.
        """
        self._lists.close()
        self.live.close()


def _outside(some: Bitmap, others: Bitmap) -> Bitmap:
    """Those of a set that are not in another."""
    rest = some.copy()
    rest.remove(others)
    return rest


def _bring_up_to_date(live: LiveFile) -> None:
    """Give a file that an older Headrace wrote the checksums that it lacks, and the table for its memory history. Its
    rows stay unchecked.
    """
    if live.connection.execute("PRAGMA user_version").get == WITHOUT_CHECKSUMS:
        with live.transaction():
            add_checksums(live.connection)
            creation.write_counters(live.connection, read_counters(live.connection, live.path))
            creation.write_plan_check(live.connection)
    add_part_checks(live)
    if not has_history(live.connection):
        with live.transaction():
            add_history(live.connection)
