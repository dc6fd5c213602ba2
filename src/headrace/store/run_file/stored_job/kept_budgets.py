"""The budgets that a run file keeps: in force for every run of the file until a run gives another value.

They stand in `meta` as the user wrote them, one row each; a budget that was never given, or was lifted, has no row.
Budgets that have changed since they were written are shown, and not used: a run then has to be given its limits of cost
and tokens again, since a changed one may have lifted them. Its other budgets go back to the defaults.
Does not cover: whether this user has confirmed them (interviews.permissions), or acting on them (interviews.spending).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import apsw

from headrace.errors import OptionError, RunFileDamaged, Spelled, spelled
from headrace.limits import Budgets, RunOptions
from headrace.store.contents import UNREADABLE, short_message
from headrace.store.disk_errors import translated_errors
from headrace.store.run_file.checksums import CheckedPart
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.stored_job.plan_check import has_changed_budgets, write_part_check

LIMITS = ("max_cost", "max_tokens_total")
_PREFIX = "budget."
_MOST_BYTES = 100


class KeptBudgets(NamedTuple):
    """The budgets that a file holds. `trouble` says why they are not to be used; empty where they are."""

    budgets: Budgets
    trouble: str = ""

    def of_run(self, options: RunOptions, path: Path) -> Budgets:
        """The budgets of a run: the given ones, and otherwise those of the file. Where these are not to be used, a run
        is refused that is not given its limits.
        """
        if not self.trouble:
            return options.budgets(self.budgets)
        if any(getattr(options, name) is None for name in LIMITS):
            raise _damaged(path, self.trouble)
        return options.budgets(Budgets())

    def check(self, path: Path) -> None:
        """Refuse budgets that are not to be used."""
        if self.trouble:
            raise _damaged(path, self.trouble)


def how_to_give_again() -> Spelled:
    """What a user does about changed budgets."""
    said = "Run it with {max_cost} and {max_tokens_total}, each a limit or"
    rest = "Memory, concurrency and workers that are not given go back to their defaults."
    named = spelled(said, max_cost=None, max_tokens_total=None)
    return Spelled(f'{named} "none". {rest}', command=f"{named.command} none. {rest}")


def kept_budgets(path: Path) -> KeptBudgets:
    """Read the budgets of the run file at `path`; the defaults where there is no file yet."""
    if not path.is_file() or path.stat().st_size == 0:
        return KeptBudgets(Budgets())
    connection = open_run_file(path)
    try:
        with translated_errors(path):
            return read_budgets(connection)
    finally:
        connection.close()


def read_budgets(connection: apsw.Connection) -> KeptBudgets:
    """Read the budgets, each checked like an option that a user gives: the file may come from elsewhere."""
    keys = {f"{_PREFIX}{name}": name for name in Budgets.__struct_fields__}
    places = ", ".join("?" * len(keys))
    rows = connection.execute(
        f"SELECT key, CASE WHEN octet_length(value) > {_MOST_BYTES} THEN 'too long' ELSE value END FROM meta"
        f" WHERE key IN ({places})",
        tuple(keys),
    )
    try:
        budgets = Budgets(**{keys[key]: value for key, value in rows})
        trouble = "its budgets are not as they were written" if has_changed_budgets(connection) else ""
    except OptionError as error:
        return KeptBudgets(Budgets(), f"it keeps a budget that makes no sense: {error.message.rstrip('.')}")
    except UNREADABLE as error:
        return KeptBudgets(Budgets(), f"its budgets cannot be read ({short_message(error)})")
    return KeptBudgets(budgets, trouble)


def _damaged(path: Path, trouble: str) -> RunFileDamaged:
    return RunFileDamaged(f"{path} is damaged: {trouble}.", path=path, fix=how_to_give_again())


def write_budgets(connection: apsw.Connection, budgets: Budgets) -> None:
    """Write the budgets and their checksum, inside the caller's transaction."""
    for name in Budgets.__struct_fields__:
        key, value = f"{_PREFIX}{name}", getattr(budgets, name)
        if value is None:
            connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
    write_part_check(connection, CheckedPart.BUDGETS)
