"""No-op agent runs with one journaled step each: `engine_noops FILE RUNS`. Prints what one costs.

CPU is the whole process's, from the first submission to the last result: the caller's loop, the engine's and the
journal. Then one agent takes steps one after the other, each timed from its function's end to its return.
"""

import asyncio
import statistics
import sys
import time

import headrace
from benchmarks.processes import loop_ms, print_figures
from headrace import Engine

_SLOTS = 64
_CALLERS = 256
_STEPS = 1000


async def nothing() -> None:
    pass


@headrace.task(name="noop", memory="1MB")
async def noop(ctx, number: int) -> int:
    await ctx.step("only", nothing)
    return number


_ended_s: list[float] = []


async def note_end() -> None:
    _ended_s.append(time.perf_counter())


@headrace.task(name="stepping", memory="1MB")
async def stepping(ctx) -> list[float]:
    took_ms: list[float] = []
    for number in range(_STEPS):
        await ctx.step(f"s{number}", note_end)
        took_ms.append((time.perf_counter() - _ended_s.pop()) * 1000)
    return took_ms


async def main(path: str, runs: int) -> None:
    async with Engine(path, isolation="inline", memory="+256MB", slots=_SLOTS, queue_depth=_CALLERS) as engine:
        numbers = iter(range(runs))

        async def call() -> None:
            for number in numbers:
                run = await engine.submit(noop, number)
                assert await run.result() == number

        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        await asyncio.gather(*(call() for _ in range(_CALLERS)))
        cpu_s, wall_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
        took_ms = await (await engine.submit(stepping)).result()
        peak_bytes = engine.status().peak_bytes
    hundredths = statistics.quantiles(took_ms, n=100)
    print_figures(
        cpu_us=cpu_s / runs * 1e6,
        wall_s=wall_s,
        p50_ms=hundredths[49],
        p99_ms=hundredths[98],
        peak_bytes=peak_bytes,
        loop_ms=loop_ms(),
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
