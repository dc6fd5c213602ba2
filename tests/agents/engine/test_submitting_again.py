"""A key that is submitted again: with a higher priority, or with another function; and how full each queue may be."""

import asyncio
import time
from pathlib import Path

import pytest

from headrace import Engine, Priority
from headrace.errors import OptionError, QueueFull
from headrace.store.engine_file.engine_schema import RunState


def inline(path: Path, **options) -> Engine:
    return Engine(path, **{"isolation": "inline", "slots": 1, **options})


async def within(waiting, seconds=40):
    return await asyncio.wait_for(waiting, seconds)


async def until(condition) -> None:
    give_up_s = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.02)


started: list[str] = []


async def noted(ctx, name):
    started.append(name)


async def held(ctx, name="held"):
    await ctx.receive()


async def busy(ctx, until_path):
    while not Path(until_path).exists():
        await asyncio.sleep(0.02)


async def parent(ctx, until_path):
    await ctx.run(busy, until_path)


async def test_a_run_in_the_queue_moves_when_its_key_is_submitted_with_a_higher_priority(tmp_path):
    started.clear()
    async with inline(tmp_path / "a.run") as engine:
        first = await engine.submit(busy, str(tmp_path / "go on"))
        runs = [await engine.submit(noted, name, key=name, priority=Priority.NORMAL) for name in ("one", "two")]
        again = await engine.submit(noted, "two", key="two", priority=Priority.HIGH)
        assert (again.id, again.status().priority) == (runs[1].id, Priority.HIGH)
        assert engine.status().waiting == {"LOW": 0, "NORMAL": 1, "HIGH": 1, "CRITICAL": 0}
        await engine.submit(noted, "two", key="two", priority=Priority.LOW)
        (tmp_path / "go on").touch()
        for run in (first, *runs):
            await within(run.result())
        assert started == ["two", "one"]
        (event,) = [event for event in await engine.events() if event.what == "raised"]
        assert (event.run, event.reason) == (again.id, "to HIGH, by another submission of its key")
        assert again.status().priority is Priority.HIGH


async def test_a_submission_that_waits_for_room_moves_too(tmp_path):
    started.clear()
    async with inline(tmp_path / "a.run", queue_depth=1) as engine:
        first = await engine.submit(busy, str(tmp_path / "go on"))
        queued = await engine.submit(noted, "queued", priority=Priority.LOW)
        waiting = asyncio.ensure_future(engine.submit(noted, "waiting", key="w", priority=Priority.LOW))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        raised = await within(engine.submit(noted, "waiting", key="w", priority=Priority.CRITICAL))
        assert (await within(waiting)).id == raised.id
        (tmp_path / "go on").touch()
        for run in (first, queued, raised):
            await within(run.result())
        assert started == ["waiting", "queued"]


async def test_a_higher_queue_that_is_full_leaves_the_run_on_disk_until_there_is_room(tmp_path):
    started.clear()
    async with inline(tmp_path / "a.run", queue_depth=1) as engine:
        first = await engine.submit(busy, str(tmp_path / "go on"))
        high = await engine.submit(noted, "high")
        low = await engine.submit(noted, "low", key="low", priority=Priority.LOW)
        await engine.submit(noted, "low", key="low", priority=Priority.HIGH)
        assert engine.status().waiting == {"LOW": 0, "NORMAL": 0, "HIGH": 1, "CRITICAL": 0}
        (tmp_path / "go on").touch()
        for run in (first, high, low):
            await within(run.result())
        assert started == ["high", "low"]


async def test_a_parked_run_and_one_of_an_earlier_program_are_raised_on_disk(tmp_path):
    async with inline(tmp_path / "a.run") as engine:
        talk = await engine.submit(held, key="talk", priority=Priority.LOW)
        await until(lambda: talk.status().state is RunState.RECEIVING)
        await engine.submit(held, key="talk", priority=Priority.NORMAL)
        assert talk.status().priority is Priority.NORMAL
    async with inline(tmp_path / "a.run") as engine:
        again = await engine.submit(held, key="talk", priority=Priority.HIGH)
        assert again.status().priority is Priority.HIGH
        await again.send("done")
        await within(again.result())
        await engine.submit(held, key="talk", priority=Priority.CRITICAL)
        assert again.status().priority is Priority.HIGH  # it has ended


async def test_a_run_in_a_worker_is_lent_memory_by_its_new_priority_and_its_child_has_it_too(tmp_path):
    async with Engine(tmp_path / "a.run", memory="+300MB", slot_memory="100MB") as engine:
        run = await engine.submit(parent, str(tmp_path / "go on"), key="p", priority=Priority.LOW)
        await until(lambda: len(engine._access.look(lambda loop: loop._runs.by_id)) == 2)
        await until(lambda: engine._access.look(lent_by) == [Priority.LOW])
        await engine.submit(parent, "any arguments", key="p", priority=Priority.HIGH)
        await until(lambda: engine._access.look(lent_by) == [Priority.HIGH])
        shown = engine._access.look(lambda loop: loop._driver.scheduler.snapshot().running)
        assert [each.priority for each in shown] == [Priority.HIGH, Priority.HIGH]
        assert {each.priority for each in await engine.unfinished()} == {Priority.HIGH}
        (tmp_path / "go on").touch()
        await within(run.result())


def lent_by(loop) -> list[Priority]:
    return [loan.priority for loan in loop._workers.lender._loans]


async def test_a_key_of_another_function_is_refused_with_the_name_of_that_function(tmp_path):
    async with inline(tmp_path / "a.run") as engine:
        both = await asyncio.gather(
            engine.submit(noted, "x", key="shared"), engine.submit(held, key="shared"), return_exceptions=True
        )
        assert [type(each).__name__ for each in both] == ["Run", "OptionError"]
        await within(both[0].result())
        with pytest.raises(
            OptionError, match=r"key='shared' is that of a run of .*:noted, and this is .*:held"
        ) as refused:
            await engine.submit(held, key="shared")
        assert "key=None" in refused.value.fix
        assert (await engine.submit(noted, "other arguments", key="shared")).id == both[0].id


async def test_a_full_queue_says_that_its_depth_is_per_priority(tmp_path):
    async with inline(tmp_path / "a.run", queue_depth=2) as engine:
        for priority in (Priority.HIGH, Priority.LOW):
            for number in range(2 + (priority is Priority.HIGH)):
                await engine.submit(busy, str(tmp_path / "go on"), key=f"{priority} {number}", priority=priority)
        with pytest.raises(
            QueueFull, match=r"2 agent runs wait at priority LOW, and queue_depth=2 .* per priority"
        ) as full:
            await engine.submit_nowait(noted, "x", priority=Priority.LOW)
        assert (full.value.depth, full.value.queue_depth) == (2, 2)
        status = engine.status()
        assert (status.queue_depth, status.waiting["HIGH"], status.waiting["LOW"]) == (2, 2, 2)
        assert "2 LOW, 2 HIGH (at most 2 per priority)" in str(status)
        (tmp_path / "go on").touch()
        await within(engine.drain())
