"""Paths as users give them, and the error for those that cannot be read.

Python's own questions about a path raise for a name that is too long or lies in a locked directory. These here answer
no, and opening the file tells why.

Does not cover: opening files (plan.sources.hashed_file).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from headrace.errors import ListError

_RIGHTS = "Check the path and its rights."


def given_path(given: str | Path) -> Path:
    """The path; `~` is the user's home."""
    try:
        return Path(given).expanduser()
    except RuntimeError as error:  # of a user who is not there
        raise unreadable(given, error) from None


def is_there(path: str | Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def is_directory(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def is_plain_file(path: str | Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def paths_like(pattern: Path) -> list[Path]:
    """The paths that a pattern names, in the order of their names."""
    try:
        return sorted(Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor))))
    except OSError as error:  # a directory was removed meanwhile, say
        where = f" ({error.filename})" if error.filename else ""
        fix = f"Name fewer directories. {_RIGHTS}"
        raise ListError(f"The files like {pattern} cannot be found: {error.strerror}{where}.", fix=fix) from None
    except (ValueError, NotImplementedError, RecursionError, re.error) as error:
        what = str(error).rstrip(".")
        raise ListError(f"{pattern} is no pattern of names: {what}.", fix='Write it like "data/*.csv".') from None


def way_of_edsl(path: Path) -> str:
    """How a file that EDSL wrote is read; it holds an object and no rows."""
    rows = path.with_name(f"{path.name.partition('.')[0]}.rows.jsonl")
    return f"EDSL's files are read with from_edsl(path), or in a terminal: headrace import {path} -o {rows}"


def unreadable(path: str | Path, error: Exception) -> ListError:
    what = (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
    return ListError(f"{path} cannot be read: {what}.", fix=_RIGHTS)
