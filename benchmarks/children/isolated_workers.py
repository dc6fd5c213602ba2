"""Our workers from a warm warden: start, round trip, memory, the warden's CPU, and the tasks that peers are given."""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

import headrace.models.services  # noqa: F401 - part of the tree that is weighed
from benchmarks.children import pool_tasks
from benchmarks.children.process_sizes import LargestGrowth, descendants, proportional_kb
from benchmarks.children.worker_tasks import run_in, run_task
from benchmarks.processes import print_figures
from headrace import Engine
from headrace.errors import OptionError
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import TaskDone, TaskOutOfMemory

_LIMIT_BYTES = 100 << 20
_STARTS = 30
_WATCHED_S = 5.0


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _gone(worker: Worker) -> None:
    worker.kill()
    await worker.ended


async def _starts(pool: WorkerPool) -> dict[str, float]:
    there, answered = list[float](), list[float]()
    for _ in range(_STARTS):
        began = time.perf_counter()
        worker = await pool.worker(_LIMIT_BYTES)
        there.append(time.perf_counter() - began)
        await run_task(worker, pool_tasks.echo_in_worker, b"tide")
        answered.append(time.perf_counter() - began)
        await _gone(worker)
    return {"there_ms": statistics.median(there) * 1e3, "start_ms": statistics.median(answered) * 1e3}


async def _trips(pool: WorkerPool) -> float:
    worker = await pool.worker(_LIMIT_BYTES)
    medians_s = [await _median_s(worker) for _ in range(pool_tasks.BATCHES)]
    await _gone(worker)
    return min(medians_s) * 1e6


async def _median_s(worker: Worker) -> float:
    took = list[float]()
    until = time.perf_counter() + pool_tasks.BATCH_S
    while (began := time.perf_counter()) < until:
        ended = await run_task(worker, pool_tasks.echo_in_worker, b"tide")
        took.append(time.perf_counter() - began)
        assert isinstance(ended, TaskDone), ended
    return statistics.median(took)


async def _busy_percent(pid: int) -> float:
    before = _cpu_s(pid)
    await asyncio.sleep(_WATCHED_S)
    return (_cpu_s(pid) - before) / _WATCHED_S * 100


async def _lost(pool: WorkerPool) -> int:
    """Of those that did nothing wrong; two at a time, as the peers have two workers."""
    places = asyncio.Semaphore(2)

    async def ended(number: int) -> TaskEnd:
        async with places:
            return await run_in(pool, pool_tasks.wait_or_die_in_worker, str(number).encode(), _LIMIT_BYTES)

    endings = await asyncio.gather(*map(ended, range(pool_tasks.TASKS)))
    right = [isinstance(one, TaskDone) and int(one.payload) == number for number, one in enumerate(endings)]
    return sum(not is_right for number, is_right in enumerate(right) if number != pool_tasks.KILLER)


async def _runaway(pool: WorkerPool) -> dict[str, Any]:
    with LargestGrowth() as growth:
        megabytes = str(pool_tasks.RUNAWAY_MB).encode()
        ending = await run_in(pool, pool_tasks.run_away_in_worker, megabytes, pool_tasks.LIMIT_BYTES)
    return {
        "peak_bytes": growth.bytes,
        "ended": "MemoryError" if isinstance(ending, TaskOutOfMemory) else type(ending).__name__,
    }


async def _steps() -> dict[str, Any]:
    """Through the engine: the pool alone remembers nothing."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "steps")
        try:
            engine = Engine(Path(directory) / "steps.run", memory="+512MB", isolation="process")
        except OptionError as error:
            return {"steps": None, "finished": str(error)}
        async with engine:
            run = await engine.submit(pool_tasks.take_journaled_steps, path)
            return {"finished": await run.result() == pool_tasks.STEPS, "steps": pool_tasks.steps_taken(path)}


async def _measured() -> dict[str, Any]:
    options = PoolOptions(tasks_per_worker=1 << 30, preload=("benchmarks.children.pool_tasks",))
    began = time.perf_counter()
    async with WorkerPool(options) as pool:
        assert pool.warden_pid is not None
        figures: dict[str, Any] = {"cold_ms": (time.perf_counter() - began) * 1e3, "has_limit": True}
        figures |= await _starts(pool) | {"trip_us": await _trips(pool)}
        figures["alone_percent"] = await _busy_percent(pool.warden_pid)
        workers = [await pool.worker(_LIMIT_BYTES) for _ in range(2)]
        figures["watching_percent"] = await _busy_percent(pool.warden_pid)
        figures["tree_kb"] = proportional_kb(descendants(os.getpid()))
        for worker in workers:
            await _gone(worker)
        figures["lost"] = await _lost(pool)
        figures |= await _runaway(pool)
    return figures | await _steps()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print_figures(**runner.run(_measured()))
