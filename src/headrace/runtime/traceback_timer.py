"""The stack of a thread, written to a file by a thread of C when a time is up: also while nothing of Python can run.

`faulthandler` has one such timer for a whole process. It is taken only where nobody else can have it, and left alone
from the moment someone else takes it. Linux tells: the timer is a thread that Python does not know.
Does not cover: when the time is up (runtime.stuck_loop).
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")
_HEADER = "About thread 0x{:016x}:\n"
_SECTION = re.compile(
    r"^About thread (0x[0-9a-f]{16}):$.*^(?:Current thread|Thread) \1\b.*?$(.*?)(?:^$|\Z)", re.MULTILINE | re.DOTALL
)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
_MOST_FRAMES = 12
_MOST_BYTES = 1_000_000
_taken = threading.Lock()


class TracebackTimer:
    """Made by `take` for the calling thread. `arm` puts the time off; `told` is the stack where it was not, in time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header = _HEADER.format(threading.get_ident()).encode()
        self._file = _begun(path, self._header)
        self._thread: str | None = None  # the timer's own
        self._is_ours = True

    @classmethod
    def take(cls, path: Path) -> TracebackTimer | None:
        """None where it may be someone else's: another engine's, the program's, a test runner's; or on a full disk."""
        if not sys.platform.startswith("linux") or not _taken.acquire(blocking=False):
            return None
        with suppress(OSError):
            if not _unknown_threads():
                return cls(path)
        _taken.release()
        return None

    def arm(self, seconds: float) -> None:
        before = _unknown_threads()
        has_fired = os.fstat(self._file).st_size > len(self._header)
        if self._thread is not None and self._thread not in before and not has_fired:
            self._is_ours = False  # someone has taken it, and may be counting on it
        if not self._is_ours:
            return
        os.ftruncate(self._file, len(self._header))  # nothing is written: the disk may be full by now
        faulthandler.dump_traceback_later(seconds, file=self._file)
        self._thread = next(iter(_unknown_threads() - before), None)

    def told(self) -> str | None:
        if not self._is_ours:
            return None
        return stack_in(os.pread(self._file, _MOST_BYTES, 0).decode("utf-8", "replace"))

    def close(self) -> None:
        if self._is_ours and (self._thread is None or self._thread in _unknown_threads()):
            faulthandler.cancel_dump_traceback_later()
        os.close(self._file)
        self._path.unlink(missing_ok=True)
        _taken.release()


def _begun(path: Path, header: bytes) -> int:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        os.write(file, header)
    except OSError:
        os.close(file)
        path.unlink()
        raise
    return file


def stack_in(written: str) -> str | None:
    """The stack in such a file, the innermost call last; None where the time was never up."""
    section = _SECTION.search(written)
    return None if section is None else frames_in(section[2])


def frames_in(dumped: str) -> str:
    """What faulthandler has written of one thread, with the lines of code, the innermost call last."""
    frames = list(_FRAME.finditer(dumped))[:_MOST_FRAMES]
    return "".join(map(_told, reversed(frames)))


def _told(frame: re.Match[str]) -> str:
    source = linecache.getline(frame["file"], int(frame["line"])).strip()
    place = f'  File "{frame["file"]}", line {frame["line"]}, in {frame["name"]}\n'
    return f"{place}    {source}\n" if source else place


def _unknown_threads() -> set[str]:
    known = {str(thread.native_id) for thread in threading.enumerate()}
    return {task.name for task in _TASKS.iterdir()} - known
