"""The run files and engine files that a page shows: those that were named, and those in the directories that were.

A file has an id made of its path. A request names the id, so that no path comes from outside; a link that leads out of
its directory is not shown. Does not cover: what is in the files (web.api).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.results.plots.kept_counts import KeptCounts
from headrace.results.reading.kept_orders import KeptOrders
from headrace.store.engine_file.engine_overview import is_engine_file
from headrace.web.kept_lines import KeptLines
from headrace.web.run_paces import RunPaces

MOST_FILES = 2_000
_SUFFIX = "*.run"
_MOST_KINDS = 2 * MOST_FILES


class ShownKind(Enum):
    RUN = "run"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    id: str
    path: Path
    kind: ShownKind

    @property
    def changed_at(self) -> float:
        return _changed_at(self.path)


class NotShown(InvalidInput):
    """The page has no file with this id."""

    def __init__(self, file_id: str) -> None:
        super().__init__(
            f"There is no file {file_id!r} here.", fix="It may have been moved or removed: see the list of runs."
        )


class ShownFiles:
    """`places` are files and directories; what is in a directory is looked up anew each time. `paces`, `lines`,
    `counts` and `orders` are kept for files that are looked at again.
    """

    def __init__(self, places: list[Path]) -> None:
        self._places = [place.expanduser().resolve() for place in places]
        self._kinds: dict[tuple[Path, int], ShownKind] = {}
        self.paces = RunPaces()
        self.lines: KeptLines[Any] = KeptLines()
        self.counts = KeptCounts()
        self.orders = KeptOrders()

    def latest(self) -> tuple[list[ShownFile], bool]:
        """The files, those that changed last first; and whether there are more than `MOST_FILES`."""
        found = sorted(((_changed_at(path), path) for path in set(self._paths())), reverse=True)
        return [self._shown(path) for _, path in found[:MOST_FILES]], len(found) > MOST_FILES

    def add(self, path: Path) -> ShownFile:
        """Show this file, too."""
        path = path.resolve()
        if path not in self._places:
            self._places.append(path)
        return self._shown(path)

    def one(self, file_id: str) -> ShownFile:
        for path in self._paths():
            if _id_of(path) == file_id:
                return self._shown(path)
        raise NotShown(file_id)

    def _paths(self) -> Iterator[Path]:
        for place in self._places:
            if place.is_dir():
                inside = filter(None, map(_resolved, place.glob(_SUFFIX)))
                yield from (path for path in inside if path.is_relative_to(place) and path.is_file())
            elif place.is_file():
                yield place

    def _shown(self, path: Path) -> ShownFile:
        return ShownFile(id=_id_of(path), path=path, kind=self._kind_of(path))

    def _kind_of(self, path: Path) -> ShownKind:
        """A file keeps its kind, so that a list of a thousand does not open each of them anew."""
        try:
            key = (path, path.stat().st_ino)
        except OSError:
            return ShownKind.RUN  # it has just gone: whoever reads it says so
        if key not in self._kinds:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            self._kinds[key] = ShownKind.ENGINE if is_engine_file(path) else ShownKind.RUN
        return self._kinds[key]


def _resolved(path: Path) -> Path | None:
    """Where a path of a directory leads; None for a link in a circle, and for a name that is no text, which SQLite
    cannot open.
    """
    try:
        found = path.resolve()
        str(found).encode()
    except (OSError, RuntimeError, UnicodeEncodeError):
        return None
    return found


def _id_of(path: Path) -> str:
    return hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()


def _changed_at(path: Path) -> float:
    """Of the file and its log: a run writes the log first."""
    times = [0.0]
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            times.append(each.stat().st_mtime)
        except OSError:
            continue
    return max(times)
