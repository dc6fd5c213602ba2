"""Temporary directories that others can tell from those that a killed process left.

An owner holds a lock on its directory for as long as it lives: however it ends, the lock ends with it, and the next
owner of the same kind removes the directory. Does not cover: what lies in them (survey.files.smaller_pictures,
cluster.node_files).
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None

MAKING_S = 60.0


class OwnedFolder(tempfile.TemporaryDirectory[str]):
    """A directory of this process and user alone. Those of its kind that dead processes left are removed first."""

    def __init__(self, prefix: str) -> None:
        remove_left(prefix)
        super().__init__(prefix=prefix, ignore_cleanup_errors=True)
        self._held = _lock(Path(self.name))

    def cleanup(self) -> None:
        super().cleanup()
        if self._held is not None:
            os.close(self._held)
            self._held = None


def remove_left(prefix: str) -> None:
    """Remove the directories of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            about = folder.lstat()
        except OSError:
            continue
        # One that was just made may not be locked yet.
        is_ours = about.st_uid == os.getuid() and time.time() - about.st_ctime > MAKING_S
        if is_ours and stat.S_ISDIR(about.st_mode) and (descriptor := _lock(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Hold a folder until the descriptor is closed: at the latest when this process ends, however it ends. None where
    another process holds it.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
