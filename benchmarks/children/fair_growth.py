"""The scenario of benchmarks.fairness in which a HIGH and a LOW run grow alike, to more than fits beside each other."""

from __future__ import annotations

import asyncio
import time

import headrace
from benchmarks.children.fair_stage import PriorityPool, Scenario, Stage, Waits, since, sleeping
from benchmarks.children.fair_starts import holding
from headrace import Engine, Priority

BLOCKS, BLOCK_MB, BLOCK_S = 30, 10, 0.1
TOP_STEPS = {Priority.LOW: 40, Priority.HIGH: 8}
TOP_S = 0.25
AHEAD_S = 2.0


@headrace.task(name="fair growing", memory="100MB")
async def growing(ctx, top_steps: int) -> float:
    held: list[bytearray] = []
    for i in range(BLOCKS):
        held.append(holding(BLOCK_MB))
        await ctx.step(f"grow {i}", asyncio.sleep, BLOCK_S)
    for i in range(top_steps):
        await ctx.step(f"top {i}", asyncio.sleep, TOP_S)
    assert len(held) == BLOCKS
    return time.time()


async def growing_alike(stage: Stage) -> Waits:
    """LOW begins two seconds earlier and stays at its top for 10 s; HIGH grows as fast and stays for 2 s."""
    waits: dict[str, list[float | None]] = {}
    async with stage.engine() as engine:
        for number in range(stage.size(3, 1)):
            for label, told in (await _one_pair(engine, number)).items():
                waits.setdefault(label, []).append(told)
    return waits


async def _one_pair(engine: Engine, number: int) -> dict[str, float | None]:
    low_at = time.time()
    low = await engine.submit(growing, TOP_STEPS[Priority.LOW], key=f"low {number}", priority=Priority.LOW)
    await asyncio.sleep(AHEAD_S)
    high_at = time.time()
    high = await engine.submit(growing, TOP_STEPS[Priority.HIGH], key=f"high {number}", priority=Priority.HIGH)
    high_s, low_s = await asyncio.gather(since(high_at, high), since(low_at, low))
    died = [event.run for event in await engine.events() if event.what == "out of memory"]
    ends = {"HIGH, until its end": high_s, "LOW, until its end": low_s}
    return {**ends, "HIGH, deaths": float(died.count(high.id)), "LOW, deaths": float(died.count(low.id))}


async def pool_growing_alike(_: Stage) -> Waits:
    async with PriorityPool() as pool:
        low = asyncio.ensure_future(pool.timed(_service(Priority.LOW), Priority.LOW))
        await asyncio.sleep(AHEAD_S)
        high_s = await pool.timed(_service(Priority.HIGH), Priority.HIGH)
        ends = {"HIGH, until its end": [high_s], "LOW, until its end": [await low]}
    return {**ends, "HIGH, deaths": [0.0], "LOW, deaths": [0.0]}


def _service(level: Priority):
    return sleeping(BLOCKS * BLOCK_S + TOP_STEPS[level] * TOP_S)


SCENARIOS = {"growing_alike": Scenario(growing_alike, pool_growing_alike)}
