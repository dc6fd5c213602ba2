"""SIGKILL at the n-th moment that changes the disk: at every write, sync, truncation and deletion of SQLite's, and at
every rename, link and unlink of ours.

Covers: a VFS for apsw that counts SQLite's own calls, so that no moment inside a commit, a checkpoint or a change of
journal mode is left out, and the product needs no hooks. Does not cover: what is done meanwhile (kill_scenarios).
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

_NAME = "headrace-kill-points"


class KillPoints:
    """Installed once in a process; `moments` are what happened so far, in order."""

    def __init__(self, kill_at: int | None) -> None:
        self._kill_at = kill_at
        self.moments: list[str] = []  # of one short scenario
        self._vfs = _Vfs(self)
        for name in ("rename", "replace", "link", "unlink"):
            setattr(os, name, self._counted(name, getattr(os, name)))

    def pass_by(self, moment: str) -> None:
        if len(self.moments) == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.moments.append(moment)

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *rest: Any, **options: Any) -> Any:
            place = Path(path)
            if place.suffix != ".sock" and not place.parent.name.startswith(".headrace-"):  # no data is in sockets
                self.pass_by(f"{name} {place.name}")
            return call(path, *rest, **options)

        return counted


class _Vfs(apsw.VFS):
    def __init__(self, points: KillPoints) -> None:
        self._points = points
        self._base = apsw.vfs_names()[0]
        super().__init__(_NAME, self._base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        if flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL):
            self._points.pass_by(f"open {_last(name)}")
        return _File(self._points, self._base, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802 - SQLite's name
        self._points.pass_by(f"delete {_last(name)}")
        super().xDelete(name, sync)


class _File(apsw.VFSFile):
    def __init__(self, points: KillPoints, base: str, name: Any, flags: list[int]) -> None:
        self._points = points
        self._name = _last(name)
        super().__init__(base, name, flags)

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        try:
            super().xLock(level)
        except apsw.IOError:
            # A connection that only reads asks for a writer's lock when it closes, in vain, and SQLite goes on without.
            raise apsw.BusyError from None

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._points.pass_by(f"write {self._name}")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._points.pass_by(f"sync {self._name}")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        self._points.pass_by(f"truncate {self._name}")
        super().xTruncate(size)


def _last(name: Any) -> str:
    """A file's name without its directory; SQLite's temporary files have none."""
    text = name if isinstance(name, str) else "" if name is None else name.filename()
    return Path(text).name or "temporary"
