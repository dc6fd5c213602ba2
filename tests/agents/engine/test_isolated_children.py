"""`ctx.run(..., isolated=True)`: a child with a slot and a worker of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Engine
from headrace.errors import RunCancelled, RunFailed
from headrace.limits import MemoryLimits
from headrace.memory.budget import memory_limits
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine import waiting_functions as functions
from tests.agents.engine.waiting_functions import lines

pytestmark = pytest.mark.usefixtures("small_warden")

LONG_S = 40
ROOT = Path(__file__).parents[3]


def engine_at(path, isolation="process", **options):
    given = {"memory": "+500MB", "slot_memory": "100MB", "grace_s": 0.3, "slots": 1, **options}
    return Engine(path, isolation=isolation, **given)


async def result_of(run):
    return await asyncio.wait_for(run.result(), LONG_S)


async def until(condition):
    async with asyncio.timeout(LONG_S):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_an_isolated_child_of_an_isolated_child_runs_though_there_is_one_slot(tmp_path, isolation):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        assert await result_of(await engine.submit(functions.grandparent, str(log))) == "of a child"
        assert not await engine.unfinished()
    parent, child = lines(log)
    assert (parent.split()[1] != child.split()[1]) is (isolation == "process")


async def test_a_crash_of_an_isolated_child_costs_the_child_and_its_parent_hears_of_it(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.parent_of_a_dying_child, str(log))
        name, words = await result_of(run)
        assert name == "RunFailed"
        assert "SIGKILL" in words
        assert run.status().attempts == 1
    tries = lines(log)
    assert tries[0] == "before"
    assert len(tries) > 2, "it was tried again"
    assert set(tries[1:]) == {"dying"}


async def test_a_parent_whose_worker_is_killed_finds_the_child_that_still_runs(tmp_path):
    log, flag = tmp_path / "log", tmp_path / "flag"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.parent_of_a_patient_child, str(log), str(flag))
        await until(lambda: "child began" in lines(log))
        os.kill(int(lines(f"{log}.pids")[0]), signal.SIGKILL)
        await until(lambda: len(lines(f"{log}.pids")) == 2 or engine.status().counts.get("lost"))
        flag.touch()
        assert await result_of(run) == "child ends"
    assert lines(log) == ["parent began", "child began", "child ends"]


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_parent_and_its_isolated_child_go_on_together_when_the_engine_is_opened_again(tmp_path, isolation):
    log, flag = tmp_path / "log", tmp_path / "flag"
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        await engine.submit(functions.parent_of_a_patient_child, str(log), str(flag))
        await until(lambda: "child began" in lines(log))
    flag.touch()
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.parent_of_a_patient_child, str(log), str(flag))
        assert await result_of(run) == "child ends"
        assert not await engine.unfinished()
    assert lines(log) == ["parent began", "child began", "child ends"]


PROGRAM = """
import asyncio, sys
from headrace import Engine
from tests.agents.engine import waiting_functions as functions

async def main(path, log, flag):
    async with Engine(path, memory="+500MB", slot_memory="100MB", slots=1) as engine:
        run = await engine.submit(functions.parent_of_a_patient_child, log, flag)
        print(await run.result(), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_parent_finds_its_isolated_child_after_a_kill_of_the_engine(tmp_path):
    log, flag = tmp_path / "log", tmp_path / "flag"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "a.run"), str(log), str(flag)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as killed:
        await until(lambda: lines(f"{log}.journaled"))
        killed.kill()
    flag.touch()
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG_S, check=True)
    assert ran.stdout.strip() == "child ends"
    assert lines(log) == ["parent began", "child began", "child ends"]


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_cancelling_a_parent_cancels_its_isolated_child(tmp_path, isolation):
    log, flag = tmp_path / "log", tmp_path / "flag"
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.parent_of_a_patient_child, str(log), str(flag))
        await until(lambda: "child began" in lines(log))
        await run.cancel()
        with pytest.raises(RunCancelled):
            await result_of(run)
        await asyncio.wait_for(engine.drain(), LONG_S)
        assert await engine.unfinished() == []
    assert lines(log) == ["parent began", "child began"]


async def test_the_timeout_of_a_parent_cancels_its_isolated_child(tmp_path):
    log, flag = tmp_path / "log", tmp_path / "flag"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.short_parent, str(log), str(flag))
        with pytest.raises(RunFailed, match="timed out"):
            await result_of(run)
        await asyncio.wait_for(engine.drain(), LONG_S)
        assert await engine.unfinished() == []
    assert "child ends" not in lines(log)


@pytest.mark.parametrize("isolated", [True, False])
async def test_cancelling_a_parent_cancels_the_child_that_sleeps_on_disk(tmp_path, isolated):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.parent_of_a_sleeping_child, str(log), isolated)
        async with asyncio.timeout(LONG_S):
            while RunState.SLEEPING not in {each.state for each in await engine.unfinished()}:
                await asyncio.sleep(0.01)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await result_of(run)
        assert await engine.unfinished() == []


async def test_a_parent_gives_way_to_its_isolated_child_where_both_do_not_fit(tmp_path):
    log = tmp_path / "log"
    limits = memory_limits(MemoryLimits(budget="+300MB", hopeless_after_s=0.3))
    async with engine_at(tmp_path / "a.run", memory=limits, slot_memory="200MB") as engine:
        run = await engine.submit(functions.parent_of_a_large_child, str(log))
        assert await result_of(run) == ["large", 100 << 20]
        assert run.status().attempts == 2
    assert lines(log) == ["parent began", "large"]
