"""`EngineWriter` commits the engine's writes in batches: those that came while the last COMMIT ran make the next.

Covers: order, waiting for the disk, and callbacks after it. Does not cover: the statements (store.engine_file).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.store.disk_errors import translated_errors
from headrace.store.engine_file.engine_file import EngineFile
from headrace.store.engine_file.engine_values import Write
from headrace.store.writer_thread import WriterThread


class EngineWriter:
    """`run` is its loop; everything else is called on the same loop, but for `write_now`."""

    def __init__(self, file: EngineFile) -> None:
        self._file = file
        self._thread = WriterThread(file.live)
        self._writes: list[Write] = []
        self._after: list[Callable[[], object]] = []
        self._wanted = asyncio.Event()
        self._is_writing = False
        self.beside: Callable[[], list[Write]] = list  # what is written only where something else is

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
        """Commit from another thread, while the loop is stuck."""
        with translated_errors(self._file.path):
            self._file.commit(writes)

    async def keep_log_short(self) -> None:
        """Bring the log into the file where that is due: for an engine that wrote and then has nothing to write."""
        await self._thread.keep_log_short()

    async def run(self) -> None:
        """Commit what was written, group by group, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            writes, after = self._writes, self._after
            self._writes, self._after = [], []
            if writes:
                writes += self.beside()
                self._is_writing = True
                await self._thread.call(self._file.commit, writes)
                self._is_writing = False
            for call in after:
                call()

    def close_file(self) -> None:
        """Close the file once the commit in flight has ended."""
        self._thread.close()
        self._file.close()
