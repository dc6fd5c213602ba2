"""No-op workflows of DBOS on SQLite: `dbos_noops FILE RUNS`. Started by the Python of DBOS's own environment.

As engine_noops does: one step each. One caller after the other, which costs DBOS least; its administrative server and
its log are off. Then one workflow takes steps one after the other.
"""

import asyncio
import logging
import sys
import time

from dbos import DBOS  # pyright: ignore[reportMissingImports]

from benchmarks.processes import loop_ms, print_figures

_STEPS = 1000


@DBOS.step()
async def nothing() -> None:
    pass


@DBOS.workflow()
async def noop(number: int) -> int:
    await nothing()
    return number


@DBOS.workflow()
async def stepping() -> None:
    for _ in range(_STEPS):
        await nothing()


async def main(path: str, runs: int) -> None:
    logging.disable(logging.CRITICAL)
    DBOS(config={"name": "noops", "system_database_url": f"sqlite:///{path}", "run_admin_server": False})
    DBOS.launch()
    await noop(-1)
    began_s = time.process_time()
    for number in range(runs):
        assert await noop(number) == number
    ran_s = time.process_time()
    await stepping()
    stepped_s = time.process_time()
    DBOS.destroy()
    print_figures(cpu_us=(ran_s - began_s) / runs * 1e6, step_us=(stepped_s - ran_s) / _STEPS * 1e6, loop_ms=loop_ms())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
