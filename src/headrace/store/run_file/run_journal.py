"""The journal of a run: it writes row batches and the answers of interviews in flight, one transaction a group.

One thread at a time. Does not cover: when a group is written (interviews.run), or reading (reader).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain

import apsw

from headrace.errors import RunFileBusy
from headrace.expressions import ColumnKind
from headrace.limits import Keep
from headrace.memory.governed import GovernedMemory
from headrace.plan.bitmap import Bitmap
from headrace.steady_clock import SteadyClock
from headrace.store.history.stored_history import IDLE_NOTED_EVERY_S, NOTED_EVERY_S, HistoryWriter, stored_bytes
from headrace.store.live_file import LiveFile
from headrace.store.run_file.checksums import CHECK, CheckedPart, counters_checksum, record_checksum
from headrace.store.run_file.column_kinds import KINDS_OF_TYPE, kinds_to_bits
from headrace.store.run_file.details import RunOutcome, read_counters
from headrace.store.run_file.keeping.stored_totals import TotalState, write_totals
from headrace.store.run_file.keeping.unkept_rows import UnkeptRows
from headrace.store.run_file.row_blocks import RowBlocks
from headrace.store.run_file.rows import ANSWER_COLUMNS, HEAD, RowBatch
from headrace.store.run_file.stored_job.plan_check import write_part_check
from headrace.survey.record import AnswerRecord, Usage, encode_record, without_texts
from headrace.survey.values import SqlValue

_MOST_ROWS_AT_ONCE = 16
_MOST_PARAMETERS = 30_000  # SQLite stops at 32,766


class Journal:
    """Writes to one run file. `stored` are the ordinals that are finished in it, brought up to date by every commit.

    `unkept` takes what finished interviews leave where the file keeps no rows; otherwise `blocks` follow the rows.
    """

    def __init__(
        self,
        live: LiveFile,
        questions: int,
        stored: Bitmap,
        pending: Iterable[int],
        keep: Keep,
        unkept: UnkeptRows | None,
        blocks: RowBlocks | None,
    ) -> None:
        self._live = live
        self._connection = live.connection
        self._stored = stored
        self._columns = min(questions, ANSWER_COLUMNS)
        self._keeps_texts = keep is Keep.EVERYTHING
        self._unkept = unkept
        self._blocks = blocks
        self._pending = set(pending)  # bounded by the window: interviews in flight with an answer on disk
        self._kinds_seen: list[set[type]] = [set() for _ in range(self._columns)]
        self._width = len(HEAD) + self._columns + 2
        self._totals: dict[str, float] = read_counters(live.connection, live.path)
        self._interviews = _Insert("interviews", self._width)
        self._details = _Insert("details", 2)
        self._note: RunNote | None = None

    def begin_run(self, reused: int) -> RunNote:
        """Write the entry of a run of this file that begins."""
        self._note = RunNote(self._live, reused, int(self._totals["done"]))
        return self._note

    def note_memory(self, memory: GovernedMemory) -> None:
        """Keep a reading for the file's history; called on the run loop."""
        if self._note is not None:
            self._note.history.note(memory.used_bytes, memory.budget_bytes, memory.pressure)

    @property
    def is_note_due(self) -> bool:
        """Whether the run has committed nothing for a while."""
        return self._note is not None and self._note.is_due

    def note_idle_run(self) -> None:
        """Note that a run without rows to commit goes on. A full disk is met again by its next row, and said then."""
        with suppress(apsw.FullError, apsw.IOError):
            self.commit((), ())

    def commit(
        self,
        batches: Sequence[RowBatch],
        records: Iterable[tuple[int, AnswerRecord]],
        spent: Sequence[Usage] = (),
        aggregate: Callable[[], Iterable[TotalState]] | None = None,
    ) -> None:
        """Write the rows of `batches` and the answers of interviews still in flight; add `spent`, the usage of calls
        that no row counts, to the counters. `aggregate` adds the rows to the totals and gives the states that changed.
        All of it is durable when this returns.
        """
        ordinals = list(chain.from_iterable([batch.ordinals for batch in batches]))
        with self._live.transaction():
            self._write_records(records)
            replaced = [ordinal for ordinal in ordinals if ordinal in self._stored]
            if ordinals:
                self._forget_earlier(ordinals, replaced)
                if self._unkept is None:
                    self._write_rows(batches, ordinals)
                    if self._blocks is not None:
                        self._blocks.write(ordinals)
                else:
                    self._unkept.write(batches, replaced)
            if aggregate is not None:
                write_totals(self._connection, aggregate())
            totals = self._write_totals(_counted(batches, spent, len(replaced)))
            if self._note is not None:
                self._note.still_running(int(totals["done"]))
        self._totals = totals
        self._stored.update(ordinals)
        if self._blocks is not None:
            self._blocks.committed()

    def _write_rows(self, batches: Sequence[RowBatch], ordinals: list[int]) -> None:
        values = list(chain.from_iterable([batch.values for batch in batches]))
        details = chain.from_iterable([batch.details for batch in batches])
        self._interviews.write(self._connection, values)
        self._details.write(self._connection, list(chain.from_iterable(zip(ordinals, details, strict=True))))
        failures = [failure for batch in batches for failure in batch.failures]
        if failures:
            self._connection.executemany("INSERT INTO failures VALUES(?, ?, ?, ?)", failures)
        self._note_kinds(values)

    def _write_records(self, records: Iterable[tuple[int, AnswerRecord]]) -> None:
        encoded = [(ordinal, record.question, self._encoded(record)) for ordinal, record in records]
        if encoded:
            checked = [(*kept, record_checksum(*kept)) for kept in encoded]
            self._connection.executemany("INSERT OR REPLACE INTO pending VALUES(?, ?, ?, ?)", checked)
            self._pending.update(ordinal for ordinal, _, _ in encoded)

    def _encoded(self, record: AnswerRecord) -> bytes:
        return encode_record(record if self._keeps_texts else without_texts(record))

    def _forget_earlier(self, ordinals: list[int], replaced: list[int]) -> None:
        """Delete what these rows replace: the answers in flight, and the failures of an earlier attempt."""
        if self._pending:
            finished = self._pending.intersection(ordinals)
            self._connection.executemany("DELETE FROM pending WHERE ordinal = ?", [(ordinal,) for ordinal in finished])
            self._pending -= finished
        if replaced:
            self._connection.executemany("DELETE FROM failures WHERE ordinal = ?", [(old,) for old in replaced])

    def _note_kinds(self, values: list[SqlValue]) -> None:
        """Write which kinds of values each answer column holds: SQL filters are exact only where that is known."""
        for position, seen in enumerate(self._kinds_seen):
            types = set(map(type, values[len(HEAD) + position :: self._width]))
            if types <= seen:
                continue
            seen |= types
            kinds = frozenset[ColumnKind]().union(*(KINDS_OF_TYPE[kind] for kind in seen))
            self._connection.execute(
                "UPDATE questions SET kinds = kinds | ? WHERE position = ?", (kinds_to_bits(kinds), position)
            )

    def _write_totals(self, added: dict[str, float]) -> dict[str, float]:
        """Write the new totals of the counters and return them; they are true once the transaction is committed."""
        totals = {**self._totals, **{name: self._totals[name] + value for name, value in added.items() if value}}
        totals[CHECK] = counters_checksum(totals)
        changed = [(value, name) for name, value in totals.items() if value != self._totals.get(name)]
        self._connection.executemany("UPDATE counters SET value = ? WHERE name = ?", changed)
        return totals


def _counted(batches: Sequence[RowBatch], spent: Sequence[Usage], replaced: int) -> dict[str, float]:
    """What a group adds to the counters. Only failed interviews are ever conducted again."""
    usages = [*spent, *(batch.usage for batch in batches)]
    added: dict[str, float] = {
        "done": sum(map(len, batches)) - replaced,
        "failed": sum([batch.failed for batch in batches]) - replaced,
    }
    return added | {name: sum([getattr(usage, name) for usage in usages]) for name in Usage.__struct_fields__}


class _Insert:
    """Inserts many rows with one statement. apsw releases the GIL for every statement, and taking it back from a busy
    event loop is most of what an insert costs.
    """

    def __init__(self, table: str, columns: int) -> None:
        self._columns = columns
        at_once = max(1, min(_MOST_ROWS_AT_ONCE, _MOST_PARAMETERS // columns))
        places = f"({', '.join('?' * columns)})"
        self._statements = [
            f"INSERT OR REPLACE INTO {table} VALUES {', '.join([places] * rows)}" for rows in range(at_once + 1)
        ]

    def write(self, connection: apsw.Connection, values: list[SqlValue]) -> None:
        """Insert whole rows, whose values stand one after the other."""
        step = (len(self._statements) - 1) * self._columns
        for first in range(0, len(values), step):
            some = values[first : first + step]
            connection.execute(self._statements[len(some) // self._columns], some)


class RunNote:
    """The entry of one run in the table `runs`: its start and end, highest memory, endpoints' statistics.

    It is on disk when it is made. The end and the memory history move with the journal's commits, at most once a
    second: after a kill the file says until when the run went on, and how much memory it took.
    """

    def __init__(self, live: LiveFile, reused: int, done: int) -> None:
        self._live = live
        self._connection = live.connection
        self._clock = SteadyClock.from_wall()
        self._noted_at = self._clock.now()
        with live.transaction():
            self._connection.execute("INSERT INTO runs(started_at, reused) VALUES(?, ?)", (self._noted_at, reused))
            self._number = self._connection.last_insert_rowid()
            write_part_check(self._connection, CheckedPart.BUDGETS)  # with this run counted
            self.history = HistoryWriter(self._connection, self._number)
        self._done = done

    @property
    def is_due(self) -> bool:
        return self._clock.now() - self._noted_at >= IDLE_NOTED_EVERY_S

    def still_running(self, done: int) -> None:
        """Move the end to now, inside a transaction of the journal; `done` is how many results the file has."""
        now = self._clock.now()
        self._done = done
        if now - self._noted_at >= NOTED_EVERY_S:
            self._noted_at = now
            self._connection.execute("UPDATE runs SET ended_at = ? WHERE number = ?", (now, self._number))
            self._write_history(now)

    def ended(self, peak_bytes: int, outcome: RunOutcome, endpoints: str) -> None:
        """Note the end. On a full disk, or in a file that another process has taken over, the note is lost and nothing
        else: the run's own error must stand.
        """
        with suppress(apsw.FullError, apsw.IOError, RunFileBusy), self._live.transaction():
            now = self._clock.now()
            self._write_history(now)
            self._connection.execute(
                "UPDATE runs SET ended_at = ?, peak_memory_bytes = ?, outcome = ?, endpoints = ? WHERE number = ?",
                (now, peak_bytes, outcome.value, endpoints, self._number),
            )

    def _write_history(self, now: float) -> None:
        for sql, bindings in self.history.writes(now, self._done, stored_bytes(self._connection)):
            self._connection.execute(sql, bindings)
