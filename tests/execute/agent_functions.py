"""Agent functions that an executor finds by kind, in whatever process it runs them."""

import asyncio


async def _given(value):
    return value


async def stepping(ctx, count):
    total = 0
    for number in range(count):
        total += await ctx.step(f"s{number}", _given, number)
    return total


async def checkpointing(ctx):
    before = ctx.state
    await ctx.checkpoint({"seen": before})
    return before


async def effect(ctx):
    return await ctx.step("pay", _given, "receipt", side_effect=True)


async def receiving(ctx):
    return await ctx.receive()


async def sleeping(ctx):
    await ctx.sleep(3600)


async def failing(ctx):
    raise ValueError("no luck")


async def exhausting(ctx):
    raise MemoryError


async def endless(ctx):
    number = 0
    while True:
        await ctx.step(f"s{number}", asyncio.sleep, 0.001)
        number += 1


async def stuck(ctx):
    await asyncio.sleep(3600)


async def talkative(ctx):
    for number in range(5000):
        ctx.emit(number)
    await ctx.step("s", _given, None)


KINDS = {
    function.__name__: function
    for function in (
        stepping, checkpointing, effect, receiving, sleeping, failing, exhausting, endless, stuck, talkative,
    )
}  # fmt: skip
