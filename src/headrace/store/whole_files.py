"""Run files and engine files as wholes: copying one, and looking through all of it for damage.

Does not cover: removing a run file (run_file.removal), or exports, which are for other programs (results).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.errors import OptionError
from headrace.store.connections import open_reader
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_schema import check_is_engine_file
from headrace.store.engine_file.engine_verification import verify_engine_file
from headrace.store.formats import ENGINE_FILE, has_format
from headrace.store.making import copy_into
from headrace.store.private import make_directory
from headrace.store.run_file.run_schema import check_is_run_file
from headrace.store.run_file.run_verification import verify_run_file
from headrace.store.verification import Verification


def copy_file(path: Path, target: Path, *, without_log: bool = False) -> None:
    """Copy a file, its log included, as it is at one moment, into one plain file; also while it is written.

    `without_log` copies what there is of a file whose last rows were in a log that is lost.
    """
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    connection = open_reader(path, _check_is_ours, needs_log=not without_log)
    try:
        with translated_errors(path):
            make_directory(target.parent)
            copy_into(connection, target)
    finally:
        connection.close()


def verify(path: Path) -> Verification:
    """Look through a whole file; raises where it is neither kind of file, or cannot be read at all."""
    connection = open_reader(path, _check_is_ours)
    try:
        return (verify_engine_file if has_format(connection, ENGINE_FILE) else verify_run_file)(connection, path)
    finally:
        connection.close()


def _check_is_ours(connection: apsw.Connection, path: Path) -> None:
    (check_is_engine_file if has_format(connection, ENGINE_FILE) else check_is_run_file)(connection, path)
