"""Side effects of children: leaving the engine waits for them, and what cuts them says so."""

import asyncio

import pytest

from headrace import Engine
from headrace.errors import RunCancelled
from tests.agents.engine import waiting_functions as functions
from tests.agents.engine.waiting_functions import lines

pytestmark = pytest.mark.usefixtures("small_warden")

LONG_S = 40


def engine_at(path, isolation):
    return Engine(path, isolation=isolation, memory="+500MB", slot_memory="100MB", grace_s=0.1, slots=2)


async def until(condition):
    async with asyncio.timeout(LONG_S):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_leaving_the_engine_waits_for_the_side_effect_of_a_child(tmp_path, isolation, isolated):
    log, flag = tmp_path / "log", tmp_path / "flag"
    arguments = (str(log), str(flag), isolated)
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        await engine.submit(functions.parent_of_held_effects, *arguments)
        await until(lambda: "e1 begins" in lines(log))
        asyncio.get_running_loop().call_later(0.4, flag.touch)  # while the engine waits, however late that begins
    left_at = lines(log)
    assert left_at[-1] == "e1 ends"
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.parent_of_held_effects, *arguments)
        assert await asyncio.wait_for(run.result(), LONG_S) == "with effects"
    assert lines(log) == [*left_at, "e2 begins", "e2 ends"]


async def test_a_worker_that_does_not_stop_is_not_killed_inside_the_side_effect_of_a_child(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", "process") as engine:
        await engine.submit(functions.blocks_beside_an_effect, str(log))
        await until(lambda: "blocks" in lines(log))
    assert lines(log)[-1] == "e0 ends"
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(functions.blocks_beside_an_effect, str(log))
        assert await asyncio.wait_for(run.result(), LONG_S) == ["with effects", None]
    assert lines(log).count("e0 begins") == 1


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_cancelling_a_parent_inside_a_childs_side_effect_names_the_step(tmp_path, isolation, isolated):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        seconds = 8.0 if isolation == "process" else 2.0  # a worker is killed; a thread goes on to its end
        run = await engine.submit(functions.parent_of_effects, str(log), seconds, 1, isolated)
        await until(lambda: "e0 begins" in lines(log))
        (child,) = [each.id for each in await engine.unfinished() if each.id != run.id]
        await run.cancel()
        with pytest.raises(RunCancelled):
            await asyncio.wait_for(run.result(), LONG_S)
        told = await _told_of(engine, "undecided")
    assert [(event.run, event.reason) for event in told] == [
        (child, "cancelled: it ended inside the side effect of step 'e0', which may or may not have happened")
    ]


async def test_a_run_cancelled_inside_its_own_side_effect_names_the_step_and_no_other(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(functions.with_held_effects, str(log), str(tmp_path / "no flag"))
        await until(lambda: "e1 begins" in lines(log))
        await run.cancel()
        with pytest.raises(RunCancelled, match=r"side effect of step 'e1', which may or may not have happened"):
            await asyncio.wait_for(run.result(), LONG_S)


async def _told_of(engine, what):
    found = []
    async with asyncio.timeout(LONG_S):
        while not found:
            await asyncio.sleep(0.05)
            found = [event for event in await engine.events() if event.what == what]
    return found
