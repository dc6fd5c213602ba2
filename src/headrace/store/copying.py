"""A run file or engine file copied as one plain file: all of one moment, its log among it, also while it is written.

Does not cover: exports (results), which are for other programs.
"""

from __future__ import annotations

from pathlib import Path

from headrace.errors import OptionError
from headrace.store.connections import open_checked_reader
from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_file import check_is_ours
from headrace.store.making import copy_into
from headrace.store.private import make_directory


def copy_file(path: Path, target: Path, *, without_log: bool = False) -> None:
    """`without_log` takes what there is of a file whose last rows were in a log that is lost."""
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    connection = open_checked_reader(path, check_is_ours, needs_log=not without_log)
    try:
        with translated_errors(path):
            make_directory(target.parent)
            copy_into(connection, target)
    finally:
        connection.close()
