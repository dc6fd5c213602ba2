"""Agents that wait for models, programs and children, in any process. A log has a line for all that they do."""

import asyncio
import os
import signal
import time
from pathlib import Path

from headrace import Model, task
from headrace.errors import ProviderTimeout
from tests.agents.engine.isolated_functions import filled, lines, logged


def model(url):
    return Model("m", service_name="openai_compatible", base_url=url)


@task(memory="20MB")
async def asks(ctx, url, prompt):
    return await ctx.ask(model(url), prompt)


@task(memory="20MB")
async def asks_briefly(ctx, url, prompt):
    try:
        return await ctx.ask(model(url), prompt, timeout_s=3)
    except ProviderTimeout as error:
        return type(error).__name__


@task(memory="20MB")
async def asks_several(ctx, url, prompts):
    return await asyncio.gather(*(ctx.ask(model(url), prompt) for prompt in prompts))


@task(memory="20MB")
async def steps_beside_an_ask(ctx, url, prompt, log):
    async def beside():
        await asyncio.sleep(0.2)
        return await ctx.step("beside", logged, log, "beside")

    return await asyncio.gather(ctx.ask(model(url), prompt), beside())


@task(memory="20MB")
async def child_asks(ctx, url, prompt):
    return await ctx.run(asks, url, prompt)


@task(memory="20MB")
async def waits_for_a_program(ctx, log, other):
    """Ends when the other's program runs too."""
    script = f"echo {os.getpid()} >> {log}; until grep -q other {other}; do sleep 0.02; done"
    return (await ctx.command(["sh", "-c", f"echo other >> {log}; {script}"], memory="50MB")).code


def _slow_effect(log, name, seconds):
    logged(log, f"{name} begins")
    time.sleep(seconds)
    logged(log, f"{name} ends")


def _held_effect(log, name, flag):
    logged(log, f"{name} begins")
    _until(flag)
    logged(log, f"{name} ends")


@task(memory="20MB")
async def with_effects(ctx, log, seconds, count):
    for number in range(count):
        await ctx.step(f"e{number}", _slow_effect, log, f"e{number}", seconds, side_effect=True)
    return "with effects"


@task(memory="20MB")
async def parent_of_effects(ctx, log, seconds, count, isolated):
    return await ctx.run(with_effects, log, seconds, count, isolated=isolated)


@task(memory="20MB")
async def with_held_effects(ctx, log, flag):
    """From the second on, each effect ends when the flag is there."""
    await ctx.step("e0", _slow_effect, log, "e0", 0, side_effect=True)
    for name in ("e1", "e2"):
        await ctx.step(name, _held_effect, log, name, flag, side_effect=True)
    return "with effects"


@task(memory="20MB")
async def parent_of_held_effects(ctx, log, flag, isolated):
    return await ctx.run(with_held_effects, log, flag, isolated=isolated)


async def _blocks(log, seconds):
    logged(log, "blocks")
    time.sleep(seconds)


@task(memory="20MB")
async def blocks_beside_an_effect(ctx, log):
    async def later():
        while "e0 begins" not in lines(log):
            await asyncio.sleep(0.01)
        return await ctx.step("blocks", _blocks, log, 3)

    return await asyncio.gather(ctx.run(with_effects, log, 2.5, 1), later())


def _computed(log, name):
    logged(log, f"{name} begins")
    time.sleep(0.05)
    logged(log, f"{name} ends")


@task(memory="20MB")
async def computes_and_asks(ctx, url, name, log):
    for number in range(3):
        await ctx.step(f"s{number}", _computed, log, name)
        await ctx.ask(model(url), f"{name} {number}")
    return name


def most_at_once(log):
    now = most = 0
    for line in lines(log):
        now += 1 if line.endswith("begins") else -1
        most = max(most, now)
    return most


@task(memory="20MB")
async def tells_its_worker_and_asks(ctx, url, log):
    await ctx.step("told", logged, log, "told")
    logged(f"{log}.pids", os.getpid())
    reply = await ctx.ask(model(url), "tell")
    await ctx.step("after", logged, log, "after")
    return reply


@task(memory="20MB")
async def child_tells_and_asks(ctx, url, log):
    return await ctx.run(tells_its_worker_and_asks, url, log)


@task(memory="20MB")
async def grandparent(ctx, log):
    return await ctx.run(isolating_parent, log, isolated=True)


@task(memory="20MB")
async def isolating_parent(ctx, log):
    await ctx.step("parent", logged, log, f"parent {os.getpid()}")
    return await ctx.run(child, log, isolated=True)


@task(memory="20MB")
async def child(ctx, log):
    await ctx.step("child", logged, log, f"child {os.getpid()}")
    return "of a child"


def _dies(log):
    logged(log, "dying")
    os.kill(os.getpid(), signal.SIGKILL)


@task(memory="20MB")
async def dying_child(ctx, log):
    await ctx.step("deadly", _dies, log)


@task(memory="20MB")
async def parent_of_a_dying_child(ctx, log):
    await ctx.step("before", logged, log, "before")
    try:
        await ctx.run(dying_child, log, isolated=True)
    except Exception as error:  # noqa: BLE001 - its name is the result
        return type(error).__name__, str(error)


@task(memory="20MB")
async def dies_with_its_child(ctx, log):
    await ctx.run(dying_child, log)


@task(memory="20MB")
async def patient_child(ctx, log, flag):
    await ctx.step("began", logged, log, "child began")
    logged(f"{log}.journaled", "child began")
    while not Path(flag).exists():
        await asyncio.sleep(0.02)
    return await ctx.step("ends", logged, log, "child ends")


@task(memory="20MB")
async def parent_of_a_patient_child(ctx, log, flag):
    logged(f"{log}.pids", os.getpid())
    await ctx.step("parent", logged, log, "parent began")
    return await ctx.run(patient_child, log, flag, isolated=True)


@task(memory="20MB", timeout_s=0.5)
async def short_parent(ctx, log, flag):
    return await ctx.run(patient_child, log, flag, isolated=True)


@task(memory="20MB")
async def sleeping_child(ctx, log):
    await ctx.step("began", logged, log, "child began")
    await ctx.sleep(3600)


@task(memory="20MB")
async def parent_of_a_sleeping_child(ctx, log, isolated):
    return await ctx.run(sleeping_child, log, isolated=isolated)


@task(memory="160MB")
async def large_child(ctx, log):
    return await ctx.step("large", logged, log, "large")


@task(memory="150MB")
async def parent_of_a_large_child(ctx, log):
    await ctx.step("parent", logged, log, "parent began")
    held = bytearray(100 << 20)
    held[::4096] = b"x" * len(held[::4096])
    result = await ctx.run(large_child, log, isolated=True)
    return result, len(held)


def _until(flag):
    while not Path(flag).exists():
        time.sleep(0.02)


@task(memory="20MB")
async def computes_until(ctx, log, flag):
    logged(log, "computes")
    return await ctx.step("computes", _until, flag)


@task(memory="150MB")
async def holds_memory_and_asks(ctx, url, log):
    await ctx.step("told", logged, log, "told")
    held = bytearray(100 << 20)
    held[::4096] = b"x" * len(held[::4096])
    reply = await ctx.ask(model(url), "tell")
    return reply, len(held)


@task(memory="130MB")
async def large(ctx, log):
    return await ctx.step("large", logged, log, "large")


@task(memory="130MB")
async def large_until(ctx, log, flag):
    logged(log, "computes")
    return await ctx.step("computes", _until, flag)


@task(memory="20MB")
async def lingers_and_asks(ctx, url, log, flag, timeout_s=None):
    """From its second attempt on it asks when the flag is there."""
    logged(log, os.getpid())
    while ctx.attempt > 1 and not Path(flag).exists():
        await asyncio.sleep(0.02)
    return await ctx.ask(model(url), "tell", timeout_s=timeout_s)


def _computed_until(log, flag):
    logged(log, "begins")
    _until(flag)
    logged(log, "ends")
    return "ended"


@task(memory="20MB")
async def computes_beside_an_ask(ctx, url, log, flag):
    return await asyncio.gather(ctx.ask(model(url), "beside"), ctx.step("slow", _computed_until, log, flag))


@task(memory="20MB")
async def asks_something_else_each_time(ctx, url, log):
    logged(log, os.getpid())
    return await ctx.ask(model(url), f"attempt {ctx.attempt}", name="q"), ctx.attempt


def _filled(size_bytes):
    return len(filled(size_bytes))


@task(memory="90MB")
async def fills_beside_an_ask(ctx, url, size_bytes):
    async def fill():
        await asyncio.sleep(0.5)
        return await ctx.step("filled", _filled, size_bytes)

    return await asyncio.gather(ctx.ask(model(url), "tell", timeout_s=20), fill())
