"""A controller to be killed: two workers, each with a child that sleeps."""

import asyncio
import multiprocessing
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from headrace.workers.functions import refer_to
from headrace.workers.pool import WorkerPool
from tests.workers import entries
from tests.workers.tasks import run_task


async def main(with_fork: bool) -> None:
    async with WorkerPool() as pool:
        for _ in range(2):
            worker = await pool.worker(80 << 20)
            await run_task(worker, entries.leave_a_child)
            worker.start(refer_to(entries.wait))
        bystanders = []
        if with_fork:
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
            child.start()
            bystanders.append(child.pid)
        print("ready", *bystanders, flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(bool(sys.argv[1])))
