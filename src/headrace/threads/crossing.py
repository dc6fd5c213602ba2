"""Calls from one thread to another thread's event loop, and replies to the caller's loop.

Waking another loop costs a system call and a switch of threads: all calls that wait when it wakes are made at once.
Does not cover: the thread with the loop (threads.loop_thread).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

Value = TypeVar("Value")
Awaited = TypeVar("Awaited", contravariant=True)


class Crossing:
    """Makes calls in another thread, in order and in batches.

    `wake` has the other thread call a function soon; it may be called from any thread.
    """

    def __init__(self, wake: Callable[[Callable[[], None]], None]) -> None:
        self._wake = wake
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()  # as many as wait to cross
        self._is_woken = False

    @classmethod
    def to_loop(cls, loop: asyncio.AbstractEventLoop) -> Crossing:
        def wake(call: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed: no coroutine waits there any more
                loop.call_soon_threadsafe(call)

        return cls(wake)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        self._calls.append((function, arguments))
        if not self._is_woken:
            self._is_woken = True
            self._wake(self._cross)

    def _cross(self) -> None:
        self._is_woken = False  # first: a call that comes from here on wakes again
        waiting = len(self._calls)
        try:
            while waiting:
                waiting -= 1
                function, arguments = self._calls.popleft()
                function(*arguments)
        finally:
            if waiting and not self._is_woken:  # one has raised: the calls behind it are still made
                self._is_woken = True
                self._wake(self._cross)


class Promise(Protocol[Awaited]):
    """The writing end of a reply: gets a value or an error, once. `is_abandoned`: the caller waits no more."""

    @property
    def is_abandoned(self) -> bool: ...

    def set_result(self, value: Awaited) -> None: ...

    def set_exception(self, error: BaseException) -> None: ...


class CallbackPromise(Generic[Value]):
    """Calls a function with the value or the error, on the loop that sets it."""

    def __init__(self, result: Callable[[Value], object], error: Callable[[BaseException], object]) -> None:
        self.result = result
        self.error = error
        self.is_abandoned = False

    def set_result(self, value: Value) -> None:
        self.result(value)

    def set_exception(self, error: BaseException) -> None:
        self.error(error)


class LoopPromise(Generic[Value]):
    """Fills a future on the caller's loop from another thread; the first value or error counts."""

    __slots__ = ("_crossing", "_is_done", "future")

    def __init__(self, crossing: Crossing) -> None:
        self._crossing = crossing
        self._is_done = False
        self.future: asyncio.Future[Value] = asyncio.get_running_loop().create_future()

    @property
    def is_abandoned(self) -> bool:
        return self.future.cancelled()

    def set_result(self, value: Value) -> None:
        if not self._is_done:
            self._is_done = True
            self._crossing.call(_fill, self.future, value, None)

    def set_exception(self, error: BaseException) -> None:
        if not self._is_done:
            self._is_done = True
            self._crossing.call(_fill, self.future, None, error)


async def awaited_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Value]) -> Value:
    """Await a coroutine that runs on this loop or another thread's; cancelled with its caller."""
    if loop is asyncio.get_running_loop():
        return await work
    try:
        crossed = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError:  # the loop is closed
        work.close()
        raise
    return await asyncio.wrap_future(crossed)


def _fill(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the caller was cancelled
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
