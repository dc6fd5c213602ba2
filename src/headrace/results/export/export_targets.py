"""Where an export may be written: not over a run file. Does not cover: writing it (headrace.plain_files.replacing)."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import OptionError
from headrace.store.connections import is_file_of_ours


def refuse_run_file(path: Path, *read: Path) -> Path:
    """Refuse to replace a run file: those that an export reads, and any other."""
    if any(path.exists() and path.samefile(each) for each in read):
        raise OptionError(f"{path} is the run file itself.", fix="Export to another path.")
    if path.is_file() and is_file_of_ours(path):
        raise OptionError(f"{path} is a run file, and would be lost.", fix="Export to another path.")
    return path
