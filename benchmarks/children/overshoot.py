"""How far each allocator gets beyond its limit, as an independent sampler sees it: `overshoot REPEATS LIMIT_MB...`.

Then two workers at once inside one budget, with a reserve for each: whether the whole tree stays below it.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.children import allocators
from benchmarks.children.sampled import started_sampler
from benchmarks.children.tree_sampler import resident_bytes
from benchmarks.children.worker_tasks import run_task
from benchmarks.processes import print_figures
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import Death, TaskOutOfMemory

_BUDGET_BYTES = 512_000_000
_RESERVE_BYTES = 8 << 20  # kept of the budget for each worker: what can be written between two looks


async def main(repeats: int, limits_mb: list[int]) -> dict[str, Any]:
    async with WorkerPool(PoolOptions(preload=("benchmarks.children.allocators",), most_idle=0)) as pool:
        overshoot = [
            await _worst(pool, allocator, limit_mb << 20, repeats)
            for allocator in (*allocators.ALL, *allocators.UNSEEN)
            for limit_mb in limits_mb
        ]
        whole = [await _two_at_once(pool, allocator) for allocator in allocators.ALL]
    return {"overshoot": overshoot, "whole": whole, "budget_bytes": _BUDGET_BYTES, "reserve_bytes": _RESERVE_BYTES}


async def _worst(pool: WorkerPool, allocator: Callable[..., Any], limit_bytes: int, repeats: int) -> dict[str, Any]:
    seen = [await _watched(pool, allocator, [limit_bytes]) for _ in range(repeats)]
    return {
        "allocator": allocator.__name__,
        "limit_bytes": limit_bytes,
        "peak_bytes": max(one["peak_bytes"] for one in seen),
        "longest_ms": max(one["longest_ms"] for one in seen),
        "ended": ", ".join(sorted({ended for one in seen for ended in one["ended"]})),
    }


async def _two_at_once(pool: WorkerPool, allocator: Callable[..., Any]) -> dict[str, Any]:
    assert pool.warden_pid is not None
    left = _BUDGET_BYTES - resident_bytes(os.getpid()) - resident_bytes(pool.warden_pid)
    seen = await _watched(pool, allocator, [left // 2 - _RESERVE_BYTES] * 2)
    return {"allocator": allocator.__name__, "whole_bytes": seen["whole_bytes"]}


async def _watched(pool: WorkerPool, allocator: Callable[..., Any], limits_bytes: Sequence[int]) -> dict[str, Any]:
    """All start together; `peak_bytes` is theirs together."""
    workers = [await pool.worker(limit) for limit in limits_bytes]
    pids = [os.getpid(), pool.warden_pid, *(worker.pid for worker in workers)]
    sampler = await started_sampler(*pids)
    endings = await asyncio.gather(*(_run(worker, allocator) for worker in workers))
    told, _ = await sampler.communicate(b"end")
    figures = json.loads(told)
    # A fork's copies of what it shares are seen by the warden alone.
    deaths = [ending.peak_bytes for ending in endings if isinstance(ending, Death)]
    if len(workers) == 1 and deaths:
        figures["deaths"] = deaths
        figures["peak_bytes"] = max(figures["peak_bytes"], *deaths)
    if allocator in allocators.UNSEEN:
        figures["peak_bytes"] = max(figures["peak_bytes"], figures["host_shared_bytes"])
    return figures | {"ended": [_told(ending) for ending in endings]}


async def _run(worker: Worker, allocator: Callable[..., Any]) -> TaskEnd:
    directory = Path(tempfile.mkdtemp(prefix="headrace-", dir="/dev/shm"))
    try:
        ending = await run_task(worker, allocator, bytes(directory))
        worker.kill()
        await worker.ended
    finally:
        shutil.rmtree(directory)
    return ending


def _told(ending: TaskEnd) -> str:
    match ending:
        case TaskOutOfMemory():
            return "MemoryError"
        case Death():
            return f"killed, {ending.kind.value}"
        case _:
            return type(ending).__name__


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print_figures(**runner.run(main(int(sys.argv[1]), [int(limit) for limit in sys.argv[2:]])))
