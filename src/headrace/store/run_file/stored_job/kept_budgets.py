"""The budgets that a run file keeps: in force for every run of the file until a run gives another value.

They stand in `meta` as the user wrote them, one row each; a budget that was never given, or was lifted, has no row.
Does not cover: whether this user has confirmed them (interviews.permissions), or acting on them (interviews.spending).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.errors import OptionError, RunFileDamaged, spelled
from headrace.limits import Budgets
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.checksums import CheckedPart
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.stored_job.plan_check import write_part_check

_PREFIX = "budget."
_MOST_BYTES = 100


def kept_budgets(path: Path) -> Budgets:
    """Read the budgets of the run file at `path`; the defaults where there is no file yet."""
    if not path.is_file() or path.stat().st_size == 0:
        return Budgets()
    connection = open_run_file(path)
    try:
        with translated_errors(path):
            return read_budgets(connection, path)
    finally:
        connection.close()


def read_budgets(connection: apsw.Connection, path: Path) -> Budgets:
    """Read the budgets, each checked like an option that a user gives: the file may come from elsewhere."""
    keys = {f"{_PREFIX}{name}": name for name in Budgets.__struct_fields__}
    places = ", ".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT key, CASE WHEN octet_length(value) > {_MOST_BYTES} THEN 'too long' ELSE value END FROM meta"
        f" WHERE key IN ({places})",
        tuple(keys),
    )
    try:
        return Budgets(**{keys[key]: value for key, value in rows})
    except OptionError as error:
        raise RunFileDamaged(
            f"{path} keeps a budget that makes no sense: {error.message}",
            path=path,
            fix=spelled("Start over with {fresh}.", fresh=True),
        ) from None


def write_budgets(connection: apsw.Connection, budgets: Budgets) -> None:
    """Write the budgets and their checksum, inside the caller's transaction."""
    for name in Budgets.__struct_fields__:
        key, value = f"{_PREFIX}{name}", getattr(budgets, name)
        if value is None:
            connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
    write_part_check(connection, CheckedPart.BUDGETS)
