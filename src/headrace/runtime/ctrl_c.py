"""What a program says when Ctrl-C stops its run: one line at once, and one line at the end instead of a traceback.

Covers: both lines, on standard error, for every program that calls `run` or `stream`. Does not cover: stopping the run
(runtime.arrivals), the command's own last words (cli.telling), or asyncio's, which ends such a program by itself.
"""

from __future__ import annotations

import sys
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
