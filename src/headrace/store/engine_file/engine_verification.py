"""Looking through a whole engine file: its pages, and whether every value that its runs keep can be read.

Its rows have no checksums: they count as unchecked. Does not cover: run files (run_file.run_verification).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.contents import UNREADABLE, raw_rows
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.history.stored_history import check_history
from headrace.store.verification import Verification
from headrace.survey.values import decode_value

# What is kept as JSON: the kind of row, and its number with the value.
_KEPT = (
    ("runs", "SELECT id, arguments FROM runs"),
    ("runs", "SELECT id, result FROM runs WHERE result IS NOT NULL"),
    ("steps", "SELECT run, result FROM steps WHERE result IS NOT NULL"),
    ("checkpoints", "SELECT run, state FROM checkpoints WHERE state IS NOT NULL"),
    ("messages", "SELECT id, payload FROM messages"),
    ("blobs", "SELECT id, data FROM blobs"),
)
_NAMED = (
    ("steps", "SELECT run FROM steps WHERE blob IS NOT NULL AND blob NOT IN (SELECT id FROM blobs)"),
    ("checkpoints", "SELECT run FROM checkpoints WHERE blob IS NOT NULL AND blob NOT IN (SELECT id FROM blobs)"),
    ("runs", "SELECT id FROM runs WHERE result_blob IS NOT NULL AND result_blob NOT IN (SELECT id FROM blobs)"),
)


def verify_engine_file(connection: apsw.Connection, path: Path) -> Verification:
    found = Verification(path)
    found.check_pages(connection)
    for kind, sql in _KEPT:
        found.attempt(kind, lambda kind=kind, sql=sql: _check_kept(connection, found, kind, sql))
    for kind, sql in _NAMED:
        found.attempt(kind, lambda kind=kind, sql=sql: _check_named(connection, found, kind, sql))
    found.attempt("runs", lambda: _check_states(connection, found))
    found.attempt("memory history", lambda: check_history(connection, found))
    return found


def _check_kept(connection: apsw.Connection, found: Verification, kind: str, sql: str) -> None:
    for number, kept in raw_rows(connection, sql):
        found.rows += 1
        found.unchecked += 1
        try:
            decode_value(kept)
        except UNREADABLE:
            found.note(kind, "what it keeps cannot be read", number)


def _check_named(connection: apsw.Connection, found: Verification, kind: str, sql: str) -> None:
    for (number,) in raw_rows(connection, sql):
        found.note(kind, "what it keeps apart is missing", number)


def _check_states(connection: apsw.Connection, found: Verification) -> None:
    known = {state.value for state in RunState}
    for number, state in raw_rows(connection, "SELECT id, state FROM runs"):
        if state not in known:
            found.note("runs", "its state is none that there is", number)
