"""Where an export may be written: not over a run file, nor over what is no file. Does not cover: writing it
(headrace.plain_files.replacing).
"""

from __future__ import annotations

from pathlib import Path

from headrace.errors import OptionError
from headrace.plain_files.replacing import refuse_what_is_no_file
from headrace.store.connections import is_file_of_ours


def checked_target(path: Path, *read: Path) -> Path:
    """The path; refused before the work where it is a run file: one that an export reads, or any other."""
    if any(path.exists() and path.samefile(each) for each in read):
        raise OptionError(f"{path} is the run file itself.", fix="Export to another path.")
    refuse_what_is_no_file(path)
    if path.is_file() and is_file_of_ours(path):
        raise OptionError(f"{path} is a run file, and would be lost.", fix="Export to another path.")
    return path
