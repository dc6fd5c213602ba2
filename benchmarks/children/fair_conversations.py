"""Scenarios of benchmarks.fairness with conversations: runs that wait on disk for a user's next message.

Covers: a message that kills its worker, two replies at once, first replies to ten users.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

import aiohttp

import headrace
from benchmarks.children.fair_stage import PriorityPool, Scenario, Stage, User, Waits, asking, model, sleeping
from headrace import Engine
from headrace.errors import CircuitOpen, RunFailed

REPLY_S = 3.0  # of the conversations that compute; the others ask a model
_DEADLY = "die"
_TURNS = 1000
_COOL_DOWN_S = 10.5  # a little more than an engine's default
_TRY_AGAIN_S = 0.25


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@headrace.task(name="asking conversation", memory="40MB")
async def asking_conversation(ctx, url: str, user: str) -> None:
    for turn in range((ctx.state or {"turn": 0})["turn"], _TURNS):
        said = await ctx.receive()
        if said == _DEADLY:
            await ctx.step("die", die)
        await ctx.ask(model(url), f"{user} said {said} in turn {turn}")
        ctx.emit("reply")
        await ctx.checkpoint({"turn": turn + 1})


@headrace.task(name="computing conversation")
async def computing_conversation(ctx, user: str) -> None:
    for turn in range((ctx.state or {"turn": 0})["turn"], _TURNS):
        said = await ctx.receive()
        await ctx.step(f"{user} said {said} in turn {turn}", asyncio.sleep, REPLY_S)
        ctx.emit("reply")
        await ctx.checkpoint({"turn": turn + 1})


async def breaker(stage: Stage) -> Waits:
    """Four users in conversation, a fifth whose message kills its worker, and a new one after that."""
    async with stage.engine(slots=4) as engine:
        runs = [await engine.submit(asking_conversation, stage.url, f"user {n}") for n in range(5)]
        *users, deadly = [await User.of(run) for run in runs]
        await runs[-1].send(_DEADLY)
        with suppress(RunFailed, TimeoutError):
            await asyncio.wait_for(runs[-1].result(), 20)
        if engine.status().open_circuits:
            await asyncio.sleep(_COOL_DOWN_S)
        spoken_s = stage.size(12, 6)
        waits = await asyncio.gather(*(_go_on_speaking(user, spoken_s) for user in users), _join(engine, stage))
        for user in (*users, deadly):
            await user.leave()
    return {"HIGH, in conversation": waits[:-1], "HIGH, new": waits[-1:]}


async def _go_on_speaking(user: User, spoken_s: float) -> float | None:
    """Seconds until the first reply; goes on speaking behind it."""
    began_s, waits = time.monotonic(), list[float]()
    while time.monotonic() - began_s < spoken_s:
        with suppress(TimeoutError):
            waits.append(await asyncio.wait_for(user.say(f"word {len(waits)}"), 30))
    return waits[0] if waits else None


async def _join(engine: Engine, stage: Stage) -> float | None:
    """Seconds until the first reply to somebody new, who tries again where refused."""
    began_s = time.monotonic()
    for _ in range(int(stage.size(16, 8) / _TRY_AGAIN_S)):
        try:
            user = User(await engine.submit(asking_conversation, stage.url, "new"))
        except CircuitOpen:
            await asyncio.sleep(_TRY_AGAIN_S)
            continue
        with suppress(TimeoutError):
            await asyncio.wait_for(user.say("hello"), 30)
            await user.leave()
            return time.monotonic() - began_s
    return None


async def pool_breaker(stage: Stage) -> Waits:
    async with aiohttp.ClientSession() as session, PriorityPool() as pool:
        services = [asking(session, stage.url, f"user {n}") for n in range(5)]
        waits = await asyncio.gather(*map(pool.timed, services))
    return {"HIGH, in conversation": waits[:-1], "HIGH, new": waits[-1:]}


async def two_replies(stage: Stage) -> Waits:
    """Two users whose conversations declare no memory are answered at the same time."""
    async with stage.engine() as engine:
        users = [await User.of(await engine.submit(computing_conversation, f"user {n}")) for n in range(2)]
        waits = await asyncio.gather(*(user.say("hello") for user in users))
        for user in users:
            await user.leave()
    return {"HIGH": waits}


async def pool_two_replies(_: Stage) -> Waits:
    async with PriorityPool() as pool:
        return {"HIGH": await asyncio.gather(*(pool.timed(sleeping(REPLY_S)) for _ in range(2)))}


async def ten_users(stage: Stage) -> Waits:
    """Ten users send their messages at the same time."""
    async with stage.engine() as engine:
        users = [await User.of(await engine.submit(asking_conversation, stage.url, f"user {n}")) for n in range(10)]
        await users[0].say("warm up")
        waits = await asyncio.gather(*(user.say("hello") for user in users))
        for user in users:
            await user.leave()
    return {"HIGH": waits}


async def pool_ten_users(stage: Stage) -> Waits:
    async with aiohttp.ClientSession() as session, PriorityPool() as pool:
        services = [asking(session, stage.url, f"user {n}") for n in range(10)]
        return {"HIGH": await asyncio.gather(*map(pool.timed, services))}


SCENARIOS = {
    "breaker": Scenario(breaker, pool_breaker),
    "two_replies": Scenario(two_replies, pool_two_replies),
    "ten_users": Scenario(ten_users, pool_ten_users),
}
