"""An event is emitted once: a run that is called from its beginning again does not repeat what is journaled."""

import asyncio
from contextlib import aclosing

from headrace import Engine
from headrace.agents.emits import Emits
from headrace.agents.task import task


def nothing():
    return None


async def chat(ctx):
    while True:
        message = await ctx.receive()
        ctx.emit(f"reply to {message}")
        if message == "bye":
            return message


async def _hear(run, heard, begun):
    async with aclosing(run.events()) as events:
        begun.set()
        async for event in events:
            heard.append(event)


async def _until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that within 10 s")


async def _listen(run, heard):
    begun = asyncio.Event()
    listener = asyncio.ensure_future(_hear(run, heard, begun))
    await begun.wait()
    await asyncio.sleep(0.02)
    return listener


async def test_a_conversation_does_not_emit_its_earlier_replies_again(tmp_path):
    heard = []
    for isolation in ("inline", "process"):
        heard.clear()
        async with Engine(tmp_path / f"{isolation}.run", memory="+256MB", isolation=isolation) as engine:
            run = await engine.submit(chat)
            listener = await _listen(run, heard)
            for count, message in enumerate(("one", "two", "three", "bye"), 1):
                await run.send(message)
                await _until(lambda count=count: len(heard) >= count)
                await _until(lambda run=run, message=message: _is_waiting(run) or message == "bye")
            await run.result()
            await asyncio.wait_for(listener, 10)
        assert heard == [f"reply to {message}" for message in ("one", "two", "three", "bye")]


def _is_waiting(run):
    return run.status().state.name == "RECEIVING"


async def test_it_does_not_after_the_engine_was_closed_and_opened_either(tmp_path):
    heard = []
    for number, message in enumerate(("one", "two", "bye")):
        async with Engine(tmp_path / "a.run", isolation="inline") as engine:
            engine.register(chat)
            run = await engine.submit(chat)
            listener = await _listen(run, heard)
            await run.send(message)
            await _until(lambda number=number: len(heard) > number)
            await _until(lambda run=run, message=message: _is_waiting(run) or message == "bye")
        await asyncio.wait_for(listener, 10)
    assert heard == ["reply to one", "reply to two", "reply to bye"]


async def steps_and_sleep(ctx):
    ctx.emit("before the step")
    await ctx.step("a", nothing)
    ctx.emit("before the checkpoint")
    await ctx.checkpoint({"a": 1})
    ctx.emit("before the sleep")
    await ctx.sleep(0.05)
    ctx.emit("last")
    if ctx.attempt < 3:
        raise ValueError("once more")


async def test_emits_before_a_step_a_checkpoint_or_a_sleep_are_not_repeated(tmp_path):
    heard = []
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(task(name="emits-steps", max_attempts=3)(_late(steps_and_sleep)))
        listener = await _listen(run, heard)
        await run.send("go")
        await run.result()
        await asyncio.wait_for(listener, 10)
    # What nothing journaled comes after is in flight when the run fails: it is emitted by each attempt.
    assert heard[:3] == ["before the step", "before the checkpoint", "before the sleep"]
    assert set(heard[3:]) == {"last"}


def _late(function):
    async def begun_by_a_message(ctx):
        await ctx.receive()
        return await function(ctx)

    return begun_by_a_message


async def streaming(ctx):
    await ctx.receive()
    for number in range(2):
        await ctx.step(f"tokens-{number}", _stream, ctx, number)
    ctx.emit("end")
    await ctx.receive()


async def _stream(ctx, number):
    for token in "ab":
        ctx.emit(f"{token}{number}")


async def test_what_a_step_emits_is_sent_while_it_runs_and_never_again(tmp_path):
    heard = []
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(streaming)
        listener = await _listen(run, heard)
        await run.send("go")
        await _until(lambda: len(heard) == 5 and _is_waiting(run))
        await run.send("end")
        await run.result()
        await asyncio.wait_for(listener, 10)
    assert heard == ["a0", "b0", "a1", "b1", "end"]


async def test_a_branch_beside_a_journaled_step_loses_no_emit():
    sent, ahead = [], {"a": b"", "b": b""}
    emits = Emits(sent.append, ahead)

    async def new():
        emits.add(b"new")
        await asyncio.sleep(0)

    async def journaled():
        emits.add(b"old")
        await asyncio.sleep(0)
        ahead.pop("a")
        emits.passed_journaled()

    await asyncio.gather(new(), journaled())
    assert sent == []
    emits.passed_journal()
    assert sent == [b"new"]


def test_emits_that_take_much_memory_are_sent_rather_than_held():
    sent = []
    emits = Emits(sent.append, {"a": b""})
    emits.add(b"first")
    emits.add(b"x" * 2_000_000)
    assert [len(payload) for payload in sent] == [5, 2_000_000]
