"""The names under which earlier files are kept: `a.20260512-093000.run` for `a.run`, which `fresh=True` replaces, and
`a.20260512-093000.run-wal` for a log `a.run-wal` whose file is gone.

Covers: giving such a name, and finding the files that have one. Does not cover: renaming (run_file.removal,
logs), or which of them a reader looks for (run_file.reader).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from os.path import lexists
from pathlib import Path

from headrace.plain_files.side_files import is_regular

LOG = "-wal"
_STAMP = "%Y%m%d-%H%M%S"


def free_name(path: Path, moment: time.struct_time) -> Path:
    """The first free name for a file that is renamed at this moment. A file and a log that do not belong together never
    get one name: SQLite would replay the log into the file.
    """
    return next(name for name in _kept_names(path, moment) if not lexists(name) and not lexists(_partner(name)))


def _partner(path: Path) -> Path:
    """The log of a file, or the file of a log."""
    name = path.name
    return path.with_name(name.removesuffix(LOG) if name.endswith(LOG) else name + LOG)


def _kept_names(path: Path, moment: time.struct_time) -> Iterator[Path]:
    stamp = time.strftime(_STAMP, moment)
    yield path.with_name(f"{path.stem}.{stamp}{path.suffix}")
    number = 2
    while True:
        yield path.with_name(f"{path.stem}.{stamp}-{number}{path.suffix}")
        number += 1


def kept_files(path: Path) -> list[Path]:
    """The files that once had this path, the latest first: as many as there were fresh starts."""
    return _found(path, re.escape(path.stem))


def kept_logs(path: Path) -> list[Path]:
    """The logs beside a run file that were kept without their file: those of its name first, the latest first. The file
    may have had another name when its log was kept, so logs of all files with this ending are among them.
    """
    log = path.with_name(path.name + LOG)
    found = _found(log, ".+") if log.suffix else []
    return [kept for kept in found if is_regular(kept) and not lexists(_partner(kept))]


def _found(path: Path, stem: str) -> list[Path]:
    """The kept files whose stem matches this pattern, those of the path's own stem first, the latest first."""
    given = re.compile(rf"({stem})\.(\d{{8}}-\d{{6}})(?:-(\d+))?{re.escape(path.suffix)}")
    try:
        found = [(match, each) for each in path.parent.iterdir() if (match := given.fullmatch(each.name))]
    except OSError:  # the directory is gone, or may not be listed
        return []
    found.sort(key=lambda each: (each[0][1] == path.stem, each[0][2], int(each[0][3] or 1)), reverse=True)
    return [each for _, each in found]
