"""Writing an export or a study whole or not at all: under a temporary name beside the target, which is removed on an
error. A link at the target is replaced, not followed; a directory, a FIFO or a device is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.errors import OptionError

_USUAL_MODE, _OWN_MODE = 0o666, 0o600


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path to write to. It replaces `path` when the block ends without an error; otherwise the old file stays."""
    refuse_what_is_no_file(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        _make(unfinished, _mode_of(path))
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        fix = "Check the directory and the room on the disk; what was there is unchanged."
        raise OptionError(f"{path} cannot be written: {error.strerror or error}.", fix=fix) from error
    finally:
        _remove(unfinished)


def refuse_what_is_no_file(path: Path) -> None:
    """Refuse a path at which, or at the end of whose links, there is something else than a file. A finished export
    would take its place: root's `-o /dev/null` would put a file where the device was.
    """
    with suppress(OSError):  # what cannot be looked at is not there, or cannot be written either
        if kind := _other_kind(path):
            fix = "Name a file in it." if path.is_dir() else "Give the path of a file."
            raise OptionError(f"{path} is {kind}.", fix=fix)


def _other_kind(path: Path) -> str:
    found = path.stat().st_mode
    if stat.S_ISDIR(found):
        return "a directory"
    if not stat.S_ISREG(found):
        return "a device, a FIFO or a socket"
    if path.is_symlink() and os.readlink(path).startswith("/proc/"):  # noqa: PTH115 - as it stands, /dev/stdout
        return "a link to what a program has open"
    return ""


def _make(unfinished: Path, mode: int | None) -> None:
    """Make the file where there is nothing: a link put there by somebody else would lead the writer elsewhere."""
    made = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), mode or _USUAL_MODE)
    try:
        if mode is not None and hasattr(os, "fchmod"):
            with suppress(OSError):  # a file system without rights; it has none that are looser
                os.fchmod(made, mode)  # the umask is for new files
    finally:
        os.close(made)


def _mode_of(path: Path) -> int | None:
    """The rights of the file that is replaced: who made it private, or let others write it, wants it so. None where
    there is none, or what is there is no file.
    """
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return found & _USUAL_MODE | _OWN_MODE if stat.S_ISREG(found) else None


def _remove(unfinished: Path) -> None:
    try:
        unfinished.unlink(missing_ok=True)
    except OSError:
        return  # its directory is not there or not ours: then neither is the file
