import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

import headrace
from headrace import Engine, Priority
from headrace.agents.engine import run_events
from headrace.agents.engine.engine_memory import EngineSurveyMemory
from headrace.errors import BudgetTooSmall, RunCancelled, RunFailed
from headrace.limits import MemoryLimits
from headrace.memory.gauge import BudgetReadings, TreeGauge
from headrace.memory.governor import Pressure
from headrace.memory.measure.own_tree import tree_bytes
from headrace.memory.reclaiming import reclaim_memory
from headrace.store.engine_file.engine_schema import RunState

MB = 1_000_000
ROOT = Path(__file__).parents[3]
stopped_after_s: list[float] = []


def limits(extra_bytes: int) -> MemoryLimits:
    reclaim_memory()
    return MemoryLimits(budget_bytes=tree_bytes() + extra_bytes, calm_s=0.1, min_run_s=0.2, hopeless_after_s=2.0)


def filled(size_bytes: int) -> bytearray:
    held = bytearray(size_bytes)
    held[::4096] = b"x" * len(held[::4096])  # an untouched page takes no memory
    return held


def test_agents_that_take_more_than_they_said_are_preempted_and_all_end_right(tmp_path):
    # In a process of its own: what other tests have left in this one would count as used.
    command = [sys.executable, "-m", "tests.agents.engine.programs.hungry", str(tmp_path / "a.run")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["results"] == [[number, 60 * MB] for number in range(6)]
    assert told["stopped"]
    assert all(share > 0.7 and "memory" in reason for reason, share in told["stopped"])
    assert told["attempts"] > 6
    assert 0 < told["preemptions"] <= len(told["stopped"])  # one that was told to stop may just have ended


async def stubborn(ctx):
    """Reaches no step after its first: only cancelling ends it."""
    await ctx.step("begin", asyncio.sleep, 0)
    began_s = time.monotonic()
    held = filled(80 * MB)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        stopped_after_s.append(time.monotonic() - began_s)
        raise
    return len(held)


async def test_a_run_that_reaches_no_step_is_cancelled_after_the_grace_period_and_its_memory_is_free(tmp_path):
    stopped_after_s.clear()
    before = tree_bytes()
    async with Engine(tmp_path / "a.run", isolation="inline", memory="+400MB", grace_s=0.1) as engine:
        await engine.submit(stubborn)
        while tree_bytes() - before < 60 * MB:
            await asyncio.sleep(0.01)
    assert len(stopped_after_s) == 1
    assert stopped_after_s[0] < 5
    assert tree_bytes() - before < 40 * MB


async def endless(ctx):
    await ctx.step("begin", asyncio.sleep, 0)
    await asyncio.sleep(600)


async def test_garbage_is_not_collected_for_runs_that_are_stopped_while_memory_is_not_short(tmp_path, monkeypatch):
    """Collecting stops the whole program, for seconds where it holds much: a cancel was not answered in time."""
    reclaimed = []
    monkeypatch.setattr(run_events, "reclaim_memory", lambda: reclaimed.append(1))
    async with Engine(tmp_path / "a.run", isolation="inline", memory="+400MB", grace_s=0.1) as engine:
        cancelled, _closed = await engine.submit(endless, key="cancelled"), await engine.submit(endless, key="closed")
        async with asyncio.timeout(30):
            while len(engine.status().in_slots) < 2:
                await asyncio.sleep(0.01)
            await cancelled.cancel()
            with pytest.raises(RunCancelled):
                await cancelled.result()
        told = [event.reason for event in await engine.events() if event.what == "stopped"]
    assert reclaimed == []
    assert re.fullmatch(r"\d+ ms after it was told to stop; [\d.]+ [MG]B in use", told[0]), told


async def test_heartbeats_are_skipped_above_seventy_percent_and_say_so(tmp_path):
    beats = []
    budget = limits(max(100 * MB, tree_bytes()))  # whatever other tests have left in this process, it begins calm
    async with Engine(tmp_path / "a.run", isolation="inline", memory=budget) as engine:
        engine.every(0.05, lambda: beats.append(1), name="pulse", jitter=0, max_skips=3)
        while not beats:
            await asyncio.sleep(0.01)
        held = filled(int(0.78 * budget.budget_bytes) - tree_bytes())
        await asyncio.sleep(0.15)
        while len(engine.status().heartbeats) and not engine.status().heartbeats[0].is_blind:
            await asyncio.sleep(0.01)
        during = len(beats)
        (beat,) = engine.status().heartbeats
        assert beat.last_skip_reason == "memory pressure"
        told = {event.what: event.reading for event in await engine.events()}
        assert {"heartbeat skipped", "heartbeat blind", "the memory level changed", "reclaimed"} <= set(told)
        assert told["reclaimed"]["used_bytes"] > 0.7 * told["reclaimed"]["budget_bytes"]
        del held
        reclaim_memory()
        give_up_at = time.monotonic() + 20
        while len(beats) == during:
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.01)


@headrace.task(name="modest", memory="1MB")
async def modest(ctx, number):
    return await ctx.step("s", abs, number)


async def test_low_runs_are_skipped_above_seventy_percent_say_so_and_end_when_it_has_fallen(tmp_path):
    may_end = threading.Event()

    async def working(ctx):  # with nothing running, memory that stays would be the new zero
        while not may_end.is_set():
            await asyncio.sleep(0.01)

    budget = limits(max(100 * MB, tree_bytes()))
    async with Engine(tmp_path / "a.run", isolation="inline", memory=budget, slots=4, slot_memory="1MB") as engine:
        first = await engine.submit(working)
        held = filled(int(0.78 * budget.budget_bytes) - tree_bytes())
        while engine.status().pressure == "NORMAL":
            await asyncio.sleep(0.01)
        low = [await engine.submit(modest, number, priority=Priority.LOW) for number in range(3)]
        high = await engine.submit(modest, 7)
        assert await high.result() == 7
        await asyncio.sleep(0.3)  # several readings: each run is told once
        assert engine.status().counts["skipped"] == 3
        assert [run.status().state for run in low] == [RunState.WAITING] * 3
        skipped = [event for event in await engine.events() if event.what == "skipped"]
        assert {event.run for event in skipped} == {run.id for run in low}
        assert all(event.reason == "memory pressure" for event in skipped)
        assert all(event.reading["used_bytes"] > 0.7 * event.reading["budget_bytes"] for event in skipped)
        del held
        reclaim_memory()
        assert [await run.result() for run in low] == [0, 1, 2]
        may_end.set()
        await first.result()


@headrace.task(name="enormous", memory="900GB")
async def enormous(ctx):
    return None


async def test_a_run_that_declares_more_than_the_budget_is_refused(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", memory="+100MB") as engine:
        with pytest.raises(BudgetTooSmall, match=r"declares .*, and the engine.s whole budget is \d+ MB") as refused:
            await engine.submit(enormous)
        assert 0 < refused.value.budget_bytes < refused.value.used_bytes


@headrace.task(name="fitted", memory="200MB")
async def fitted(ctx):
    return "done"


async def test_a_run_that_fitted_waits_while_this_process_has_its_memory_and_an_event_says_so(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", memory=limits(400 * MB)) as engine:
        held = filled(250 * MB)
        while engine.status().memory_bytes < tree_bytes() - 50 * MB:
            await asyncio.sleep(0.01)
        run = await engine.submit(fitted)
        while not (told := [event for event in await engine.events() if event.what == "waits for memory"]):
            await asyncio.sleep(0.02)
        assert "it needs 200 MB" in told[0].reason
        assert "in use outside of runs" in told[0].reason
        await asyncio.sleep(2.5)  # longer than `hopeless_after_s`
        assert run.status().state is RunState.WAITING
        del held
        reclaim_memory()
        assert await run.result() == "done"


async def test_a_run_that_fits_nowhere_for_long_fails_with_what_it_lacks_and_can_be_tried_again(tmp_path):
    given = replace(limits(400 * MB), gives_up_after_s=2.0)
    async with Engine(tmp_path / "a.run", isolation="inline", memory=given) as engine:
        held = filled(250 * MB)
        while engine.status().memory_bytes < tree_bytes() - 50 * MB:
            await asyncio.sleep(0.01)
        run = await engine.submit(fitted)
        waiting_for = ""
        while run.status().state is RunState.WAITING:
            waiting_for = engine.status().waiting_for or waiting_for
            await asyncio.sleep(0.02)
        assert "in use outside of runs: it needs 200 MB" in waiting_for
        with pytest.raises(RunFailed, match=r"it needs 200 MB, and of the budget .*memory= of its @task") as failed:
            await run.result()
        assert "retry" in str(failed.value)
        assert run.status().state is RunState.BUDGET_TOO_SMALL
        del held
        reclaim_memory()
        await run.retry()
        assert await run.result() == "done"


async def quick(ctx, number):
    return await ctx.step("s", abs, number)


async def test_critical_work_goes_before_what_waits_at_lower_levels(tmp_path):
    order, all_wait = [], []

    async def noting(ctx, level):
        await ctx.step("s", lambda: order.append(level))
        while not all_wait:
            await asyncio.sleep(0.005)

    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        first = await engine.submit(noting, "first")
        levels = [Priority.LOW, Priority.NORMAL, Priority.CRITICAL, Priority.HIGH]
        runs = [await engine.submit(noting, level.name, priority=level) for level in levels]
        all_wait.append(True)
        for run in (first, *runs):
            await run.result()
    assert order == ["first", "CRITICAL", "HIGH", "NORMAL", "LOW"]


def test_a_reading_that_a_survey_asks_for_is_a_new_one_of_the_engines():
    readings = BudgetReadings(TreeGauge(), MemoryLimits(budget_bytes=1 << 30))
    memory = EngineSurveyMemory(readings, lambda: Pressure.NORMAL, lambda: readings.read(0.0))
    for taken in (1, 2, 3):  # its window opens a step with each, and would wait for the engine's own otherwise
        memory.read(0.0)
        assert readings.taken == taken
    assert memory.used_bytes == readings.used_bytes > 0
