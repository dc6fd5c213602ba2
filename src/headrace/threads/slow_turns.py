"""Notices tasks that block their event loop: `SlowTurns` times each turn of the tasks that it watches.

A turn is what a task does from one `await` that waits to the next: time.sleep, blocking I/O or plain computing in an
async function makes it long, and nothing else on the loop goes on meanwhile. Tasks that a watched task starts are
watched too, so that `gather` hides nothing. Does not cover: a turn that never ends (threads.stuck_loop).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

Report: TypeAlias = Callable[[float], None]


class SlowTurns:
    """Becomes the task factory of the loop that it is made on. Turns longer than `longest_s` are reported."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._reports: WeakKeyDictionary[asyncio.Task[Any], Report] = WeakKeyDictionary()
        self._loop = asyncio.get_running_loop()
        self._loop.set_task_factory(self._made)

    def watched(self, work: Coroutine[Any, Any, None], report: Report) -> asyncio.Task[None]:
        """Start a task; `report` gets the seconds of each of its turns that took too long, right after it."""
        task = asyncio.Task(_TimedCoroutine(work, self._longest_s, report), loop=self._loop)
        self._reports[task] = report
        return task

    def _made(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **settings: Any
    ) -> asyncio.Task[Any]:
        parent = asyncio.current_task(loop) if self._reports else None
        report = self._reports.get(parent) if parent is not None else None
        if report is None:
            return asyncio.Task(work, loop=loop, **settings)
        task = asyncio.Task(_TimedCoroutine(work, self._longest_s, report), loop=loop, **settings)
        self._reports[task] = report
        return task


class _TimedCoroutine(Coroutine[Any, Any, Any]):
    def __init__(self, work: Coroutine[Any, Any, Any], longest_s: float, report: Report) -> None:
        self._work = work
        self._longest_s = longest_s
        self._report = report

    def send(self, value: Any) -> Any:
        return self._timed(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._timed(self._work.throw, *error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()

    def _timed(self, turn: Callable[..., Any], *given: Any) -> Any:
        began_s = time.monotonic()
        try:
            return turn(*given)
        finally:
            took_s = time.monotonic() - began_s
            if took_s > self._longest_s:
                self._report(took_s)
