"""Runs a user's own SQL in threads of its own. The caller waits beside it, where a Ctrl-C and the clock are noticed at
once, and then interrupts SQLite: one step of such a query may take seconds, and Python sees nothing meanwhile.

Does not cover: the query (store.run_file.user_sql), steps that would take hours (query_limits).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
        thread = _QueryThread(work)
        with self._memory:
            thread.start()
            try:
                while not thread.is_over.wait(_LOOK_EVERY_S):
                    self._clock.check()
                    self._memory.check()
            except BaseException:
                # Again and again: an interrupt between two statements goes unnoticed.
                while not thread.is_over.wait(_INTERRUPT_EVERY_S):
                    self._connection.interrupt()
                raise
            finally:
                thread.join()
        return thread.result()


class _QueryThread(threading.Thread, Generic[Found]):
    def __init__(self, work: Callable[[], Found]) -> None:
        super().__init__(name="headrace-query", daemon=True)
        self._work = work
        self._found: list[Found] = []
        self._error: BaseException | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._error = error
        finally:
            self.is_over.set()

    def result(self) -> Found:
        if isinstance(self._error, apsw.NoMemError):
            raise QueryTooLarge(MOST_MEMORY_BYTES) from None
        if self._error is not None:
            raise self._error
        return self._found[0]
