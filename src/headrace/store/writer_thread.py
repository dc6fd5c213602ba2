"""The thread in which a file is written while an event loop runs.

Group commit without a timer: whatever the loop has gathered while one COMMIT ran makes the next one. A survey gathers
rows in its executor's outbox, an engine gathers statements (agents.engine.engine_writer); both commit here.

    loop:      gather ──► call(commit, group) ── gathers meanwhile ──► acknowledge ──► call(commit, next group)
    thread:                   BEGIN ... COMMIT, fsync

Covers: the thread, and its errors in words. Does not cover: what a commit writes (run_file.run_journal,
engine_file.engine_file).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from headrace.store.disk_errors import translated_errors
from headrace.store.live_file import LiveFile

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


class WriterThread:
    """Runs calls that write one file, one at a time and in the order they came."""

    def __init__(self, live: LiveFile) -> None:
        self._live = live
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-journal")

    async def call(self, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        with translated_errors(self._live.path):
            return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def keep_log_short(self) -> None:
        """Bring the log into the file where that is due: for a file that was written and then has no commits."""
        if self._live.has_long_log:
            await self.call(self._live.keep_log_short)

    def close(self) -> None:
        """Wait for the last call and end the thread."""
        self._thread.shutdown()
