"""Files and directories with people's data are for their owner alone: modes 0600 and 0700, and no link is followed.

Covers: making them. SQLite gives the files beside a database the database's own mode. Does not cover: exports
(headrace.plain_files.replacing), which follow the user's umask.
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace.plain_files.side_files import NO_LINK, NO_WAIT

_FILE_MODE, _DIRECTORY_MODE = 0o600, 0o700


def make_directory(directory: Path) -> None:
    """Make a directory and the missing ones above it; a directory that exists keeps its mode."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(_DIRECTORY_MODE, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file where there is nothing, not even a dangling link."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_LINK, _FILE_MODE))


def open_file(path: Path) -> int:
    """Open a file, making it where it is missing; raises OSError for a link."""
    return os.open(path, os.O_CREAT | os.O_RDWR | NO_LINK | NO_WAIT, _FILE_MODE)


def sync(path: Path) -> None:
    """Have the system write a file or directory to the disk. Not for an open database: closing the descriptor would
    drop the process's POSIX locks on it.
    """
    if os.name == "nt":  # a directory cannot be opened there, and renames are durable by themselves
        return
    descriptor = os.open(path, os.O_RDONLY | NO_LINK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
