"""A thread with an event loop of its own: a run goes on there whether a script, a notebook or another loop called it.

Does not cover: calls to that loop and replies from it in batches (threads.crossing).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from headrace.errors import HeadraceError
from headrace.threads.flag import Flag

Outcome = TypeVar("Outcome")
_LOOK_EVERY_S = 0.5

_running: WeakSet[LoopThread[Any]] = WeakSet()


class LoopThread(Generic[Outcome]):
    """Runs one coroutine to its end; `future` has its result or its error. It handles no signals.

    `has_network` where the loop mostly makes HTTP calls: then uvloop is worth loading, where there is one.
    """

    def __init__(self, main: Callable[[], Coroutine[Any, Any, Outcome]], *, has_network: bool = False) -> None:
        self._has_network = has_network
        self.future: Future[Outcome] = Future()
        self.future.set_running_or_notify_cancel()  # or a cancelled waiter would cancel it
        self._main = main
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_running = False  # kept, not asked of the thread: every call from outside looks at it
        self.is_elsewhere = False  # in a fork: its parent has the thread
        self._first = threading.Lock()  # who takes it decides: the thread that it runs, `_give_up` that it never will
        self._has_begun = False
        self._looping = Flag()
        self.has_ended = Flag()  # set when the future is done
        # A daemon: at the interpreter's end the run stops where it is, and what is journaled is safe.
        self._thread = threading.Thread(target=self._run, name="headrace-engine", daemon=True)

    def start(self) -> None:
        try:
            self.is_running = True
            _running.add(self)
            self._thread.start()
        except BaseException:  # no thread can be made, or Ctrl-C
            self._give_up()
            raise

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop call a function soon; nothing where it has not begun or has ended."""
        if not self.is_running:
            return
        while self.is_running and not self._looping.wait(_LOOK_EVERY_S):
            if self._thread.ident is None:  # none was made, and another Ctrl-C kept `start` from noting it
                self._give_up()
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(function, *arguments)

    def _give_up(self) -> None:
        """Keep the thread from beginning, unless it has begun. May be called again where Ctrl-C came in between."""
        if self._first.acquire(blocking=False) or self._thread.ident is None:
            self.is_running = False

    def leave_to_parent(self) -> None:
        """In a fork, which has no such thread: nothing there may wait for it."""
        self.is_running, self.is_elsewhere = False, True

    def join(self) -> None:
        if self._has_begun:
            self._thread.join()

    def _run(self) -> None:
        self._has_begun = self._first.acquire(blocking=False)
        try:
            self._run_to_end()
        finally:
            self.has_ended.set()

    def _run_to_end(self) -> None:
        if not self._has_begun:
            self.is_running = False
            self.future.set_exception(HeadraceError("The run was given up before it began."))
            return
        try:
            with asyncio.Runner(loop_factory=network_loop() if self._has_network else None) as runner:
                outcome = runner.run(self._announced())
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            self._looping.set()  # nobody may wait for a loop that could not be made
            self.is_running = False
            self.future.set_exception(error)
        else:
            self.is_running = False
            self.future.set_result(outcome)

    async def _announced(self) -> Outcome:
        self._loop = asyncio.get_running_loop()
        self._looping.set()
        return await self._main()


def network_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the fastest event loop for sockets that this platform has; None for asyncio's own."""
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    return uvloop.new_event_loop


def _after_fork() -> None:
    for thread in list(_running):
        thread.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
