"""Agent functions that an executor finds by kind, in whatever process it runs them."""

import asyncio
import contextlib
import itertools


async def _given(value):
    return value


async def stepping(ctx, count):
    total = 0
    for number in range(count):
        total += await ctx.step(f"s{number}", _given, number)
    return total


async def large(ctx, text):
    """Large arguments, step results, messages and a large checkpoint; all of it as it was given."""
    first = await ctx.step("first", _given, text * 2)
    both = await asyncio.gather(ctx.step("a", _given, text), ctx.step("b", _given, text))
    message = await ctx.receive(name="mail")
    await ctx.checkpoint({"message": message})
    return [first == text * 2, both == [text, text], message == text, text]


async def checkpointing(ctx):
    before = ctx.state
    await ctx.checkpoint({"seen": before})
    return before


async def effect(ctx):
    return await ctx.step("pay", _given, "receipt", side_effect=True)


async def program_effect(ctx):
    return (await ctx.command(["mail"], name="send", side_effect=True)).output


async def effects_beside_steps(ctx):
    async def step_on():
        for number in itertools.count():
            await ctx.step(f"s{number}", asyncio.sleep, 0.001)

    with contextlib.suppress(ZeroDivisionError):
        await ctx.step("broken", divmod, 1, 0, side_effect=True)
    await asyncio.gather(ctx.step("pay", asyncio.sleep, 0.4, side_effect=True), step_on())


async def with_a_long_step(ctx):
    ctx.emit("begun")
    await ctx.step("long", asyncio.sleep, 0.5)
    await ctx.step("next", asyncio.sleep, 0)


async def sleeping_beside_an_effect(ctx):
    await asyncio.gather(ctx.step("pay", asyncio.sleep, 0.2, side_effect=True), ctx.sleep(3600))


async def receiving(ctx):
    return await ctx.receive()


async def sleeping(ctx):
    await ctx.sleep(3600)


async def failing(ctx):
    raise ValueError("no luck")


async def running_out(ctx):
    await ctx.step("next", next, iter(()))


async def exhausting(ctx):
    raise MemoryError


async def endless(ctx):
    number = 0
    while True:
        await ctx.step(f"s{number}", asyncio.sleep, 0.001)
        number += 1


async def stuck(ctx):
    await asyncio.sleep(3600)


async def returning_what_stopped_it(ctx):
    got = []
    while not any(isinstance(each, BaseException) for each in got):
        got += await asyncio.gather(ctx.step(f"s{len(got)}", asyncio.sleep, 0.001), return_exceptions=True)
    await asyncio.gather(ctx.step("after", _given, 1), ctx.checkpoint({"after": 1}), return_exceptions=True)
    ctx.emit("after")
    return repr(got[-1])


async def failing_over_what_stopped_it(ctx):
    raise RuntimeError(await returning_what_stopped_it(ctx))


async def returning_when_cancelled(ctx):
    try:
        await ctx.step("s", asyncio.sleep, 3600)
    except asyncio.CancelledError:
        return "partial"


async def returning_instead_of_sleeping(ctx):
    (got,) = await asyncio.gather(ctx.sleep(3600), return_exceptions=True)
    return repr(got)


async def asking(ctx, count):
    return await asyncio.gather(*(ctx.ask("test", f"p{number}", name=f"a{number}") for number in range(count)))


async def stepping_beside_an_ask(ctx, before_s):
    async def step():
        await asyncio.sleep(before_s)
        return await ctx.step("beside", _given, 1)

    return await asyncio.gather(ctx.ask("test", "p", name="a"), step())


async def asking_inside_steps(ctx):
    async def inner():
        return await ctx.ask("test", "p", name="a")

    async def outer():
        return await ctx.step("inner", inner)

    return await ctx.step("outer", outer)


async def asking_beside_a_program(ctx):
    return await asyncio.gather(ctx.ask("test", "p", name="a"), ctx.command(["true"], name="c"))


async def giving_up_an_ask(ctx):
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ctx.ask("test", "p", name="a"), 0.1)
    await asyncio.sleep(0.1)
    return await ctx.step("after", _given, 1)


def _filled(size_bytes):
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])
    return len(held)


async def filling_after_an_ask(ctx, size_bytes):
    await ctx.ask("test", "p", name="a")
    return await ctx.step("filled", _filled, size_bytes)


async def parent(ctx, isolated):
    return await ctx.run(stepping, 1, name="child", isolated=isolated)


async def talkative(ctx):
    for number in range(5000):
        ctx.emit(number)
    await ctx.step("s", _given, None)


KINDS = {
    function.__name__: function
    for function in (
        stepping, large, checkpointing, effect, program_effect, effects_beside_steps, sleeping_beside_an_effect,
        receiving, sleeping, with_a_long_step, failing, running_out, exhausting, endless, stuck, talkative,
        returning_what_stopped_it, failing_over_what_stopped_it, returning_when_cancelled,
        returning_instead_of_sleeping, asking, stepping_beside_an_ask, asking_inside_steps, giving_up_an_ask, parent,
        asking_beside_a_program, filling_after_an_ask,
    )
}  # fmt: skip
