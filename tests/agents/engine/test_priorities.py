"""What a higher priority gets where lower work is in its way."""

import asyncio
import time
from pathlib import Path

import pytest

from headrace import Engine, Priority


def logged(log, line):
    with Path(log).open("a") as file:
        file.write(f"{line}\n")


def held(log, line, flag):
    logged(log, f"{line} begins")
    while not Path(flag).exists():
        time.sleep(0.01)
    logged(log, line)


async def stepping(ctx, log, flag):
    """Each step ends when the flag is there."""
    for number in range(3):
        await ctx.step(f"s{number}", held, log, f"low {number}", flag)
    return ctx.attempt


async def quick(ctx, log, line):
    await ctx.step("s", logged, log, line)


async def begun(log, line):
    async with asyncio.timeout(30):
        while not Path(log).exists() or line not in Path(log).read_text().splitlines():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_high_work_has_the_slot_of_low_work_when_its_step_is_over_and_the_step_is_not_repeated(
    tmp_path, isolation
):
    log, flag = str(tmp_path / "log"), tmp_path / "flag"
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=1, isolation=isolation, grace_s=0.05) as engine:
        low = await engine.submit(stepping, log, str(flag), priority=Priority.LOW)
        await begun(log, "low 0 begins")  # it has journaled nothing yet
        high = await engine.submit(quick, log, "high")
        await preempted(engine)
        await asyncio.sleep(1.2)  # longer than a run with a deadline would have
        flag.touch()
        await asyncio.wait_for(high.result(), 30)
        assert await asyncio.wait_for(low.result(), 30) == 2
        (event,) = [event for event in await engine.events() if event.what == "preempted"]
        lacked = "makes room for work of a higher priority, which lacked a slot"
        assert event.reason == f"{lacked}: run {high.id} ({high.name})"
    lines = [line for line in Path(log).read_text().splitlines() if not line.endswith("begins")]
    assert lines == ["low 0", "high", "low 1", "low 2"]


async def test_critical_work_waits_for_no_step_of_low_work(tmp_path):
    log = str(tmp_path / "log")
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=1, grace_s=0.05) as engine:
        low = await engine.submit(stepping, log, str(tmp_path / "no flag"), priority=Priority.LOW)
        await begun(log, "low 0 begins")
        critical = await engine.submit(quick, log, "critical", priority=Priority.CRITICAL)
        await asyncio.wait_for(critical.result(), 30)
        await low.cancel()
    assert "low 0" not in Path(log).read_text().splitlines()


async def test_a_preemption_that_gets_a_deadline_is_one_event_and_is_counted_in_the_run_s_status(tmp_path):
    log = str(tmp_path / "log")
    async with Engine(tmp_path / "a.run", memory="+400MB", slots=1, grace_s=0.05) as engine:
        low = await engine.submit(stepping, log, str(tmp_path / "no flag"), priority=Priority.LOW)
        await begun(log, "low 0 begins")
        assert low.status().preemptions == 0
        await engine.submit(quick, log, "high", priority=Priority.HIGH)  # patiently: at the next step
        await preempted(engine)
        critical = await engine.submit(quick, log, "critical", priority=Priority.CRITICAL)  # after grace_s
        await asyncio.wait_for(critical.result(), 30)
        assert await preempted(engine) == [low.id]
        assert low.status().preemptions == 1
        await low.cancel()


async def preempted(engine):
    async with asyncio.timeout(30):
        while not (found := [event.run for event in await engine.events() if event.what == "preempted"]):
            await asyncio.sleep(0.01)
    return found
