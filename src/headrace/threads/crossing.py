"""From one thread to another's event loop and back. Covers: calls that cross together, and replies to a caller's loop.

Waking another loop costs a system call and a change of threads: whatever waits when it wakes crosses at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

Value = TypeVar("Value")
Awaited = TypeVar("Awaited", contravariant=True)


class Crossing:
    """`wake` has the other side call a function soon; it may be called from any thread."""

    def __init__(self, wake: Callable[[Callable[[], None]], None]) -> None:
        self._wake = wake
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()  # as many as wait to cross
        self._is_woken = False

    @classmethod
    def to_loop(cls, loop: asyncio.AbstractEventLoop) -> Crossing:
        def wake(call: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits there any more
                loop.call_soon_threadsafe(call)

        return cls(wake)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        self._calls.append((function, arguments))
        if not self._is_woken:
            self._is_woken = True
            self._wake(self._cross)

    def _cross(self) -> None:
        self._is_woken = False  # first: what comes from here on wakes again
        waiting = len(self._calls)
        try:
            while waiting:
                waiting -= 1
                function, arguments = self._calls.popleft()
                function(*arguments)
        finally:
            if waiting and not self._is_woken:  # one has failed: that is not the fault of those behind it
                self._is_woken = True
                self._wake(self._cross)


class Filled(Protocol[Awaited]):
    """What gets a value or an error, once; `is_abandoned` where nobody waits for it any more."""

    @property
    def is_abandoned(self) -> bool: ...

    def set_result(self, value: Awaited) -> None: ...

    def set_exception(self, error: BaseException) -> None: ...


class Then(Generic[Value]):
    """Calls on with the value, on the same loop."""

    def __init__(self, result: Callable[[Value], object], error: Callable[[BaseException], object]) -> None:
        self.result = result
        self.error = error
        self.is_abandoned = False

    def set_result(self, value: Value) -> None:
        self.result(value)

    def set_exception(self, error: BaseException) -> None:
        self.error(error)


class Reply(Generic[Value]):
    """What a caller awaits on its own loop, filled from another thread; only the first filling counts."""

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


def _fill(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return  # nobody waits any more
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
