"""Runs a user's own SQL in threads of its own. The caller waits beside it, where a Ctrl-C and the clock are noticed at
once, and then interrupts SQLite: one step of such a query may take seconds, and Python sees nothing meanwhile.

Does not cover: the query (store.run_file.user_sql), steps that would take hours (query_limits).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import apsw

from headrace.errors import QueryTooLarge
from headrace.store.queries.query_clock import QueryClock
from headrace.store.queries.query_limits import MOST_MEMORY_BYTES, MemoryBound

_LOOK_EVERY_S = 0.05
_INTERRUPT_EVERY_S = 0.01

Found = TypeVar("Found")


class UserQuery:
    """One query of a user's on a connection of its own, run piece by piece, in bounded time and memory."""

    def __init__(self, connection: apsw.Connection, clock: QueryClock) -> None:
        self._connection = connection
        self._clock = clock
        self._memory = MemoryBound()

    def run(self, work: Callable[[], Found]) -> Found:
        """What `work` returns, which uses the connection; it is ended by QueryTimeout, QueryTooLarge, or whatever the
        caller's thread is interrupted by.
        """
        self._check()  # a query of many short pieces has its limits too
        thread = _QueryThread(work)
        with self._memory:
            try:
                thread.start()
                while thread.is_busy_after(_LOOK_EVERY_S):
                    self._check()
            except BaseException:
                self._end(thread)
                raise
        thread.join()
        return thread.result()

    def _check(self) -> None:
        self._clock.check()
        self._memory.check()

    def _end(self, thread: _QueryThread[Any]) -> None:
        """Return when the thread uses the connection no more. A second Ctrl-C meanwhile changes nothing."""
        while thread.is_using_the_connection():
            try:
                # Again and again: an interrupt between two statements goes unnoticed.
                self._connection.interrupt()
                time.sleep(_INTERRUPT_EVERY_S)
            except KeyboardInterrupt:
                continue


class _QueryThread(threading.Thread, Generic[Found]):
    """Its ways to say something survive a Ctrl-C in the waiting thread at any moment, which an Event's lock does not: a
    SimpleQueue, and a flag that is only ever set.
    """

    def __init__(self, work: Callable[[], Found]) -> None:
        super().__init__(name="headrace-query", daemon=True)
        self._work = work
        self._permit: SimpleQueue[None] = SimpleQueue()  # taken once: to begin, or so that it never begins
        self._permit.put(None)
        self._over: SimpleQueue[None] = SimpleQueue()
        self._is_over = False
        self._found: list[Found] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        if not self._takes_the_permit():
            return
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._error = error
        finally:
            self._is_over = True
            self._over.put(None)

    def is_busy_after(self, wait_s: float) -> bool:
        try:
            self._over.get(timeout=wait_s)
        except Empty:
            return not self._is_over
        return False

    def is_using_the_connection(self) -> bool:
        """False from the moment the thread has ended, and where it has not begun: it then never does."""
        if self._takes_the_permit():
            self._is_over = True
        return not self._is_over

    def _takes_the_permit(self) -> bool:
        try:
            self._permit.get_nowait()
        except Empty:
            return False
        return True

    def result(self) -> Found:
        if isinstance(self._error, apsw.NoMemError):
            raise QueryTooLarge(MOST_MEMORY_BYTES) from None
        if self._error is not None:
            raise self._error
        return self._found[0]
