"""Copies of a run file or engine file that are whole: everything of one moment, also of a file that is being written.

Covers: the copy, its log among it, as one plain file. Does not cover: exports (results).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.store.making import made_whole

_MARKS = "DELETE FROM meta WHERE key IN ('writer', 'log')"


def copy_into(source: apsw.Connection, path: Path) -> None:
    """Write everything that this connection sees into a new file."""
    with made_whole(path) as copy:
        with copy.backup("main", source, "main") as backup:
            backup.step()
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()  # it has the source's mode
        copy.execute(_MARKS)
