import asyncio
import re
from pathlib import Path

import pytest

from headrace import Engine
from headrace.errors import HeadraceError, RunCancelled, RunFailed

calls: list[str] = []
may_end: list[bool] = []  # long runs go on to their end where it is not empty


@pytest.fixture(autouse=True)
def _no_calls():
    calls.clear()
    may_end.clear()


async def note(name):
    calls.append(name)


async def part(ctx, number):
    await ctx.step("s", note, f"part {number}")
    if number < 0:
        raise ValueError("a negative part")
    return number * 10


async def whole(ctx, count):
    parts = [await ctx.run(part, number) for number in range(count)]
    together = await asyncio.gather(*(ctx.run(part, number, name=f"again {number}") for number in range(count)))
    return parts + together


async def test_children_run_in_their_parents_slot_and_are_journaled_as_its_steps(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        assert await asyncio.wait_for((await engine.submit(whole, 3)).result(), 20) == [0, 10, 20, 0, 10, 20]
        assert not await engine.unfinished()
    assert len(calls) == 6


async def with_a_bad_part(ctx):
    try:
        await ctx.run(part, -1)
    except RunFailed as error:
        return str(error)


async def test_a_parent_hears_of_a_child_that_failed(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        told = await asyncio.wait_for((await engine.submit(with_a_bad_part)).result(), 20)
        where = r"\(line \d+ of test_child_runs\.py\)"
        name = r"The run \S+with_a_bad_part\S+ > \S+part"
        assert re.fullmatch(rf"{name} failed: ValueError: a negative part {where}\.", told)


async def telling(ctx, depth):
    ctx.emit(depth)
    return await ctx.run(telling, depth - 1) if depth else await ctx.step("s", note, "told")


async def telling_when_asked(ctx):
    await ctx.receive()
    return await ctx.run(telling, 1)


async def test_what_children_emit_reaches_whoever_listens_to_their_parent(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        run = await engine.submit(telling_when_asked)
        heard = asyncio.ensure_future(_all(run.events()))
        await asyncio.sleep(0.05)
        await run.send("go")
        assert await asyncio.wait_for(heard, 20) == [1, 0]


async def _all(events):
    return [event async for event in events]


async def mended_part(ctx, path):
    await ctx.step("s", note, "part")
    return await ctx.step("read", Path(path).read_text)


async def mended(ctx, path):
    await ctx.step("s", note, "whole")
    return await ctx.run(mended_part, path)


async def test_a_failed_run_stays_so_until_it_is_tried_again_and_then_goes_on_behind_its_last_step(tmp_path):
    for _ in range(2):
        async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
            run = await engine.submit(mended, str(tmp_path / "mended"))
            with pytest.raises(RunFailed, match=r"await run\.retry\(\)") as failed:
                await asyncio.wait_for(run.result(), 20)
            assert "in mended" in failed.value.__notes__[0]  # what a traceback shows
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        (tmp_path / "mended").write_text("now")
        run = await engine.submit(mended, str(tmp_path / "mended"))
        await run.retry()
        assert await asyncio.wait_for(run.result(), 20) == "now"
        with pytest.raises(HeadraceError, match="it is done"):
            await run.retry()
    assert calls == ["whole", "part"]


async def long_part(ctx):
    for i in range((ctx.state or {"i": 0})["i"], 30):
        await ctx.step(f"n-{i}", note, f"n-{i}")
        await ctx.checkpoint({"i": i + 1})
        await asyncio.sleep(0.01)
        while i == 20 and not may_end:
            await asyncio.sleep(0.01)
    return "whole"


async def parent_of_a_long_part(ctx):
    return await ctx.run(long_part)


async def test_a_parent_and_its_child_are_parked_and_go_on_together(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        await engine.submit(parent_of_a_long_part)
        while len(calls) < 5:
            await asyncio.sleep(0.005)
    assert len(calls) < 30
    may_end.append(True)
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        run = await engine.submit(parent_of_a_long_part)
        assert await asyncio.wait_for(run.result(), 20) == "whole"
    assert calls == [f"n-{i}" for i in range(30)]


async def test_cancelling_a_parked_parent_takes_its_child_along(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(parent_of_a_long_part)
        while len(calls) < 2:
            await asyncio.sleep(0.005)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        parent, _ = await engine.unfinished()
        await engine.handle(parent).cancel()
        assert await engine.unfinished() == []
        with pytest.raises(RunCancelled):
            await engine.handle(parent).result()
    assert run.id == parent.id
