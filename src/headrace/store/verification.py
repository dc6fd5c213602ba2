"""The findings of a look through a whole file, by kind, and SQLite's own check of its pages.

Does not cover: the rows of a run file (run_file.run_verification) or of an engine file
(engine_file.engine_verification).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from headrace.errors import RunFileDamaged
from headrace.store.contents import decoding, raw_rows
from headrace.store.disk_errors import translated_errors
from headrace.store.quoting import quote_text

_MOST_NAMED = 20
_MOST_OF_SQLITE = 20
_MOST_RANGES = 100_000


@dataclass(slots=True)
class Damage:
    """One kind of damage: how often it was met, the first few places, and a description of the first."""

    kind: str
    what: str
    count: int = 0
    places: list[int] = field(default_factory=list[int])


class OrdinalRanges:
    """Ordinals that come in rising order, as ranges from first to last; no more than 100,000 ranges are kept."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.count = 0
        self.is_cut = False

    def add(self, ordinal: int) -> None:
        last = self.ranges[-1] if self.ranges else None
        if last is not None and ordinal <= last[1]:
            return
        if last is not None and ordinal == last[1] + 1:
            self.ranges[-1] = (last[0], ordinal)
        elif len(self.ranges) < _MOST_RANGES:
            self.ranges.append((ordinal, ordinal))
        else:
            self.is_cut = True
            return
        self.count += 1

    def text(self, most: int = _MOST_NAMED) -> str:
        """`5, 9-12, ...`"""
        shown = [str(first) if first == last else f"{first}-{last}" for first, last in self.ranges[:most]]
        return ", ".join([*shown, *(["..."] if len(self.ranges) > most else [])])


@dataclass(slots=True)
class Verification:
    """What was found in one file. `unchecked` rows have no checksum: those of an engine file, and those that an older
    Headrace wrote. `run_again` are the interviews that a run can make anew, once their damaged rows are dropped.
    `is_added_up`: the file has totals, or keeps no rows, so that no interview can be taken out of it again.
    """

    path: Path
    rows: int = 0
    unchecked: int = 0
    findings: dict[str, Damage] = field(default_factory=dict[str, Damage])
    is_added_up: bool = False
    run_again: OrdinalRanges = field(default_factory=OrdinalRanges)

    def note(self, kind: str, what: str, place: int | None = None) -> None:
        finding = self.findings.setdefault(kind, Damage(kind, what))
        finding.count += 1
        if place is not None and len(finding.places) < _MOST_NAMED:
            finding.places.append(place)

    def attempt(self, kind: str, check: Callable[[], object]) -> bool:
        """Whether the check found the file readable; an error that it raises about the file becomes a finding."""
        try:
            with translated_errors(self.path), decoding(self.path, kind):
                check()
        except RunFileDamaged as error:
            self.note(kind, error.message)
            return False
        return True

    def check_pages(self, connection: apsw.Connection) -> None:
        """Have SQLite check its own structures. In a file with virtual tables, whose code that would run, it checks our
        tables by name.
        """
        self.attempt("pages", lambda: self._check_pages(connection))

    def _check_pages(self, connection: apsw.Connection) -> None:
        virtual = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND rootpage = 0"
        ours = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'"
        whole = [str(_MOST_OF_SQLITE)]
        named = [quote_text(name) for (name,) in raw_rows(connection, ours)]
        for part in named if connection.execute(virtual).get else whole:
            for (said,) in raw_rows(connection, f"PRAGMA integrity_check({part})"):
                if said != "ok":
                    self.note("pages", f"SQLite says: {str(said)[:200]}")
