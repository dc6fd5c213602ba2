"""Writing an export whole or not at all: under a temporary name beside the target, which is removed on an error."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headrace.errors import OptionError
from headrace.store.connections import is_file_of_ours


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path to write to. It replaces `path` when the block ends without an error; otherwise the old file stays."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        _make(unfinished)
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        fix = "Check the directory and the room on the disk; what was there is unchanged."
        raise OptionError(f"{path} cannot be written: {error.strerror or error}.", fix=fix) from error
    finally:
        _remove(unfinished)


def refuse_run_file(path: Path, *read: Path) -> Path:
    """Refuse to replace a run file: those that an export reads, and any other."""
    if any(path.exists() and path.samefile(each) for each in read):
        raise OptionError(f"{path} is the run file itself.", fix="Export to another path.")
    if path.is_dir():
        raise OptionError(f"{path} is a directory.", fix=f"Name a file in it: {path / 'results.csv'}.")
    if path.is_file() and is_file_of_ours(path):
        raise OptionError(f"{path} is a run file, and would be lost.", fix="Export to another path.")
    return path


def _make(unfinished: Path) -> None:
    """Make the file where there is nothing: a link put there by somebody else would lead the export elsewhere."""
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o666))


def _remove(unfinished: Path) -> None:
    try:
        unfinished.unlink(missing_ok=True)
    except OSError:
        return  # its directory is not there or not ours: then neither is the file
