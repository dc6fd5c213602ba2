"""Results as they arrive at the caller, in its own thread or on its own event loop.

Covers: starting a session, taking what it seals, and ending it whatever happens to the caller.
Does not cover: what is done with results (runtime.surveys).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import wait
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from headrace.errors import Interrupted
from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.results.result import Result
from headrace.runtime.session import Opened, Session
from headrace.runtime.survey_run import Progress, Sealed
from headrace.store.book import RunBook


class Arrivals:
    """In the caller's thread. Leaving the block before its end is a first Ctrl-C; a Ctrl-C while leaving, a second."""

    def __init__(self, job: Job, path: str | Path | None, options: RunOptions, *, listening: bool) -> None:
        self._queue: SimpleQueue[list[Sealed] | None] = SimpleQueue()
        self._session = Session(job, path, options, self._queue.put if listening else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._session.stop()
            self._wait_for_end()
        self._session.join()
        if kind is KeyboardInterrupt and isinstance(stopped := self._session.failure(), Interrupted):
            raise stopped from None  # the same, but it says what is saved and how to go on

    def opened(self) -> Opened:
        self._session.start()
        return self._session.opened.result()

    def each(self, book: RunBook) -> Iterator[Result]:
        while (batch := self._queue.get()) is not None:
            try:
                for sealed in batch:
                    yield as_result(sealed, book)
            finally:
                self._session.delivered(len(batch))

    def ended(self) -> None:
        self._session.ended.result()

    def progress(self, every_s: float) -> Iterator[Progress]:
        """How far the run is, every so often until it ends."""
        while wait([self._session.ended], every_s).not_done:
            if (progress := self._session.progress()) is not None:
                yield progress

    def _wait_for_end(self) -> None:
        while self._session.is_running:
            try:
                self._session.ended.exception()
            except KeyboardInterrupt:
                self._session.stop()


class AsyncArrivals:
    """On the caller's event loop. Leaving the block before its end is a first Ctrl-C."""

    def __init__(self, job: Job, path: str | Path | None, options: RunOptions, *, listening: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[list[Sealed] | None] = asyncio.Queue()
        self._session = Session(job, path, options, self._deliver if listening else None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._session.stop()
            await self._wait_for_end()
        self._session.join()

    async def _wait_for_end(self) -> None:
        if not self._session.is_running:
            return
        ended = asyncio.wrap_future(self._session.ended)
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError:
                self._session.stop()
        ended.exception()  # looked at: it is the caller's own error that goes on from here

    async def opened(self) -> Opened:
        self._session.start()
        return await asyncio.wrap_future(self._session.opened)

    async def each(self, book: RunBook) -> AsyncIterator[Result]:
        while (batch := await self._queue.get()) is not None:
            try:
                for sealed in batch:
                    yield as_result(sealed, book)
            finally:
                self._session.delivered(len(batch))

    async def ended(self) -> None:
        await asyncio.wrap_future(self._session.ended)

    def _deliver(self, batch: list[Sealed] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, batch)
        except RuntimeError:
            self._session.stop()  # the caller's loop is gone: nobody will take this, or anything after it


def as_result(sealed: Sealed, book: RunBook) -> Result:
    return Result.from_row(sealed.row, sealed.agent, sealed.scenario, book)
