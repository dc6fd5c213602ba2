"""Tasks in workers, from their start to their end, for tests that look at nothing in between."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headrace.workers.functions import refer_to
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import Death, TaskMessage
from tests.workers.trees import soon


async def run_task(
    worker: Worker,
    function: Callable[..., Any],
    payload: bytes = b"",
    on_message: Callable[[bytes], None] | None = None,
) -> TaskEnd:
    """`function(port, payload)` in this worker; its messages go to `on_message`."""
    worker.start(refer_to(function), payload)
    while isinstance(message := await worker.receive(), TaskMessage):
        if on_message is not None:
            on_message(message.payload)
    return message


async def run_in(
    pool: WorkerPool,
    function: Callable[..., Any],
    payload: bytes,
    limit_bytes: int,
    on_message: Callable[[bytes], None] | None = None,
) -> TaskEnd:
    """The same in a worker of this pool, which gets it back."""
    worker = await pool.worker(limit_bytes)
    try:
        ending = await run_task(worker, function, payload, on_message)
    except BaseException:
        worker.kill()
        raise
    pool.give_back(worker)
    return ending


async def stop(worker: Worker, *, terminate_after_s: float, kill_after_s: float, reason: str = "") -> Death:
    """SIGTERM when it has not ended in time, then SIGKILL."""
    for number, patience_s in ((signal.SIGTERM, terminate_after_s), (signal.SIGKILL, kill_after_s)):
        if (await asyncio.wait([worker.ended], timeout=patience_s))[0]:
            break
        worker.kill(number, reason)
    return await asyncio.shield(worker.ended)


async def end_workers(pool: WorkerPool) -> None:
    """Kill all of them, idle and busy; the warden stays."""

    def have_ended() -> bool:
        for pid in pool.pids:
            with suppress(ProcessLookupError):  # just forked, without a group of its own yet; or just ended
                os.killpg(pid, signal.SIGKILL)
        return not pool.pids

    assert await soon(have_ended), "the death of a killed worker was not reported"
