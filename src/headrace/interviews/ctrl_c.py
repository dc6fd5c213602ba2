"""Prints what Ctrl-C does to a run: one line at once, and one line at the end instead of a traceback.

Covers: both lines, on standard error, for every program that runs a job, and that the key reaches `run` and `stream`
also where asyncio has taken it over: while they block its event loop, and in a thread (`asyncio.to_thread(job.run)`).
Under `asyncio.run` the first Ctrl-C cancels the main task, and KeyboardInterrupt is raised when that has ended:
`run_async`, `astream` and engines say the lines, and leave the errors as they are.
Does not cover: stopping the run (interviews.delivery), the command's own last words (cli.error_messages).
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from headrace.display import visible
from headrace.errors import Interrupted

_EXIT_STATUS = 130


def say_stopping(in_flight: int, *, may_repeat: bool = True) -> None:
    """Print at once what the key does: calls in flight may take minutes to end."""
    line = f"stopping: {in_flight:,} in flight" if in_flight else "stopping"
    _say(f"{line}; again to stop now" if may_repeat else line)


def say_stopping_now() -> None:
    _say("stopping now")


class AsyncioKey:
    """Ctrl-C as the `asyncio.run` of this program hears it; never pressed where there is none."""

    def __init__(self) -> None:
        self._runner = _runner_of(signal.getsignal(signal.SIGINT))
        self._is_heard = self.is_pressed  # what came before is not for this run

    @property
    def is_pressed(self) -> bool:
        # asyncio shows nowhere else why it cancels.
        return getattr(self._runner, "_interrupt_count", 0) > 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether only polling shows it: the thread that waits is not the one that gets signals."""
        return self._runner is not None and threading.current_thread() is not threading.main_thread()

    @contextmanager
    def received(self) -> Generator[None]:
        """While this thread waits for a run, a Ctrl-C is a KeyboardInterrupt here also under `asyncio.run`, whose
        handler cancels the main task, which the blocked event loop cannot deliver. Any other handler of the program
        stays.
        """
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or _runner_of(before) is None:
            yield
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self._raise_if_missed()
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _raise_if_missed(self) -> None:
        """A Ctrl-C between two waits went to asyncio. It is for this run, unless the task has been told of it since."""
        if self.is_pressed and not self._is_heard and _is_cancelled_soon():
            self._is_heard = True
            raise KeyboardInterrupt


def _is_cancelled_soon() -> bool:
    """Whether the task that runs here is to be cancelled when it next awaits something."""
    return getattr(asyncio.current_task(), "_must_cancel", False)


def _runner_of(handler: object) -> asyncio.Runner | None:
    """Whose handler it is, where it is that of an `asyncio.run`."""
    owner: object = getattr(getattr(handler, "func", None), "__self__", None)
    return owner if isinstance(owner, asyncio.Runner) else None


def end_in_one_line(under_asyncio: str = "") -> None:
    """Let a program that does not catch Interrupted end with its message. A hook that somebody else has set stays.

    `under_asyncio` is what to say where `asyncio.run` ends with a KeyboardInterrupt of its own.
    """
    global _under_asyncio  # noqa: PLW0603 - there is one hook
    _under_asyncio = under_asyncio or _under_asyncio
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


_under_asyncio = ""


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    line = (
        str(error) if isinstance(error, Interrupted) else _under_asyncio if _is_raised_by_asyncio(kind, trace) else ""
    )
    if not line:
        sys.__excepthook__(kind, error, trace)
        return
    _say(line)
    if not hasattr(sys, "ps1") and not sys.flags.interactive:  # at a prompt, the next command comes
        raise SystemExit(_EXIT_STATUS)  # as a shell has it for a program that Ctrl-C ended


def _is_raised_by_asyncio(kind: type[BaseException], trace: TracebackType | None) -> bool:
    """Whether it is Ctrl-C as `asyncio.run` passes it on."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = trace.tb_frame.f_globals.get("__name__") if trace is not None else None
    return kind is KeyboardInterrupt and where == "asyncio.runners"


def _say(line: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - None under pythonw
        sys.stderr.write(f"{visible(line)}\n")
        sys.stderr.flush()
