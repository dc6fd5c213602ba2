"""Writes of the engine, a transaction a batch: whatever came while the last COMMIT ran makes the next one.

Covers: order, waiting for the disk, and what happens after it. Does not cover: what is written
(store.engine_file).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.engine_file.engine_values import Write


class EngineWriter:
    """`run` is its loop; everything else is called on the same loop, but for `write_now`."""

    def __init__(self, file: EngineFile) -> None:
        self._file = file
        self._writes: list[Write] = []
        self._after: list[Callable[[], object]] = []
        self._wanted = asyncio.Event()
        self._lock = threading.Lock()
        self._is_writing = False
        self.commits = 0

    def write(self, writes: list[Write]) -> None:
        self._writes += writes
        self._wanted.set()

    def after_commit(self, call: Callable[[], object]) -> None:
        """Call it when everything written so far is on disk."""
        self._after.append(call)
        self._wanted.set()

    async def flush(self) -> None:
        """Return when everything written so far is on disk."""
        if not self._writes and not self._after and not self._is_writing:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.after_commit(lambda: done.done() or done.set_result(None))
        await done

    def write_now(self, writes: list[Write]) -> None:
        """From another thread, while the loop is stuck."""
        self._commit(writes)

    def keep_log_short(self) -> None:
        """From another thread; for an engine that has written and then has nothing to write."""
        with self._lock, translated_errors(self._file.path):
            self._file.live.keep_log_short()

    def close_file(self) -> None:
        """When nothing is written any more; a checkpoint that is under way in another thread ends first."""
        with self._lock:
            self._file.close()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="headrace-journal") as thread:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                writes, after = self._writes, self._after
                self._writes, self._after = [], []
                if writes:
                    self._is_writing = True
                    await loop.run_in_executor(thread, self._commit, writes)
                    self._is_writing = False
                    self.commits += 1
                for call in after:
                    call()

    def _commit(self, writes: list[Write]) -> None:
        with self._lock, translated_errors(self._file.path):
            self._file.commit(writes)
