"""Workers from a warm warden, beside concurrent.futures: start, round trip, memory, the warden's CPU, overshoot."""

import asyncio
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.processes import print_figures
from headrace.execute.function_names import refer_to
from headrace.execute.worker_handle import Worker
from headrace.execute.worker_pool import PoolOptions, WorkerPool
from headrace.execute.worker_protocol import Task

_LIMIT_BYTES = 100 << 20
_STARTS = 30
_TRIPS = 2000
_WATCHED_S = 5.0
_MOST_MEGABYTES = 400
_held: list[Any] = []


def echo(port: Any, payload: bytes) -> bytes:
    return payload


def plain_echo(payload: bytes) -> bytes:
    return payload


def take_numpy(port: Any, payload: bytes) -> None:
    import numpy as np

    for _ in range(_MOST_MEGABYTES):
        _held.append(np.ones(1 << 17))  # noqa: PERF401 - one at a time


def take_children(port: Any, payload: bytes) -> None:
    import subprocess

    program = "held = bytearray(b'x') * (30 << 20); import time; time.sleep(60)"
    _held.extend(subprocess.Popen([sys.executable, "-c", program]) for _ in range(8))
    time.sleep(60)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _kilobytes(pid: int, *names: str) -> int:
    told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(found) for name in names for found in re.findall(rf"\n{name}:\s+(\d+)", told))


def _tree_bytes(pid: int) -> int:
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        own = _kilobytes(pid, "Pss_Anon", "Pss_Shmem") << 10
    except OSError:
        return 0
    return own + sum(map(_tree_bytes, children))


async def _gone(worker: Worker) -> None:
    worker.kill()
    await worker.ended


async def _starts(pool: WorkerPool) -> float:
    took: list[float] = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        worker = await pool.worker(_LIMIT_BYTES)
        took.append(time.perf_counter() - began)
        await _gone(worker)
    return statistics.median(took) * 1e3


async def _trips(pool: WorkerPool) -> float:
    worker, entry, took = await pool.worker(_LIMIT_BYTES), refer_to(echo), []
    for number in range(_TRIPS):
        began = time.perf_counter()
        await worker.run(Task(number, 1, entry, b"tide"))
        took.append(time.perf_counter() - began)
    await _gone(worker)
    return statistics.median(took) * 1e6


async def _busy_percent(pid: int) -> float:
    before = _cpu_s(pid)
    await asyncio.sleep(_WATCHED_S)
    return (_cpu_s(pid) - before) / _WATCHED_S * 100


async def _highest(pool: WorkerPool, entry: Callable[..., Any]) -> int:
    worker = await pool.worker(_LIMIT_BYTES)
    running = asyncio.ensure_future(worker.run(Task(1, 1, refer_to(entry))))
    highest = 0
    while not running.done():
        highest = max(highest, _tree_bytes(worker.pid))
        await asyncio.sleep(0.001)
    await _gone(worker)
    return max(highest, getattr(running.result(), "peak_bytes", 0))


async def _ours() -> dict[str, float]:
    options = PoolOptions(tasks_per_worker=1 << 30, preload=("benchmarks.children.isolated_workers",))
    async with WorkerPool(options) as pool:
        assert pool.warden_pid is not None
        figures = {"start_ms": await _starts(pool), "trip_us": await _trips(pool)}
        figures["alone_percent"] = await _busy_percent(pool.warden_pid)
        workers = [await pool.worker(_LIMIT_BYTES) for _ in range(2)]
        figures["watching_percent"] = await _busy_percent(pool.warden_pid)
        pids = [os.getpid(), pool.warden_pid, *(worker.pid for worker in workers)]
        figures["tree_kb"] = sum(_kilobytes(pid, "Pss") for pid in pids)
        figures["own_kb"] = max(_kilobytes(worker.pid, "Private_Dirty") for worker in workers)
        for worker in workers:
            await _gone(worker)
        figures["numpy_bytes"] = max([await _highest(pool, take_numpy) for _ in range(5)])
        figures["children_bytes"] = max([await _highest(pool, take_children) for _ in range(5)])
    return figures


def _peer() -> dict[str, float]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        began = time.perf_counter()
        pool.submit(plain_echo, b"tide").result()
        start_ms = (time.perf_counter() - began) * 1e3
        took: list[float] = []
        for _ in range(_TRIPS):
            began = time.perf_counter()
            pool.submit(plain_echo, b"tide").result()
            took.append(time.perf_counter() - began)
    return {"peer_start_ms": start_ms, "peer_trip_us": statistics.median(took) * 1e6}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(_ours())
    print_figures(**figures, **_peer())
