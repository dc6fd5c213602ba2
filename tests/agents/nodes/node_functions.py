"""Agents for nodes. A log has a line for every step they take; files are gates that hold them."""

import asyncio
import os
import time
from pathlib import Path

from tests.agents.engine.isolated_functions import filled, lines, logged

__all__ = ["lines"]

LARGE_BYTES = 3 << 20  # three times what may be on its way to a node or from it


async def _counted(log, name, pause_s):
    logged(log, name)
    await asyncio.sleep(pause_s)
    return os.getppid()  # the warden: one for each node


async def counting(ctx, log, name, steps, pause_s=0.05):
    names = [f"{name}-{number}" for number in range(steps)]
    return sorted({await ctx.step(each, _counted, log, each, pause_s) for each in names})


def _waits(log, name, gate):
    logged(log, name)
    while not Path(gate).exists():
        time.sleep(0.01)
    return name


async def held(ctx, log, gate):
    await ctx.step("before", logged, log, "before")
    await ctx.step("held", _waits, log, "held", gate)
    return await ctx.step("after", logged, log, "after")


async def held_effect(ctx, log, gate):
    return await ctx.step("effect", _waits, log, "effect", gate, side_effect=True)


async def copying(ctx):
    end = await ctx.command(["sh", "-c", "cat; echo said >&2; exit 3"], input=b"x" * LARGE_BYTES)
    return [end.code, len(end.output), set(end.output) == {"x"}, end.errors]


async def beginning_late(ctx, log, timeout_s):
    """Its input is many times what may be on its way."""
    end = await ctx.command(
        ["sh", "-c", f"echo begun >> {log}; sleep 30"], input=b"x" * 15_000_000, timeout_s=timeout_s
    )
    return end.code


async def with_long_arguments(ctx, size):
    return len((await ctx.command(["sh", "-c", "echo $#", "x", *["y" * 100_000] * size])).output)


async def running(ctx, *argv):
    end = await ctx.command(list(argv))
    return [end.code, end.signal, end.output]


async def writing_much(ctx):
    return (await ctx.command(["sh", "-c", "head -c 300000 /dev/zero"], output=100_000)).code


async def program_that_grows(ctx):
    program = "b = bytearray(200_000_000)\nb[::4096] = b'x' * len(b[::4096])"
    return (await ctx.command(["python3", "-c", program], memory="60MB")).code


async def growing(ctx, size_bytes):
    return await ctx.step("grow", lambda: len(filled(size_bytes)))


async def _child(ctx, number):
    return await ctx.step("double", lambda: 2 * number)


async def parent(ctx, *, isolated):
    return await asyncio.gather(*(ctx.run(_child, number, isolated=isolated) for number in range(3)))


async def spooling(ctx):
    with ctx.spool() as file:
        file.write(b"y" * LARGE_BYTES)
        return await ctx.step("size", file.tell)


async def counted_by_checkpoint(ctx, log, gate, steps):
    for number in range((ctx.state or {"next": 0})["next"], steps):
        await ctx.step(f"step-{number}", logged, log, f"step-{number}")
        await ctx.checkpoint({"next": number + 1})
        if number == 1:
            await ctx.step("gate", _waits, log, "gate", gate)
    return "done"
