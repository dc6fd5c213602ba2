"""What a run file keeps, as it says so itself: its keep, and the text of its totals.

They stand in `meta` from the file's first moment, part of the plan's checksum; a file that keeps everything and has no
totals has neither row. Does not cover: what the text of totals means (results.totals).
"""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from headrace.errors import OptionError, spelled
from headrace.limits import Keep
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.store.run_file.run_schema import WITH_TOTALS

_KEEP, _TOTALS = "keep", "totals"
_MOST_TEXT = 1_000_000


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """`totals` is the text of the totals, None where the file has none."""

    keep: Keep = Keep.EVERYTHING
    totals: str | None = None

    @property
    def is_usual(self) -> bool:
        return self == Keeping()


class WantedKeeping(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks for; None stands for what the file has."""

    keep: Keep | None = None
    totals: str | None = None

    def of_new_file(self) -> Keeping:
        return Keeping(keep=self.keep or Keep.EVERYTHING, totals=self.totals)

    def check(self, kept: Keeping, path: Path) -> None:
        """Refuse a run that asks for another keep or other totals than its file has."""
        if self.keep not in (None, kept.keep):
            raise OptionError(
                f"{path} keeps {_words(kept.keep)}, and that cannot change: what it has would be of two kinds.",
                fix=spelled(
                    "Leave {keep} out to go on in it, use another path, or start over with {fresh}.",
                    keep=None,
                    fresh=True,
                ),
            )
        if self.totals not in (None, kept.totals):
            has = "has no totals" if kept.totals is None else f"has other totals: {kept.totals}"
            raise OptionError(
                f"{path} {has}. Those of interviews that are finished cannot be made up for.",
                fix=spelled(
                    "Leave {aggregate} out to go on in it, use another path, or start over with {fresh}.",
                    aggregate=None,
                    fresh=True,
                ),
            )


def write_keeping(connection: apsw.Connection, keeping: Keeping) -> None:
    """Write it, inside the caller's transaction."""
    rows = {_KEEP: None if keeping.keep is Keep.EVERYTHING else keeping.keep.value, _TOTALS: keeping.totals}
    for key, value in rows.items():
        if value is not None:
            connection.execute("INSERT INTO meta VALUES(?, ?)", (key, value))


def read_keeping(connection: apsw.Connection, path: Path) -> Keeping:
    """Read it; refused where no Headrace has written it."""
    sql = f"SELECT key, value FROM meta WHERE key IN (?, ?) AND octet_length(value) <= {_MOST_TEXT}"
    with decoding(path, "what it keeps"):
        found = dict(typed_rows(connection, tuple[str, str], sql, (_KEEP, _TOTALS)))
        keeping = Keeping(keep=Keep(found.get(_KEEP, Keep.EVERYTHING)), totals=found.get(_TOTALS))
    if not keeping.is_usual and not has_totals(connection):
        raise damaged(path, "it says what it keeps in words that its version does not have")
    return keeping


def has_totals(connection: apsw.Connection) -> bool:
    """Whether a file has the tables of version 3."""
    return connection.execute("PRAGMA user_version").get >= WITH_TOTALS


def _words(keep: Keep) -> str:
    return {Keep.EVERYTHING: "everything", Keep.ANSWERS: "answers only", Keep.NOTHING: "nothing but totals"}[keep]
