"""Whether the plan of a run file, its agents' settings and its budgets are as they were written.

Does not cover: checksums of rows (row_check).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.contents import damaged, decoding
from headrace.store.live_file import LiveFile
from headrace.store.run_file.checksums import CHECK, CheckedPart, has_part, part_checksum, plan_checksum
from headrace.store.run_file.run_schema import WITHOUT_CHECKSUMS

_IN_WORDS = {
    CheckedPart.AGENT_SETTINGS: "its agents' codebooks and templates are not as they were written",
    CheckedPart.BUDGETS: "its budgets are not as they were written",
}


def has_checked_rows(connection: apsw.Connection) -> bool:
    return connection.execute("PRAGMA user_version").get != WITHOUT_CHECKSUMS


def check_plan(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan does not have its checksum; files of an older Headrace have none."""
    if not has_checked_rows(connection):
        return
    with decoding(path, "its plan"):
        if _written(connection, CHECK) != plan_checksum(connection):
            raise damaged(path, "its survey, models or plan are not as they were written")
        for part in CheckedPart:
            written = _written(connection, part)
            if written is not None and written != part_checksum(connection, part):
                raise damaged(path, _IN_WORDS[part])


def unchecked_parts(connection: apsw.Connection) -> int:
    """How many parts a file holds without a checksum: an older Headrace wrote them."""
    return sum(has_part(connection, part) and _written(connection, part) is None for part in CheckedPart)


def write_part_check(connection: apsw.Connection, part: CheckedPart) -> None:
    """Write a part's checksum, inside the transaction that writes the part."""
    checksum = part_checksum(connection, part)
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (part.value, checksum))


def add_part_checks(live: LiveFile) -> None:
    """Write the checksums that a file does not have yet; what it holds now counts as written."""
    missing = [part for part in CheckedPart if _written(live.connection, part) is None]
    if missing:
        with live.transaction():
            for part in missing:
                write_part_check(live.connection, part)


def _written(connection: apsw.Connection, key: str) -> object:
    return connection.execute("SELECT value FROM meta WHERE key = ?", (str(key),)).get
