"""Delivers results to the caller as they are committed, in its own thread or on its own event loop.

Covers: starting a run, taking its committed rows, and ending it whatever happens to the caller; and showing a notebook
how far it is meanwhile, which only the caller's side can do.
Does not cover: what is done with results (interviews.api).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from headrace.errors import Interrupted
from headrace.interviews.ctrl_c import AsyncioKey, end_in_one_line, say_stopping, say_stopping_now
from headrace.interviews.open_chunks import CommittedRow
from headrace.interviews.standalone import OpenedRun, StandaloneRun
from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.progress.notebook import panel_for
from headrace.progress.pace import Progress
from headrace.progress.refresh import Display
from headrace.results.result import Result
from headrace.store.run_file.header import RunHeader

_POLL_EVERY_S = 0.2
_LOOK_FOR_END_EVERY_S = 0.02
# Python sees a signal between two instructions. One that comes after the last of them, just before the thread is put to
# sleep, does not wake it: a wait without an end would never hear that Ctrl-C.
_WAKE_EVERY_S = 0.5


class _Stops:
    """Asks a run to stop as often as its caller wants, and prints what each Ctrl-C does."""

    def __init__(self, run: StandaloneRun, key: AsyncioKey) -> None:
        self._run = run
        self._key = key
        self._asked = self._said = 0

    def ask(self, wanted: int, *, is_key: bool) -> None:
        """Have asked so often in all. A Ctrl-C may come at any moment of this; it is called again then.

        All lines come first: the run may end an instant after it is asked.
        """
        while self._said < wanted:
            self._said += 1  # before the line: a Ctrl-C right behind it does not have it said twice
            if is_key and self._run.is_running:
                self._say()
        while self._asked < wanted:
            self._run.stop()
            self._asked += 1

    def _say(self) -> None:
        if self._said > 1:
            say_stopping_now()
        else:
            say_stopping(_in_flight(self._run), may_repeat=not self._key.is_elsewhere)


class Delivery:
    """Delivers in the caller's thread. Leaving the block early is a first Ctrl-C, another meanwhile a second."""

    def __init__(
        self,
        job: Job,
        path: str | Path | None,
        options: RunOptions,
        *,
        listening: bool,
        check: Callable[[OpenedRun], None] = lambda _: None,
    ) -> None:
        self._queue: SimpleQueue[list[CommittedRow] | None] = SimpleQueue()
        self._run = StandaloneRun(job, path, options, self._queue.put if listening else None, check)
        panel = panel_for(options.progress_bar)
        self._display = Display(panel)
        self._key = AsyncioKey()
        self._stops = _Stops(self._run, self._key)
        self._look_every_s = (
            panel.every_s if panel is not None else _POLL_EVERY_S if self._key.is_elsewhere else _WAKE_EVERY_S
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_key = kind is KeyboardInterrupt
        wanted_stops = of_the_end = 0 if kind is None else 1
        while True:
            try:
                if isinstance(error, KeyboardInterrupt):
                    end_in_one_line()
                self._end(wanted_stops, is_key=is_key)
                break
            except KeyboardInterrupt:  # another one, which may come at any moment of this
                wanted_stops += 1
        if is_key and isinstance(stopped := self._run.failure(), Interrupted):
            if self._key.is_elsewhere:
                end_in_one_line(under_asyncio=str(stopped))
            raise stopped from None  # the same, but it says what is saved and how to go on
        # A run that was stopped from elsewhere ends with Interrupted, which is a KeyboardInterrupt: one is enough.
        is_told = kind is not None and issubclass(kind, KeyboardInterrupt)
        if wanted_stops > of_the_end and not is_told:
            raise KeyboardInterrupt  # the run has ended, and the program has not

    def _end(self, wanted_stops: int, *, is_key: bool) -> None:
        """End the run with all that belongs to it. Called once more where a Ctrl-C came in between."""
        self._stops.ask(wanted_stops, is_key=is_key or wanted_stops > 1)
        while wanted_stops and self._run.is_running:
            with self._key.received():
                self._run.wait_for_end(_WAKE_EVERY_S)
        self._run.join()
        _close(self._display, self._run)

    def start(self) -> OpenedRun:
        self._run.start()
        with self._key.received():
            while not self._run.wait_for_opening(_WAKE_EVERY_S):
                pass
        opened = self._run.opened.result()
        _show(self._display, self._run)
        return opened

    def results(self, header: RunHeader) -> Iterator[Result]:
        while (batch := self._next_batch()) is not None:
            try:
                for row in batch:
                    yield as_result(row, header)
                    self._run.check_is_here()  # the caller may have forked, and this may be the fork
            finally:
                self._run.delivered(len(batch))

    def finish(self) -> None:
        with self._key.received():
            while not self._run.wait_for_end(self._look_every_s):
                self._look()
        self._run.ended.result()

    def progress(self, every_s: float) -> Iterator[Progress]:
        """How far the run is, every so often until it ends."""
        while not self._run.wait_for_end(every_s):
            if (progress := self._run.progress()) is not None:
                yield progress

    def _next_batch(self) -> list[CommittedRow] | None:
        self._run.check_is_here()
        while True:
            self._look()
            with self._key.received(), suppress(Empty):
                return self._queue.get(timeout=self._look_every_s)

    def _look(self) -> None:
        _show(self._display, self._run)
        if self._key.is_elsewhere and self._key.is_pressed:
            raise KeyboardInterrupt


class AsyncDelivery:
    """Delivers on the caller's event loop. Leaving the block before its end is a first Ctrl-C."""

    def __init__(
        self,
        job: Job,
        path: str | Path | None,
        options: RunOptions,
        *,
        listening: bool,
        check: Callable[[OpenedRun], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[list[CommittedRow] | None] = asyncio.Queue()
        self._run = StandaloneRun(job, path, options, self._deliver if listening else None, check)
        self._panel = panel_for(options.progress_bar)
        self._display = Display(self._panel)
        self._key = AsyncioKey()
        self._stops = _Stops(self._run, self._key)
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._panel is not None:
            self._looking = asyncio.create_task(self._look_every(self._panel.every_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        interruption: BaseException | None = None
        meanwhile = 0
        while True:
            try:
                is_key = self._key.is_pressed and (meanwhile > 0 or kind in {asyncio.CancelledError, KeyboardInterrupt})
                await self._end(self._stops_for(kind) + meanwhile, is_key=is_key)
                break
            except (asyncio.CancelledError, KeyboardInterrupt) as another:  # asyncio raises it wherever the program is
                if not isinstance(interruption, KeyboardInterrupt):
                    interruption = another
                meanwhile += 1
        # What leaves the block may be caught, or be no error: it does not stand for what came meanwhile.
        is_told = kind is not None and issubclass(kind, (KeyboardInterrupt, type(interruption)))
        if interruption is not None and not is_told:
            raise interruption

    def _stops_for(self, kind: type[BaseException] | None) -> int:
        # asyncio's first Ctrl-C cancels the task. KeyboardInterrupt is its second.
        is_second = kind is KeyboardInterrupt and self._key.is_pressed
        return 0 if kind is None else 2 if is_second else 1

    async def _end(self, wanted_stops: int, *, is_key: bool) -> None:
        """End the run with all that belongs to it. Called once more where a Ctrl-C came in between."""
        self._stops.ask(wanted_stops, is_key=is_key)
        # Looked at, not waited for: on whatever loop this is, and without a lock that a Ctrl-C could leave held.
        while wanted_stops and self._run.is_running:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_FOR_END_EVERY_S)
        self._run.join()
        if self._looking is not None and not self._loop.is_closed():
            self._looking.cancel()
        _close(self._display, self._run)
        if is_key and isinstance(stopped := self._run.failure(), Interrupted):
            end_in_one_line(under_asyncio=str(stopped))

    async def _look_every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            _show(self._display, self._run)

    async def start(self) -> OpenedRun:
        self._run.start()
        await self._run.opening()
        opened = self._run.opened.result()
        _show(self._display, self._run)
        return opened

    async def results(self, header: RunHeader) -> AsyncIterator[Result]:
        self._run.check_is_here()
        while (batch := await self._queue.get()) is not None:
            try:
                for row in batch:
                    yield as_result(row, header)
                    self._run.check_is_here()  # the caller may have forked, and this may be the fork
            finally:
                self._run.delivered(len(batch))

    async def finish(self) -> None:
        await self._run.end()
        self._run.ended.result()

    def _deliver(self, batch: list[CommittedRow] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, batch)
        except RuntimeError:
            self._run.stop()  # the caller's loop is closed: nothing can be delivered any more


def _in_flight(run: StandaloneRun) -> int:
    progress = run.progress()
    return (progress.in_flight or 0) if progress is not None else 0


def _show(display: Display, run: StandaloneRun) -> None:
    if (progress := run.progress()) is not None:
        display.show(progress)


def _close(display: Display, run: StandaloneRun) -> None:
    if (progress := run.progress()) is not None:
        display.close(progress)


def as_result(committed: CommittedRow, header: RunHeader) -> Result:
    return Result.from_row(committed.row, committed.agent, committed.scenario, header)
