"""What kinds of runs need is learned from parked runs and outlives the engine."""

import asyncio
import sqlite3
import time
from pathlib import Path

import msgspec

from headrace import Engine
from headrace.agents.scheduler.events import Notice

MB = 1_000_000


def filled(size_bytes):
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])
    return held


def meet(directory, name, others):
    """Whether so many are here at the same time."""
    (Path(directory) / name).touch()
    give_up_s = time.monotonic() + 30
    while time.monotonic() < give_up_s:
        if len(list(Path(directory).iterdir())) >= others:
            return True
        time.sleep(0.01)
    return False


async def conversation(ctx, directory, name):
    await ctx.receive()
    return await ctx.step("reply", meet, directory, name, 2)


async def quick(ctx):
    return None


async def meeting(ctx, directory, name):
    return await ctx.step("meet", meet, directory, name, 2)


async def parking(ctx):
    held = filled(60 * MB)
    await ctx.receive()
    return len(held)


async def holding(ctx, seconds):
    held = filled(60 * MB)
    await ctx.step("s", time.sleep, seconds)
    return len(held)


def noted(path):
    with sqlite3.connect(path) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = 'kind sizes'").fetchone()
    return msgspec.json.decode(row[0]) if row else None


async def measured(engine):
    return [event for event in await engine.events() if event.what == Notice.MEASURED.value]


async def test_two_conversations_on_two_slots_reply_at_the_same_time(tmp_path):
    (tmp_path / "here").mkdir()
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=2, slot_memory="300MB") as engine:
        runs = [await engine.submit(conversation, str(tmp_path / "here"), f"user{n}") for n in range(2)]
        for run in runs:
            await run.send("hello")
        assert [await asyncio.wait_for(run.result(), 60) for run in runs] == [True, True]


async def test_a_run_is_measured_that_takes_no_more_memory_than_its_worker_had_before(tmp_path):
    (tmp_path / "here").mkdir()
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=2, slot_memory="300MB") as engine:
        await (await engine.submit(quick)).result()
        await asyncio.sleep(0.5)  # its worker was read, and is used again: that it stays the same is not reported
        runs = [await engine.submit(meeting, str(tmp_path / "here"), f"user{n}") for n in range(2)]
        assert [await asyncio.wait_for(run.result(), 60) for run in runs] == [True, True]


async def test_an_attempt_that_parks_before_any_reading_teaches(tmp_path):
    path = tmp_path / "a.run"
    async with Engine(path, memory="+400MB", slots=2) as engine:
        await engine.submit(parking)
        while engine.status().unfinished.get("receiving", 0) < 1:
            await asyncio.sleep(0.01)
    ((_, (needed_bytes, seen)),) = noted(path).items()
    assert 60 * MB <= needed_bytes < 150 * MB
    assert seen == 1


async def test_what_was_learned_of_a_kind_outlives_the_engine(tmp_path):
    path = tmp_path / "a.run"
    async with Engine(path, memory="+400MB", slots=2) as engine:
        run = await engine.submit(holding, 0.1)
        assert await asyncio.wait_for(run.result(), 60) == 60 * MB
    ((kind, (needed_bytes, seen)),) = noted(path).items()
    assert kind.endswith("holding")
    assert 60 * MB <= needed_bytes < 150 * MB
    assert seen == 1
    async with Engine(path, memory="+400MB", slots=2) as engine:
        before = await measured(engine)  # on a slow machine, the first run was measured before its end
        runs = [await engine.submit(holding, 3.0 + n) for n in range(2)]
        for run in runs:
            await asyncio.wait_for(run.result(), 60)
        assert await measured(engine) == before  # it was known
    assert noted(path)[kind][1] == 3


async def test_a_file_from_before_sizes_were_noted_works_and_gets_them(tmp_path):
    path = tmp_path / "a.run"
    async with Engine(path, memory="+400MB") as engine:
        await (await engine.submit(holding, 0.0)).result()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta WHERE key = 'kind sizes'")
    async with Engine(path, memory="+400MB") as engine:
        await (await engine.submit(holding, 0.01)).result()
    assert noted(path) is not None
