"""Where `ctx.spool()` keeps its files: a directory beside the engine's file, gone with the engine.

Does not cover: the files themselves (agents.context).
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.errors import StorageFull

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def make_spool_directory(engine_file: Path) -> TemporaryDirectory[str]:
    """Only for whoever holds the engine's file: what an engine that was killed has left goes."""
    prefix = f".{engine_file.name}-spool-"
    for left in engine_file.parent.iterdir():
        if left.name.startswith(prefix):
            shutil.rmtree(left, ignore_errors=True)
    try:
        return TemporaryDirectory(prefix=prefix, dir=engine_file.parent)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise StorageFull(engine_file, "the disk is full") from None
