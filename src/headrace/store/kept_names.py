"""The names under which `fresh=True` keeps earlier run files: `a.20260512-093000.run` for `a.run`.

Covers: giving such a name, and finding the files that have one. Does not cover: renaming (run_file.removal), or which
of them a reader looks for (run_file.reader).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

_STAMP = "%Y%m%d-%H%M%S"


def kept_names(path: Path, moment: time.struct_time) -> Iterator[Path]:
    """The names for a file that is renamed at this moment; the caller takes the first that is free."""
    stamp = time.strftime(_STAMP, moment)
    yield path.with_name(f"{path.stem}.{stamp}{path.suffix}")
    number = 2
    while True:
        yield path.with_name(f"{path.stem}.{stamp}-{number}{path.suffix}")
        number += 1


def kept_files(path: Path) -> list[Path]:
    """The files that once had this path, the latest first: as many as there were fresh starts."""
    given = re.compile(rf"{re.escape(path.stem)}\.\d{{8}}-\d{{6}}(-\d+)?{re.escape(path.suffix)}")
    try:
        return sorted((each for each in path.parent.iterdir() if given.fullmatch(each.name)), reverse=True)
    except OSError:  # the directory is gone, or may not be listed
        return []
