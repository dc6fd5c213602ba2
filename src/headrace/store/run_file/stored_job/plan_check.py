"""Whether the plan of a run file, its agents' settings and its budgets are as they were written.

Does not cover: checksums of rows (row_check), or what is done about changed budgets (kept_budgets).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.contents import damaged, decoding
from headrace.store.live_file import LiveFile
from headrace.store.run_file.checksums import (
    CHECK,
    CheckedPart,
    budgets_checksum,
    count_runs,
    has_part,
    part_checksum,
    plan_checksum,
    runs_at,
)
from headrace.store.run_file.run_schema import WITHOUT_CHECKSUMS


def has_checked_rows(connection: apsw.Connection) -> bool:
    return connection.execute("PRAGMA user_version").get != WITHOUT_CHECKSUMS


def check_plan(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file whose plan does not have its checksum; files of an older Headrace have none. Budgets do not count:
    answers can be read without them.
    """
    if not has_checked_rows(connection):
        return
    with decoding(path, "its plan"):
        if _written(connection, CHECK) != plan_checksum(connection):
            raise damaged(path, "its survey, models or plan are not as they were written")
        written = _written(connection, CheckedPart.AGENT_SETTINGS)
        if written is not None and written != part_checksum(connection, CheckedPart.AGENT_SETTINGS):
            raise damaged(path, "its agents' codebooks and templates are not as they were written")


def has_changed_budgets(connection: apsw.Connection) -> bool:
    """Whether the budgets do not have their checksum; false where they count as unchecked."""
    if _is_unchecked(connection, CheckedPart.BUDGETS):
        return False
    written = _written(connection, CheckedPart.BUDGETS)
    return not isinstance(written, int) or written != budgets_checksum(connection, runs_at(written))


def unchecked_parts(connection: apsw.Connection) -> int:
    """How many parts a file holds without a checksum: an older Headrace wrote them."""
    return sum(has_part(connection, part) and _is_unchecked(connection, part) for part in CheckedPart)


def _is_unchecked(connection: apsw.Connection, part: CheckedPart) -> bool:
    """Whether a part has no checksum, or one from before the latest run, which an older Headrace has conducted."""
    written = _written(connection, part)
    if part is CheckedPart.BUDGETS and isinstance(written, int):
        return 0 <= runs_at(written) < count_runs(connection)
    return written is None


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
