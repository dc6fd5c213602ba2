"""Opens files whose names can be foreseen: those beside a run file or an engine file, and those in the data directory.

Whoever sends a file, or can write to its directory, may have put a link, a FIFO or a device under such a name. A link
would lead to another file of the user's, opening a FIFO waits until somebody writes into it, and a device may be
endless. Does not cover: making files that only their owner may read (store.private), or files that a user names.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
_AS_IT_IS: int = getattr(os, "O_BINARY", 0)


def open_side_file(path: Path) -> int:
    """Open a regular file to read it; raises OSError for anything else, without following or waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT | _AS_IT_IS)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")


def is_regular(path: Path) -> bool:
    """Whether there is a regular file of this name, not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_only_ours(descriptor: int) -> bool:
    """Whether this user owns an open file, and the file has no second name that leads elsewhere."""
    found = os.fstat(descriptor)
    return found.st_nlink == 1 and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
