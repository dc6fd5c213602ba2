"""What a program says when Ctrl-C stops its run: one line at once, and one line at the end instead of a traceback.

Covers: both lines, on standard error, for every program that calls `run` or `stream`, and that the key reaches them.
Does not cover: stopping the run (runtime.arrivals), the command's own last words (cli.telling), or `run_async` and
`astream`, whose task asyncio cancels.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from headrace.display import visible
from headrace.errors import Interrupted

_EXIT_STATUS = 130


def say_stopping(in_flight: int, *, is_second: bool = False) -> None:
    """That the key was heard, and what it does: calls in flight may take minutes to end."""
    if is_second:
        _say("stopping now")
    else:
        _say(f"stopping: {in_flight:,} in flight; again to stop now" if in_flight else "stopping; again to stop now")


@contextmanager
def heard() -> Generator[None]:
    """While this thread waits for a run: a Ctrl-C is a KeyboardInterrupt here also under `asyncio.run`, whose handler
    cancels the main task, which the blocked event loop cannot deliver. Any other handler of the program stays.
    """
    if threading.current_thread() is not threading.main_thread() or not _is_asyncios(
        before := signal.getsignal(signal.SIGINT)
    ):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_asyncios(handler: object) -> bool:
    return isinstance(handler, functools.partial) and isinstance(
        getattr(handler.func, "__self__", None), asyncio.Runner
    )


def end_in_one_line() -> None:
    """Let a program that does not catch Interrupted end with its message. A hook that somebody else has set stays."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, Interrupted):
        sys.__excepthook__(kind, error, trace)
        return
    _say(str(error))
    if not hasattr(sys, "ps1") and not sys.flags.interactive:  # at a prompt, the next command comes
        raise SystemExit(_EXIT_STATUS)  # as a shell has it for a program that Ctrl-C ended


def _say(line: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - None under pythonw
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()
