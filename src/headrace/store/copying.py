"""A run file or engine file copied as one plain file: all of one moment, its log among it, also while it is written.

Does not cover: exports (results), which are for other programs.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.errors import OptionError, RunFileError
from headrace.store.agent_file import check_is_engine_file
from headrace.store.agent_schema import ENGINE_APPLICATION_ID
from headrace.store.connections import check_is_run_file, open_checked_reader
from headrace.store.disk_errors import translated_errors
from headrace.store.making import copy_into
from headrace.store.private import make_directory


def copy_file(path: Path, target: Path, *, without_log: bool = False) -> None:
    """`without_log` takes what there is of a file whose last rows were in a log that is lost."""
    if not path.is_file():
        raise RunFileError(f"There is no file at {path}.", path=path, fix="Check the path.")
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    connection = open_checked_reader(path, _check_is_ours, needs_log=not without_log)
    try:
        with translated_errors(path):
            make_directory(target.parent)
            copy_into(connection, target)
    finally:
        connection.close()


def _check_is_ours(connection: apsw.Connection, path: Path) -> None:
    try:
        is_engine_file = connection.pragma("application_id") == ENGINE_APPLICATION_ID
    except apsw.NotADBError:
        is_engine_file = False  # the check says what it is instead
    (check_is_engine_file if is_engine_file else check_is_run_file)(connection, path)
