"""The encoded state of totals: a row for each group in the table `totals`, each with a checksum.

Every interview that has all its answers is in exactly one group, so that a group that is lost shows in the counters.
Does not cover: what a state means (results.totals), or when it is written (run_journal).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol
from zlib import crc32

import apsw

from headrace.store.contents import damaged, decoding, raw_rows
from headrace.store.run_file.details import read_counters

MOST_GROUPS = 10_000
MOST_STATE_BYTES = 16_000_000


class TotalsCheck(Protocol):
    """What knows the meaning of states. Given the text of a file's totals and its states, it raises one of
    contents.UNREADABLE where they do not fit.
    """

    def __call__(self, text: str, states: list[TotalState], /) -> None: ...


class TotalState(NamedTuple):
    """A group: its key, how many interviews were added to it, and the encoded state of its functions."""

    key: str
    interviews: int
    state: bytes


def write_totals(connection: apsw.Connection, changed: Iterable[TotalState]) -> None:
    """Write the states that have changed, inside the caller's transaction."""
    rows = [(*each, _checksum(each)) for each in changed]
    connection.executemany("INSERT OR REPLACE INTO totals VALUES(?, ?, ?, ?)", rows)


def read_totals(connection: apsw.Connection, path: Path) -> list[TotalState]:
    """All states, by their keys; refused where one is not as it was written, or missing. Bounded by MOST_GROUPS."""
    sql = "SELECT key, interviews, state, checksum FROM totals WHERE length(state) <= ? ORDER BY key LIMIT ?"
    states: list[TotalState] = []
    with decoding(path, "its totals"):
        for key, interviews, state, checksum in raw_rows(connection, sql, (MOST_STATE_BYTES, MOST_GROUPS + 1)):
            if not isinstance(state, bytes):  # a number would be made into as many bytes
                raise ValueError(f"those of {key[:100]!r} are no bytes")
            each = TotalState(key, interviews, state)
            if checksum != _checksum(each):
                raise ValueError(f"those of {key[:100]!r} are not as they were written")
            if interviews < 1:
                raise ValueError(f"those of {key[:100]!r} are of {interviews} interviews")
            states.append(each)
    counters = read_counters(connection, path)
    added, ended = sum(each.interviews for each in states), counters["done"] - counters["failed"]
    if added != ended:
        raise damaged(path, f"its totals are of {added:,} interviews, and {ended:,} have all their answers")
    return states


def _checksum(each: TotalState) -> int:
    return crc32(each.state, crc32(f"{each.interviews} {each.key}".encode()))
