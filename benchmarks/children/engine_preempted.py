"""Agents that take three times what they declare: `engine_preempted FILE ROUNDS`. Prints how soon memory was free.

Each time one is told to stop, the engine records how long it took until the agent had ended and its memory was given
back. Agents reach a step every 20 ms. To that comes the time until the reading that showed the pressure.
"""

import asyncio
import statistics
import sys

import headrace
from benchmarks.processes import print_figures
from headrace import Engine
from headrace.limits import MemoryLimits
from headrace.memory.measure.own_tree import tree_bytes

MB = 1_000_000
AGENTS = 6


@headrace.task(name="hungry", memory="20MB")
async def hungry(ctx, number: int) -> int:
    held = bytearray(60 * MB)
    held[::4096] = b"x" * len(held[::4096])
    for i in range((ctx.state or {"i": 0})["i"], 20):
        await ctx.step(f"s{i}", asyncio.sleep, 0.02)
        await ctx.checkpoint({"i": i + 1})
    return len(held)


async def one_round(path: str) -> list[float]:
    # Calm soon, so that there is pressure often.
    limits = MemoryLimits(budget_bytes=tree_bytes() + 220 * MB, calm_s=0.1, min_run_s=0.1)
    async with Engine(path, isolation="inline", memory=limits, slots=4, queue_depth=AGENTS) as engine:
        runs = [await engine.submit(hungry, number) for number in range(AGENTS)]
        assert {await run.result() for run in runs} == {60 * MB}
        return [float(event.reason.split()[0]) for event in await engine.events() if event.what == "stopped"]


async def main(path: str, rounds: int) -> None:
    took_ms: list[float] = []
    for number in range(rounds):
        took_ms += await one_round(f"{path}.{number}")
    p95_ms = statistics.quantiles(took_ms, n=20)[-1]
    print_figures(stops=len(took_ms), p50_ms=statistics.median(took_ms), p95_ms=p95_ms)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
