"""The four ways to run a job, and making one from its file. Covers: the caller's side, in a thread or an event loop.

`run` and `stream` serve the caller's own thread: callbacks are called there, and Ctrl-C arrives there as
KeyboardInterrupt; no signal handler is installed. `run_async` and `astream` do the same on the caller's event loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from headrace.errors import Interrupted, OptionError, nearest
from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.results.result import Result
from headrace.results.results import Results
from headrace.runtime.session import Opened, Session
from headrace.runtime.survey_run import Sealed
from headrace.store.book import RunBook
from headrace.store.lists import read_job

_CHECK_EVERY_S = 0.2


def run(job: Job, path: str | Path | None, on_result: Callable[[Result], None] | None, **settings: Any) -> Results:
    if on_result is not None and inspect.iscoroutinefunction(on_result):
        raise OptionError("on_result is async, and run() has no event loop to call it on.", fix="Use run_async().")
    queue: SimpleQueue[list[Sealed] | None] = SimpleQueue()
    session = Session(job, path, _options(settings), queue.put if on_result else None)
    try:
        if on_result is not None:
            _pump(session, queue, on_result)
        else:
            _wait(session)
        return Results.open(session.path)
    finally:
        session.join()


def stream(job: Job, path: str | Path | None, *, new_only: bool, **settings: Any) -> Iterator[Result]:
    queue: SimpleQueue[list[Sealed] | None] = SimpleQueue()
    session = Session(job, path, _options(settings), queue.put)
    try:
        opened = session.opened.result()
        if not new_only:
            yield from _stored(opened)
        while (batch := queue.get()) is not None:
            try:
                for sealed in batch:
                    yield _result(sealed, opened.book)
            finally:
                session.delivered(len(batch))
        session.ended.result()
    except BaseException:
        session.stop()
        _drain(session, queue)
        raise
    finally:
        session.join()


async def run_async(
    job: Job,
    path: str | Path | None,
    on_result: Callable[[Result], Awaitable[None] | None] | None,
    **settings: Any,
) -> Results:
    results = _Arrivals(job, path, settings, listening=on_result is not None)
    async with results:
        opened = await results.opened()
        if on_result is not None:
            async for result in results.each(opened.book):
                if (waiting := on_result(result)) is not None:
                    await waiting
        await results.ended()
    return Results.open(opened.path)


async def astream(job: Job, path: str | Path | None, *, new_only: bool, **settings: Any) -> AsyncIterator[Result]:
    results = _Arrivals(job, path, settings, listening=True)
    async with results:
        opened = await results.opened()
        if not new_only:
            for result in _stored(opened):
                yield result
        async for result in results.each(opened.book):
            yield result
        await results.ended()


def job_from_file(cls: type[Job], path: str | Path) -> Job:
    del cls
    return read_job(Path(path))


class _Arrivals:
    """A session on the caller's event loop. Leaving the block before its end is a first Ctrl-C."""

    def __init__(self, job: Job, path: str | Path | None, settings: dict[str, Any], *, listening: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[list[Sealed] | None] = asyncio.Queue()
        self._session = Session(job, path, _options(settings), self._deliver if listening else None)
        self._listening = listening

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *failure: object) -> None:
        if not self._session.ended.done():
            if failure[0] is not None:
                self._session.stop()
            drained = asyncio.ensure_future(self._drain())
            await asyncio.wait([asyncio.wrap_future(self._session.ended)])
            drained.cancel()
        self._session.join()

    async def opened(self) -> Opened:
        return await asyncio.wrap_future(self._session.opened)

    async def ended(self) -> None:
        await asyncio.wrap_future(self._session.ended)

    async def each(self, book: RunBook) -> AsyncIterator[Result]:
        while (batch := await self._queue.get()) is not None:
            try:
                for sealed in batch:
                    yield _result(sealed, book)
            finally:
                self._session.delivered(len(batch))

    async def _drain(self) -> None:
        while self._listening and (batch := await self._queue.get()) is not None:
            self._session.delivered(len(batch))

    def _deliver(self, batch: list[Sealed] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, batch)
        except RuntimeError:
            self._session.stop()  # the caller's loop is gone: nobody will take this, or anything after it


def _options(settings: dict[str, Any]) -> RunOptions:
    known = {field.name for field in dataclasses.fields(RunOptions)}
    for name in settings:
        if name not in known:
            raise OptionError(f"There is no option {name!r}.", fix=nearest(name, known))
    return RunOptions(**settings)


def _result(sealed: Sealed, book: RunBook) -> Result:
    return Result.from_row(sealed.row, sealed.agent, sealed.scenario, book)


def _stored(opened: Opened) -> Iterator[Result]:
    """The results that were there before this run, whatever is added to the file meanwhile."""
    if not opened.stored.count:
        return
    with Results.open(opened.path) as results:
        left = opened.stored.count_below(opened.stop)
        for result in results:
            if left == 0:
                return
            if result.ordinal < opened.stop and result.ordinal in opened.stored:
                left -= 1
                yield result


def _pump(session: Session, queue: SimpleQueue[list[Sealed] | None], on_result: Callable[[Result], None]) -> None:
    """Call back for each sealed interview until the run has ended."""
    try:
        book = session.opened.result().book
        while (batch := queue.get()) is not None:
            try:
                for sealed in batch:
                    on_result(_result(sealed, book))
            finally:
                session.delivered(len(batch))
        session.ended.result()
    except KeyboardInterrupt:
        session.stop()
        _drain(session, queue)
        session.ended.result()
        raise
    except BaseException:
        session.stop()
        _drain(session, queue)
        raise


def _wait(session: Session) -> None:
    while True:
        try:
            session.ended.result()
            return
        except Interrupted:
            raise
        except KeyboardInterrupt:
            session.stop()


def _drain(session: Session, queue: SimpleQueue[list[Sealed] | None]) -> None:
    """Let a run that was told to stop end, giving its places free without anyone looking."""
    while not session.ended.done():
        try:
            if (batch := queue.get()) is None:
                return
            session.delivered(len(batch))
        except KeyboardInterrupt:
            session.stop()
