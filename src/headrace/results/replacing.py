"""Writing a file whole or not at all. Covers: a temporary name beside it, which goes when it was not finished."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headrace.errors import OptionError


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path to write to; it takes the place of `path` when all went well, and otherwise the old file stays."""
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


def refuse_same_file(path: Path, run_path: Path) -> Path:
    """An export must not replace the run file that it reads."""
    if path.exists() and path.samefile(run_path):
        raise OptionError(f"{path} is the run file itself.", fix="Export to another path.")
    return path


def _make(unfinished: Path) -> None:
    """Where there is nothing yet: a link that someone has put there would lead what is written elsewhere."""
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o666))


def _remove(unfinished: Path) -> None:
    try:
        unfinished.unlink(missing_ok=True)
    except OSError:
        return  # its directory is not there or not ours: then neither is the file
