"""The table `surveys` of an engine file: which surveys the engine ran, where, and how far each is.

A survey's interviews are in a run file of its own; a row here names that file and the plan in it, so that the engine
can go on with it. Does not cover: run files (store.run_file), or going on (agents.engine.surveys).
"""

from __future__ import annotations

from enum import Enum

import msgspec

from headrace.limits import RunOptions
from headrace.priority import Priority
from headrace.store.contents import decoding
from headrace.store.engine_file.engine_values import Count, ValueReader, Write
from headrace.survey.values import SqlValue

MOST_SURVEYS_SHOWN = 100
_MOST_COMPLETE_KEPT = 1000
_COLUMNS = "path, plan, priority, options, state, done, total, error"


class SurveyState(Enum):
    """The state of a survey on disk. One that is running while no engine has the file was cut short by a kill. One that
    is opening, since its run file is being made or opened, is not on disk yet.
    """

    OPENING = "opening"
    RUNNING = "running"
    STOPPED = "stopped"
    COMPLETE = "complete"
    FAILED = "failed"


class SurveyOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the options that a survey was run with, those that its run file does not keep and that hold later too."""

    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    cache: bool = True
    retry_failed: bool = False
    stop_on_exception: bool = False

    @classmethod
    def of(cls, options: RunOptions) -> SurveyOptions:
        return cls(**{name: getattr(options, name) for name in cls.__struct_fields__})

    def run_options(self) -> RunOptions:
        return RunOptions(**msgspec.structs.asdict(self), progress_bar=False)


class SurveyRow(msgspec.Struct, frozen=True):
    """One survey as it is on disk. `done` and `total` are its interviews, as last noted."""

    path: str
    plan: str
    priority: Priority
    options: SurveyOptions
    state: SurveyState
    done: int
    total: int
    error: str


class StoredSurveys:
    """Reads the surveys of an engine."""

    def __init__(self, reader: ValueReader) -> None:
        self._reader = reader

    def latest(self) -> list[SurveyRow]:
        """The surveys begun last, oldest first: at most MOST_SURVEYS_SHOWN."""
        return self._rows("ORDER BY begun_at DESC LIMIT ?", (MOST_SURVEYS_SHOWN,))[::-1]

    def unfinished(self) -> list[SurveyRow]:
        """The surveys that are not complete, oldest first: as many as a program has begun."""
        return self._rows("WHERE state != 'complete' ORDER BY begun_at", ())

    def _rows(self, where: str, bindings: tuple[SqlValue, ...]) -> list[SurveyRow]:
        types = tuple[str, str, Priority, str, SurveyState, Count, Count, str]
        found = self._reader.rows(types, f"SELECT {_COLUMNS} FROM surveys {where}", bindings)
        with decoding(self._reader.path, "what it keeps of its surveys"):
            return [
                SurveyRow(
                    path, plan, level, msgspec.json.decode(options, type=SurveyOptions), state, done, total, error
                )
                for path, plan, level, options, state, done, total, error in found
            ]


class SurveyWrites:
    """Makes the statements that note surveys."""

    def begun(self, row: SurveyRow, at: float) -> list[Write]:
        """Note a survey that goes on from here. Of complete ones the latest are kept."""
        old = "SELECT path FROM surveys WHERE state = 'complete' ORDER BY begun_at DESC LIMIT -1 OFFSET ?"
        options = msgspec.json.encode(row.options).decode()
        values = (row.path, row.plan, int(row.priority), options, row.state.value, row.done, row.total, row.error, at)
        return [
            (f"INSERT OR REPLACE INTO surveys({_COLUMNS}, begun_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", values),
            (f"DELETE FROM surveys WHERE path IN ({old})", (_MOST_COMPLETE_KEPT,)),
        ]

    def went_on(self, path: str, state: SurveyState, done: int, total: int) -> list[Write]:
        sql = "UPDATE surveys SET state = ?, done = ?, total = ?, error = '' WHERE path = ?"
        return [(sql, (state.value, done, total, path))]

    def failed(self, path: str, error: str) -> list[Write]:
        return [("UPDATE surveys SET state = 'failed', error = ? WHERE path = ?", (error, path))]

    def engine_opened(self) -> list[Write]:
        """Note that those which a killed engine ran do not run now."""
        return [("UPDATE surveys SET state = 'stopped' WHERE state = 'running'", ())]
