"""Ends a run before its plan: because somebody asked for it, or with an error.

    first request, or an error    admit nothing more; interviews in flight, which are paid for, end and get rows
    second request                stop now; what is journaled stays

Covers: telling the executor, and giving up on chunks that will not even be killed. Does not cover: who asks
(interviews.standalone, interviews.steering), or the error of a run that was stopped (interviews.session).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from headrace.errors import HeadraceError
from headrace.executor import Signal
from headrace.interviews.admission import Admission
from headrace.interviews.contract import InterviewExecutor
from headrace.interviews.open_chunks import OpenChunks

_KILL_WITHIN_S = 5.0


class RunStop:
    """`changed` is set whenever the run may have ended. `is_abandoned`: it ends with chunks that would not end."""

    def __init__(
        self, admission: Admission, chunks: OpenChunks, executor: InterviewExecutor, changed: asyncio.Event
    ) -> None:
        self._admission = admission
        self._chunks = chunks
        self._executor = executor
        self._changed = changed
        self._background: set[asyncio.Future[None]] = set()  # the loop itself would not keep them alive
        self.requests = 0
        self.failure: HeadraceError | None = None
        self.is_abandoned = False

    def request(self) -> None:
        self.requests += 1
        self._stop(Signal.CANCEL if self.requests == 1 else Signal.KILL)

    def request_now(self) -> None:
        """Like two requests at once."""
        self.requests = max(self.requests, 1)
        self.request()

    def fail(self, error: HeadraceError) -> None:
        """End the run with this error, unless it has another already."""
        self.failure = self.failure or error
        self._stop(Signal.CANCEL)

    def do_beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have something done meanwhile; the run ends with its error, where it has one. A loop that ends before it had
        its turn never calls it.
        """
        task = asyncio.ensure_future(self._guarded(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except HeadraceError as error:
            self.fail(error)

    def _stop(self, what: Signal) -> None:
        self._admission.stop()
        self._changed.set()
        self.do_beside(partial(self._signal_all, what))

    async def _signal_all(self, what: Signal) -> None:
        signals = (self._executor.signal(chunk.id, chunk.epoch, what, _KILL_WITHIN_S) for chunk in self._chunks)
        if any(await asyncio.gather(*signals, return_exceptions=True)):
            self.is_abandoned = True
            self._changed.set()
