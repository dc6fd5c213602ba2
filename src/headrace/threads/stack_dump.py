"""A thread's stack, written to a file by a signal's handler: also while no Python code can run.

The handler is faulthandler's, in C: the thread that gets the signal writes its own stack, which stands still meanwhile.
(`faulthandler.dump_traceback_later` writes from another thread, and crashes the process where the first thread was only
slow and goes on.) Used for the engine's loop (threads.traceback_timer) and for workers' loops (workers.watched_loop).
Does not cover: who sends the signal, and when.
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import re
import signal
from itertools import islice

# Ignored by default: one that comes late, or to a process that has become another program, harms nobody.
DUMP_SIGNAL: int = getattr(signal, "SIGURG", 0)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
_MOST_FRAMES = 12
_MOST_BYTES = 1 << 16


def dump_on_signal(file: int) -> None:
    """Have each thread of this process write its stack to `file`, opened to append, when it gets the signal."""
    faulthandler.register(DUMP_SIGNAL, file=file, all_threads=False)


def clear_dump(file: int) -> None:
    os.ftruncate(file, 0)


def read_dump(file: int) -> str:
    return os.pread(file, _MOST_BYTES, 0).decode("utf-8", "replace")


def frames_in(dump: str) -> str:
    """Return the stack in a dump with its lines of code, the innermost call last; empty where none was written.

    Only for dumps of this process and of its workers: it reads the files that the dump names.
    """
    return "".join(map(_with_source, _frames(dump)))


def places_in(dump: str) -> str:
    """Return the stack in a dump that anybody may have written: the places that it names, none of which is read."""
    return "".join(map(_place, _frames(dump)))


def _frames(dump: str) -> list[re.Match[str]]:
    """The innermost frames, the innermost last."""
    return list(islice(_FRAME.finditer(dump), _MOST_FRAMES))[::-1]


def _place(frame: re.Match[str]) -> str:
    return f'  File "{frame["file"]}", line {frame["line"]}, in {frame["name"]}\n'


def _with_source(frame: re.Match[str]) -> str:
    source = linecache.getline(frame["file"], int(frame["line"])).strip()
    return f"{_place(frame)}    {source}\n" if source else _place(frame)
