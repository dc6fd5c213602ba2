"""Agents that die of memory once and go on. Prints the milliseconds from each death to the next step of its run.

python -m benchmarks.children.engine_recovery FILE DEATHS
"""

import asyncio
import sys
import time

import headrace
from benchmarks.processes import print_figures
from headrace import Engine

_FAR_TOO_MUCH = 3_000_000_000


def take(size_bytes: int) -> int:
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])
    return len(held)


@headrace.task(name="dying", memory="40MB")
async def dying(ctx) -> float:
    await ctx.step("begin", abs, 1)
    if ctx.attempt == 1:
        await ctx.step("take", take, _FAR_TOO_MUCH)
    return await ctx.step("go on", time.time)


async def main(path: str, deaths: int) -> None:
    took_ms: list[float] = []
    async with Engine(path, memory="+300MB", slots=2, slot_memory="80MB") as engine:
        for _ in range(deaths):
            run = await engine.submit(dying, key=None)
            went_on_at = await run.result()
            (died,) = [
                event for event in await engine.events(20) if event.what == "out of memory" and event.run == run.id
            ]
            took_ms.append((went_on_at - died.at) * 1000)
    took_ms.sort()
    print_figures(p50_ms=took_ms[len(took_ms) // 2], most_ms=took_ms[-1], deaths=len(took_ms))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
