"""Looking through a whole engine file. Covers: its pages, and whether everything that its runs keep can be read.

Its rows have no checksums: they count as unchecked. Does not cover: run files (store.run_file.run_verification).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.connections import open_checked_reader
from headrace.store.contents import UNREADABLE, raw_rows
from headrace.store.engine_file.engine_file import check_is_ours, is_engine_file
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.run_file.run_verification import Verification, check_pages, verify_run_file
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


def verify(path: Path) -> Verification:
    """Of a run file or an engine file; raises where it is neither, or cannot be read at all."""
    connection = open_checked_reader(path, check_is_ours)
    try:
        return (_verify_engine_file if is_engine_file(connection) else verify_run_file)(connection, path)
    finally:
        connection.close()


def _verify_engine_file(connection: apsw.Connection, path: Path) -> Verification:
    found = Verification(path)
    check_pages(connection, found)
    for kind, sql in _KEPT:
        found.attempt(kind, lambda kind=kind, sql=sql: _check_kept(connection, found, kind, sql))
    for kind, sql in _NAMED:
        found.attempt(kind, lambda kind=kind, sql=sql: _check_named(connection, found, kind, sql))
    found.attempt("runs", lambda: _check_states(connection, found))
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
