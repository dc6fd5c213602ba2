"""What a list says of each file, kept while the file does not change: a list of a thousand files opens few of them."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from headrace.store.lock import writer_of

_MOST_LINES = 4_000
Line = TypeVar("Line")


class KeptLines(Generic[Line]):
    """A line is kept with the time of its file's last change. A file that somebody writes has none: its process knows
    more than the file.
    """

    def __init__(self) -> None:
        self._lines: dict[Path, tuple[float, Line]] = {}

    def find(self, path: Path, changed_at: float) -> Line | None:
        kept = self._lines.get(path)
        if kept is None or kept[0] != changed_at or writer_of(path) is not None:
            return None
        return kept[1]

    def keep(self, path: Path, changed_at: float, line: Line) -> None:
        """Keep a file's line. `changed_at` was read before the line was, so that a change meanwhile is seen."""
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
        if writer_of(path) is None:
            self._lines[path] = changed_at, line
