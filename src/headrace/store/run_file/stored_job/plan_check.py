"""Whether the plan of a run file is as it was written. Does not cover: checksums of rows (row_check)."""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.contents import damaged, decoding
from headrace.store.run_file.checksums import CHECK, plan_checksum
from headrace.store.run_file.run_schema import WITHOUT_CHECKSUMS


def has_checked_rows(connection: apsw.Connection) -> bool:
    return connection.execute("PRAGMA user_version").get != WITHOUT_CHECKSUMS


def _is_as_written(connection: apsw.Connection) -> bool:
    written = connection.execute("SELECT value FROM meta WHERE key = ?", (CHECK,)).get
    return written == plan_checksum(connection)


def check_plan(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan does not have its checksum; files of an older Headrace have none."""
    if not has_checked_rows(connection):
        return
    with decoding(path, "its plan"):
        if not _is_as_written(connection):
            raise damaged(path, "its survey, models or plan are not as they were written")
