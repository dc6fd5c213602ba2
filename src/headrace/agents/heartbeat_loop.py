"""`HeartbeatLoop`: the event loop, in a thread of its own, of a heartbeat that has blocked the engine's loop.

    engine's loop                                  the heartbeat's thread
    call(function, ctx)   ────────────────────►    a task; what `ctx` asks for crosses back (heartbeat_link)
    Future, when it has really ended  ◄────────    its end
    cancel()              ────────────────────►    cancelled, and torn down where it ignores that

What it blocks there is its own. Does not cover: when a heartbeat is moved (agents.engine.heartbeat_calls), or how that
is noticed (threads.slow_turns).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from headrace.agents.inline_agents import tear_down
from headrace.threads.loop_thread import LoopThread

CANCEL_EVERY_S = 1.0
_CANCELS = 3


class HeartbeatLoop:
    """Runs one call at a time. `ended` is done when the thread's loop is."""

    def __init__(self) -> None:
        self._is_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._thread = LoopThread(self._main)
        self.ended = self._thread.future
        self._thread.start()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Future[None]:
        """Call the function there; the future is done once nothing of the call runs any more."""
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()  # or a cancelled waiter would cancel it, and not the call
        self._thread.call(self._begin, ended, function, arguments)
        return ended

    def cancel(self) -> None:
        """Stop the call that goes on, as soon as it lets go of its loop."""
        self._thread.call(self._cancel)

    def close(self) -> None:
        """End the loop once the call that goes on has ended. A thread that something blocks is left behind."""
        self._thread.call(self._is_over.set)

    async def _main(self) -> None:
        await self._is_over.wait()
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _begin(self, ended: Future[None], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._task = asyncio.get_running_loop().create_task(_conduct(ended, function, arguments))
        self._task.add_done_callback(lambda _: _fill(ended, None))  # it was cancelled before its first turn

    def _cancel(self) -> None:
        if self._task is not None:
            stop_firmly(self._task, every_s=CANCEL_EVERY_S)


def stop_firmly(task: asyncio.Task[None], tries: int = _CANCELS, *, every_s: float) -> None:
    """Cancel a task of this loop, again where it goes on, and then tear it down."""
    if task.done():
        return
    if not tries:
        tear_down(task)
        return
    task.cancel()
    asyncio.get_running_loop().call_later(every_s, lambda: stop_firmly(task, tries - 1, every_s=every_s))


def is_stopped_from_outside(task: asyncio.Task[Any] | None, error: BaseException) -> bool:
    """Whether this error ends a task because it was cancelled or torn down, and not because its own code raised it. Who
    tears a task down is no part of it.
    """
    if not isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return False
    try:
        is_its_turn = asyncio.current_task() is task
    except RuntimeError:  # the loop is gone
        is_its_turn = False
    return not is_its_turn or (task is not None and task.cancelling() > 0)


async def _conduct(ended: Future[None], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    task = asyncio.current_task()
    try:
        result = function(*arguments)
        if inspect.isawaitable(result):
            await result
    except BaseException as error:  # noqa: BLE001 - handed to the engine, whatever it is
        _fill(ended, asyncio.CancelledError() if is_stopped_from_outside(task, error) else error)
    else:
        _fill(ended, None)


def _fill(ended: Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)
