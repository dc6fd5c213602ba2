"""One task in one of our workers, from its start to its end."""

from collections.abc import Callable
from typing import Any

from headrace.workers.functions import refer_to
from headrace.workers.handle import TaskEnd, Worker
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import TaskMessage


async def run_task(worker: Worker, function: Callable[..., Any], payload: bytes) -> TaskEnd:
    worker.start(refer_to(function), payload)
    while isinstance(message := await worker.receive(), TaskMessage):
        pass
    return message


async def run_in(pool: WorkerPool, function: Callable[..., Any], payload: bytes, limit_bytes: int) -> TaskEnd:
    worker = await pool.worker(limit_bytes)
    ending = await run_task(worker, function, payload)
    pool.give_back(worker)
    return ending
