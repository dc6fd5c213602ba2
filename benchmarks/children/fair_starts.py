"""Scenarios of benchmarks.fairness about starts: who waits for a slot or for memory, and behind whom.

Covers: a second kind beside a run that is there, agents of many sizes, work of a higher priority behind LOW work, and
users behind a runaway. Does not cover: runs that grow (fair_growth).
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import headrace
from benchmarks.children.fair_stage import PriorityPool, Scenario, Stage, Waits, now, since, sleeping, until
from headrace import Priority
from headrace.errors import RunFailed

MB = 1_000_000
STEP_S = 0.5
_AGENTS = 24
_ALIKE_MB = 120
_AGENT_STEPS = 4
_WORKER_MB = 15  # what a run takes beside what it holds
_RUNAWAY_MB = 3_000
_LATER_S = 1.0


def holding(size_mb: int) -> bytearray:
    held = bytearray(size_mb * MB)
    held[::4096] = b"x" * len(held[::4096])  # an untouched page takes no memory
    return held


def take(mb: int) -> int:
    return len(holding(mb))


def size_mb(number: int) -> int:
    return 50 + number * 37 % 101


async def hold(ctx, mb: int, steps: int) -> float:
    """What the kinds below do: hold memory for so many steps."""
    held = holding(mb) if mb else bytearray(1)
    for i in range((ctx.state or {"i": 0})["i"], steps):
        await ctx.step(f"s{i}", asyncio.sleep, STEP_S)
        await ctx.checkpoint({"i": i + 1})
    assert held[0] in (0, ord("x"))
    return time.time()


@headrace.task(name="first kind")
async def first_kind(ctx, mb: int, steps: int) -> float:
    return await hold(ctx, mb, steps)


@headrace.task(name="second kind")
async def second_kind(ctx) -> float:
    return time.time()


@headrace.task(name="mixed")
async def mixed(ctx, mb: int, steps: int) -> float:
    return await hold(ctx, mb, steps)


@headrace.task(name="steps", memory="40MB")
async def small_steps(ctx, steps: int) -> float:
    return await hold(ctx, 0, steps)


@headrace.task(name="one long step", memory="40MB")
async def one_long_step(ctx, seconds: float) -> float:
    await ctx.step("long", asyncio.sleep, seconds)
    return time.time()


@headrace.task(name="start", memory="40MB")
async def start(ctx) -> float:
    return time.time()


@headrace.task(name="runaway", memory="40MB")
async def runaway(ctx) -> int:
    return await ctx.step("take", take, _RUNAWAY_MB)


def _declared(mb: int) -> Any:
    """A kind of its own for each size, since `memory=` is a kind's."""

    async def declared(ctx, mb: int, steps: int) -> float:
        return await hold(ctx, mb, steps)

    declared.__name__ = declared.__qualname__ = f"declared_{mb}"
    return headrace.task(name=f"declared {mb}", memory=(mb + _WORKER_MB) * MB)(declared)


DECLARED = {mb: _declared(mb) for mb in sorted({_ALIKE_MB, *(size_mb(number) for number in range(_AGENTS))})}
globals().update({function.__name__: function for function in DECLARED.values()})  # workers find them by name


async def second_kind_beside(stage: Stage) -> Waits:
    """A run of a kind that was never seen, beside another of 73 MB that goes on for a minute."""
    async with stage.engine("548MB") as engine:
        await engine.submit(first_kind, 73, stage.size(120, 40))
        await asyncio.sleep(_LATER_S)
        began_at = time.time()
        return {"HIGH": [await since(began_at, await engine.submit(second_kind))]}


async def pool_second_kind_beside(stage: Stage) -> Waits:
    async with PriorityPool() as pool:
        first = asyncio.ensure_future(pool.call(sleeping(STEP_S * stage.size(120, 40))))
        await asyncio.sleep(_LATER_S)
        waits = [await pool.timed(now)]
        first.cancel()
    return {"HIGH": waits}


async def mix_of_sizes(stage: Stage) -> Waits:
    """Agents of 50 to 150 MB on four slots, of one kind that declares nothing, and each of a kind that does."""
    return await _both_ways(stage, [size_mb(number) for number in range(stage.size(_AGENTS, 12))])


async def eight_alike(stage: Stage) -> Waits:
    """The same with eight of one size."""
    return await _both_ways(stage, [_ALIKE_MB] * 8)


async def _both_ways(stage: Stage, sizes: list[int]) -> Waits:
    return {
        "HIGH, undeclared": [await _mix(stage, "undeclared", sizes)],
        "HIGH, declared": [await _mix(stage, "declared", sizes)],
    }


async def _mix(stage: Stage, how: str, sizes: list[int]) -> float:
    """Seconds until all have ended."""
    directory = stage.directory / how
    directory.mkdir()
    there = Stage(directory=directory, url="", is_quick=stage.is_quick)
    async with there.engine(slots=4) as engine:
        began_at = time.time()
        runs = [
            await engine.submit(DECLARED[mb] if how == "declared" else mixed, mb, _AGENT_STEPS, key=f"{number}")
            for number, mb in enumerate(sizes)
        ]
        return max([await run.result() for run in runs]) - began_at


async def pool_mix_of_sizes(stage: Stage) -> Waits:
    return await _pool_mix(stage.size(_AGENTS, 12))


async def pool_eight_alike(stage: Stage) -> Waits:
    return await _pool_mix(8)


async def _pool_mix(agents: int) -> Waits:
    async with PriorityPool() as pool:
        services = [sleeping(STEP_S * _AGENT_STEPS)] * agents
        took_s = max(await asyncio.gather(*map(pool.timed, services)))
    return {"HIGH, undeclared": [took_s], "HIGH, declared": [took_s]}


async def critical_behind_low(stage: Stage) -> Waits:
    """Two LOW runs in the first step of their lives, which takes 20 s, and a CRITICAL one behind them."""
    async with stage.engine() as engine:
        low_at, seconds = time.time(), float(stage.size(20, 10))
        low = [await engine.submit(one_long_step, seconds, key=f"{n}", priority=Priority.LOW) for n in range(2)]
        await asyncio.sleep(_LATER_S)
        began_at = time.time()
        waits = [await since(began_at, await engine.submit(start, priority=Priority.CRITICAL))]
        return {"CRITICAL": waits, "LOW, until its end": [await since(low_at, run) for run in low]}


async def pool_critical_behind_low(stage: Stage) -> Waits:
    return await _pool_behind_low(float(stage.size(20, 10)), Priority.CRITICAL)


async def high_behind_low(stage: Stage) -> Waits:
    """Two LOW runs that reach a step each half second, and a HIGH one behind them."""
    async with stage.engine() as engine:
        low_at, steps = time.time(), stage.size(40, 20)
        low = [await engine.submit(small_steps, steps, key=f"{n}", priority=Priority.LOW) for n in range(2)]
        await asyncio.sleep(_LATER_S)
        began_at = time.time()
        waits = [await since(began_at, await engine.submit(start, priority=Priority.HIGH))]
        return {"HIGH": waits, "LOW, until its end": [await since(low_at, run) for run in low]}


async def pool_high_behind_low(stage: Stage) -> Waits:
    return await _pool_behind_low(STEP_S * stage.size(40, 20), Priority.HIGH)


async def _pool_behind_low(seconds: float, priority: Priority) -> Waits:
    async with PriorityPool() as pool:
        low = [asyncio.ensure_future(pool.timed(sleeping(seconds), Priority.LOW)) for _ in range(2)]
        await asyncio.sleep(_LATER_S)
        waits = [await pool.timed(now, priority)]
        return {priority.name: waits, "LOW, until its end": await asyncio.gather(*low)}


async def users_behind_runaway(stage: Stage) -> Waits:
    """A run that goes on for 40 s, one that died of memory beside it, and a user every two seconds behind both."""
    users: list[asyncio.Task[float | None]] = []
    async with stage.engine(slot_memory="200MB") as engine:
        long = await engine.submit(small_steps, stage.size(80, 30), key="long")
        await asyncio.sleep(_LATER_S)
        dying = await engine.submit(runaway)
        runaway_at = time.time()
        await until(lambda: engine.status().counts.get("out of memory", 0) > 0)
        while long.status().state.name != "DONE":
            run = await engine.submit(start, key=None)
            users.append(asyncio.ensure_future(since(time.time(), run)))
            await asyncio.sleep(2.0)
        try:
            await dying.result()
        except RunFailed:
            given_up_s = time.time() - runaway_at
        else:
            raise AssertionError("three gigabytes fitted into 512 MB")
        waits = await asyncio.gather(*users)
    return {"HIGH, users": waits, "HIGH, the runaway until it was set aside": [given_up_s]}


async def pool_users_behind_runaway(stage: Stage) -> Waits:
    """In a pool without limits a runaway is at best an error: it fails, is put in once more, and fails again."""
    waits: list[float] = []
    async with PriorityPool() as pool:
        long = asyncio.ensure_future(pool.call(sleeping(STEP_S * stage.size(80, 30))))
        runaway_s = sum([await pool.timed(now), await pool.timed(now)])
        while not long.done():
            waits.append(await pool.timed(now))
            await asyncio.sleep(2.0)
    return {"HIGH, users": waits, "HIGH, the runaway until it was set aside": [runaway_s]}


SCENARIOS = {
    "second_kind_beside": Scenario(second_kind_beside, pool_second_kind_beside),
    "mix_of_sizes": Scenario(mix_of_sizes, pool_mix_of_sizes),
    "eight_alike": Scenario(eight_alike, pool_eight_alike),
    "critical_behind_low": Scenario(critical_behind_low, pool_critical_behind_low),
    "high_behind_low": Scenario(high_behind_low, pool_high_behind_low),
    "users_behind_runaway": Scenario(users_behind_runaway, pool_users_behind_runaway),
}
