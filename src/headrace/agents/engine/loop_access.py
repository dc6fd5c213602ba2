"""`LoopAccess`: how callers reach an engine's loop, which runs in a thread of its own.

    caller's loop or thread                          the engine's thread
    tell(what)             ── in batches ─────────►  what(loop)
    ask(start)             ─────────────────────►    start(loop, reply)     reply ── in batches ──► the caller's loop
    call(make)             ─────────────────────►    a task of make(loop)   its result, as a reply
    look(make)             ─────────────────────►    make(loop)             its value; the caller's thread waits

Covers: opening and closing the thread, and that no caller is left waiting when the loop ends. Does not cover: the loop
(loop), the verbs that callers use (engine, run_handle).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from headrace.agents.engine.engine_options import EngineOptions
from headrace.agents.workers.engine_workers import EngineWorkers
from headrace.errors import EngineClosed, HeadraceError
from headrace.store.engine_file.engine_file import EngineFile
from headrace.threads.crossing import Crossing, LoopPromise
from headrace.threads.loop_thread import LoopThread

if TYPE_CHECKING:
    from headrace.agents.engine.loop import EngineLoop
    from headrace.agents.nodes.engine_nodes import EngineNodes

Answer = TypeVar("Answer")
_Start: TypeAlias = "Callable[[EngineLoop, LoopPromise[Any]], None]"

_ANSWERS_WITHIN_S = 5.0
_NOT_OPEN = 'Use "async with Engine(...) as engine:".'


class LoopAccess:
    """One engine's thread, from `open` to `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: LoopPromise[None] | None = None
        self._thread: LoopThread[None] | None = None
        self._loop: EngineLoop | None = None
        self._ident = 0
        self._asked: set[LoopPromise[Any]] = set()  # what callers wait for now
        self._called: set[asyncio.Task[Any]] = set()  # what runs for them on the engine's loop
        self._crossing = Crossing(self._wake)
        self._callers: dict[asyncio.AbstractEventLoop, Crossing] = {}  # one as a rule

    async def open(self, options: EngineOptions) -> None:
        if self._thread is not None:
            raise EngineClosed("This engine was opened before.", fix="Make a new one.")
        self._opened = self._reply()
        self._thread = LoopThread(partial(self._main, options), has_network=True)
        self._thread.future.add_done_callback(self._fail_asked)
        self._thread.start()
        await self._opened.future

    async def close(self) -> Future[None]:
        """Have the loop park its runs and end, and wait for that; return the future of the thread, which is done."""
        thread = self._thread
        assert thread is not None
        self.tell(lambda loop: loop.close())
        while not thread.has_ended.is_set:
            with suppress(asyncio.CancelledError):  # parking takes a moment, and is not to be cut short
                await thread.has_ended.reached()
        thread.join()
        return thread.future

    @property
    def stuck(self) -> str | None:
        return self._loop.stuck if self._loop is not None else None

    async def call(
        self, make: Callable[[EngineLoop], Coroutine[Any, Any, Answer]], *, is_cancelled_with_caller: bool = False
    ) -> Answer:
        """Await a coroutine that runs on the engine's loop, and runs on there where the caller is cancelled, unless it
        `is_cancelled_with_caller`.
        """
        tasks: list[asyncio.Task[Answer]] = []  # one, once it has started

        def start(loop: EngineLoop, reply: LoopPromise[Any]) -> None:
            task = asyncio.get_running_loop().create_task(make(loop))
            tasks.append(task)
            self._called.add(task)
            task.add_done_callback(self._called.discard)
            task.add_done_callback(lambda task: _pass_on(task, reply))

        def give_up(_loop: EngineLoop, _reply: LoopPromise[Any]) -> None:
            for task in tasks:
                task.cancel()

        return await self.ask(start, given_up=give_up if is_cancelled_with_caller else None)

    async def ask(self, start: _Start, *, given_up: _Start | None = None) -> Any:
        """Have the loop start something that fills a reply, and await the reply. `given_up` is called on the loop where
        the caller is cancelled before.
        """
        reply = self._reply()
        self._asked.add(reply)
        try:
            self.tell(lambda loop: _begin(loop, reply, start))
            return await reply.future
        except asyncio.CancelledError:
            if given_up is not None:
                with suppress(HeadraceError):  # the engine is closed, and has forgotten it already
                    self.tell(lambda loop: given_up(loop, reply))
            raise
        finally:
            self._asked.discard(reply)

    def look(self, make: Callable[[EngineLoop], Answer]) -> Answer:
        """Return what `make` returns on the loop; works on the engine's own thread too."""
        if threading.get_ident() == self._ident and self._loop is not None:
            return make(self._loop)
        future: Future[Answer] = Future()
        self.tell(lambda loop: _fill(future, loop, make))
        try:
            return future.result(_ANSWERS_WITHIN_S)
        except TimeoutError:
            blocked_by = f" What blocks it:\n{self.stuck}" if self.stuck else ""
            raise EngineClosed(f"The engine's loop does not answer.{blocked_by}") from None

    def tell(self, what: Callable[[EngineLoop], object]) -> None:
        """Call `what` on the loop, soon, without waiting for it."""
        loop, thread = self._loop, self._thread
        if thread is None or loop is None:
            raise EngineClosed("This engine is not open.", fix=_NOT_OPEN)
        if not thread.is_running:
            raise _why_closed(thread)
        self._crossing.call(what, loop)

    def _wake(self, call: Callable[[], None]) -> None:
        if self._thread is not None:
            self._thread.call(call)

    def _reply(self) -> LoopPromise[Any]:
        loop = asyncio.get_running_loop()
        crossing = self._callers.get(loop)
        if crossing is None:
            for ended in [each for each in tuple(self._callers) if each.is_closed()]:
                self._callers.pop(ended, None)  # a service may ask from a loop of its own each time
            crossing = self._callers[loop] = Crossing.to_loop(loop)
        return LoopPromise(crossing)

    async def _main(self, options: EngineOptions) -> None:
        assert self._opened is not None
        self._ident = threading.get_ident()
        workers = EngineWorkers(options.workers, options.memory)
        await workers.start()
        nodes = _nodes_of(options)
        try:
            await self._live(options, workers, nodes, self._opened)
        finally:
            await self._end_called()
            await workers.close()
            if nodes is not None:
                await nodes.close()

    async def _live(
        self, options: EngineOptions, workers: EngineWorkers, nodes: EngineNodes | None, opened: LoopPromise[None]
    ) -> None:
        if nodes is not None:
            await nodes.connect()  # a cluster that is not there is told before a file is made
        from headrace.agents.engine.loop import EngineLoop  # all of surveys too: not for workers, which import Engine

        file = EngineFile.open(self.path)
        with _closed_on_error(file):
            if nodes is not None:
                await nodes.start(file.notes.node_wardens())
                options = options.with_slot_share(nodes.largest_share_bytes)
            self._loop = EngineLoop(file, options, workers, nodes, opened)
        await self._loop.main()

    async def _end_called(self) -> None:
        """Cancel what still runs for callers, who get the error; asyncio would print it while its loop shuts down."""
        called = self._called.copy()
        for task in called:
            task.cancel()
        if called:
            await asyncio.wait(called)

    def _fail_asked(self, ended: Future[None]) -> None:
        """The loop has ended, for whatever reason: give all who wait that error."""
        error = ended.exception() or EngineClosed("The engine was closed.", fix="Open it again to go on.")
        for reply in (self._opened, *list(self._asked)):
            if reply is not None:
                reply.set_exception(error)


@contextmanager
def _closed_on_error(file: EngineFile) -> Generator[None]:
    """Close the file where what follows does not come to use it."""
    try:
        yield
    except BaseException:
        file.close()
        raise


def _nodes_of(options: EngineOptions) -> EngineNodes | None:
    """The nodes of the cluster that the engine is on. Loaded where there is one."""
    if options.cluster is None:
        return None
    from headrace.agents.nodes.engine_nodes import EngineNodes

    return EngineNodes(options.cluster.ray, options.cluster.memory, options.cluster.limits, options.workers)


def _begin(loop: EngineLoop, reply: LoopPromise[Any], start: _Start) -> None:
    try:
        start(loop, reply)
    except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
        reply.set_exception(error)


def _pass_on(task: asyncio.Task[Any], reply: LoopPromise[Any]) -> None:
    if task.cancelled():
        reply.set_exception(EngineClosed("The engine was closed meanwhile.", fix="Open it again to go on."))
    elif (error := task.exception()) is not None:
        reply.set_exception(error)
    else:
        reply.set_result(task.result())


def _fill(future: Future[Answer], loop: EngineLoop, make: Callable[[EngineLoop], Answer]) -> None:
    try:
        future.set_result(make(loop))
    except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
        future.set_exception(error)


def _why_closed(thread: LoopThread[None]) -> BaseException:
    failure = thread.future.exception() if thread.future.done() else None
    return failure or EngineClosed("This engine is closed.", fix=_NOT_OPEN)
