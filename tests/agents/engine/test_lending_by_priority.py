"""Memory is lent in the order of priority, promises are kept, and a run is set aside only for what it used itself."""

import asyncio
import re

import pytest

from headrace import Engine, Priority
from headrace.errors import RunFailed
from headrace.limits import MemoryLimits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.workers.lender import Lender
from tests.agents.engine import isolated_functions as functions

pytestmark = pytest.mark.usefixtures("small_warden")

MB = 1 << 20


def engine_at(path, more_mb, **options) -> Engine:
    """Without the levels of pressure: what happens is the lender's doing."""
    levels = {"shrink_at": 0.9, "shrink_until": 0.89, "preempt_at": 0.97, "preempt_until": 0.96, "emergency_at": 0.98}
    memory = MemoryLimits(budget_bytes=tree_bytes() + more_mb * MB, emergency_until=0.97, **levels)
    return Engine(path, memory=memory, slot_memory="250MB", grace_s=0.5, **options)


async def result_of(run, within_s=60):
    return await asyncio.wait_for(run.result(), within_s)


async def told(engine, what):
    return [(event.run, event.reason) for event in await engine.events() if event.what == what]


async def has_lines(log, count=1):
    async with asyncio.timeout(30):
        while len(functions.lines(log)) < count:
            await asyncio.sleep(0.02)


@pytest.fixture
def starts(monkeypatch):
    """What each worker of a run was lent at its start: (promised, limit)."""
    lent, lend = [], Lender.lend

    async def recorded(lender, *args, **options):
        loan = await lend(lender, *args, **options)
        lent.append((loan.reserved_bytes, loan.limit_bytes))
        return loan

    monkeypatch.setattr(Lender, "lend", recorded)
    return lent


async def test_of_two_that_grow_alike_the_lower_stops_and_the_higher_finishes(tmp_path):
    async with engine_at(tmp_path / "a.run", 320) as engine:
        grown = (170, None, 0.3)  # slowly: on a busy machine it takes a while until the lower one has stopped
        low = await engine.submit(functions.growing, str(tmp_path / "low"), *grown, priority=Priority.LOW)
        high = await engine.submit(functions.growing, str(tmp_path / "high"), *grown, priority=Priority.HIGH)
        assert await result_of(high) == 17
        assert high.status().attempts == 1
        assert await result_of(low) == 17
        assert low.status().attempts > 1
        preempted = await told(engine, "preempted")
        stopped = preempted + await told(engine, "out of memory")  # where the machine is slow, it meets its limit first
        assert {run for run, _ in stopped} == {low.id}
        assert all("about to meet its memory limit" in reason for _, reason in preempted)


async def test_a_higher_run_grows_into_what_a_lower_one_was_promised_and_does_not_use(tmp_path):
    until = tmp_path / "until"
    # Both need 300 MB, with the warden, what is kept back, and a fifth that keeps the growing one from being full.
    async with engine_at(tmp_path / "a.run", 360) as engine:
        low = await engine.submit(functions.holding, str(tmp_path / "low"), 10, str(until), priority=Priority.LOW)
        await has_lines(tmp_path / "low")
        high = await engine.submit(functions.growing, str(tmp_path / "high"), 120, priority=Priority.HIGH)
        assert await result_of(high) == 12
        until.touch()
        assert await result_of(low) == 10
        assert [run.status().attempts for run in (low, high)] == [1, 1], await engine.events()


async def test_a_run_that_lost_its_memory_to_a_higher_one_comes_back_and_is_not_set_aside(tmp_path):
    go, until = tmp_path / "go", tmp_path / "until"
    async with engine_at(tmp_path / "a.run", 300) as engine:
        low = await engine.submit(functions.promised, str(tmp_path / "low"), 80, str(go), priority=Priority.LOW)
        await has_lines(tmp_path / "low")
        high = await engine.submit(functions.growing, str(tmp_path / "high"), 80, str(until), priority=Priority.HIGH)
        await has_lines(tmp_path / "high", 8)
        await asyncio.sleep(0.2)
        go.touch()
        async with asyncio.timeout(30):
            while not await told(engine, "out of memory"):
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        assert low.status().attempts == 1  # what it was promised is not there: it waits
        until.touch()
        assert await result_of(high) == 8
        assert await result_of(low) == 80 * MB // 8
        assert [run.status().attempts for run in (high, low)] == [1, 2]


async def test_a_promise_is_kept_at_every_start_also_when_the_host_process_grows(tmp_path, starts):
    until, log = tmp_path / "until", tmp_path / "log"
    async with engine_at(tmp_path / "a.run", 260) as engine:
        run = await engine.submit(functions.holding, str(log), 70, str(until), priority=Priority.HIGH)
        await has_lines(log)
        taken = [functions.filled(180 * MB)]  # by this process
        async with asyncio.timeout(60):
            while not await told(engine, "killed"):
                await asyncio.sleep(0.5)
                taken.append(functions.filled(5 * MB))  # it may have had some to spare
        await asyncio.sleep(1.0)
        assert len(starts) == 1  # it waits for what it was promised
        until.touch()
        del taken
        assert await result_of(run) == 70
        assert run.status().attempts == 2
        assert len(starts) == 2
        assert all(limit >= reserved == 130_000_000 for reserved, limit in starts)


async def test_the_second_try_has_what_the_engine_allows_and_the_error_tells_both(tmp_path, starts):
    async with Engine(tmp_path / "a.run", memory="+400MB", slot_memory="60MB", oom_retry_memory="90MB") as engine:
        run = await engine.submit(functions.taking, str(tmp_path / "log"), "bytearray", 300)
        with pytest.raises(RunFailed) as failed:
            await result_of(run)
        assert [limit for _, limit in starts] == [60_000_000, 90_000_000]
        assert re.search(
            r"first MemoryError.* 60 MB it may, in step 'take'; on its second try MemoryError.* 90 MB it may, in step"
            r" 'take'\. .*memory= of its @task, slot_memory=, or oom_retry_memory=",
            str(failed.value),
        )


async def test_a_run_that_more_memory_does_not_help_is_not_tried_again(tmp_path, starts):
    async with Engine(tmp_path / "a.run", memory="+400MB", slot_memory="60MB") as engine:
        run = await engine.submit(functions.greedy, 300)
        with pytest.raises(RunFailed, match=r"60 MB it may, in step 'take'; it was not tried again.*oom_retry=False"):
            await result_of(run)
        assert len(starts) == run.status().attempts == 1


@pytest.mark.parametrize("options", [{}, {"slots": 3}, {"slot_memory": "130MB"}])
async def test_slots_are_as_many_as_they_are_called_also_for_new_kinds_of_unknown_need(tmp_path, options):
    until = tmp_path / "until"
    async with Engine(tmp_path / "a.run", memory="+420MB", **options) as engine:
        waiting = [await engine.submit(functions.waiting, str(until), 0, key="0")]
        if "slots" in options:
            waiting.append(await engine.submit(functions.modest, 1))
        assert await result_of(await engine.submit(functions.counting, str(tmp_path / "log"), 3), 9) == 3
        until.touch()
        assert [await result_of(run) for run in waiting] == [0, 1][: len(waiting)]
