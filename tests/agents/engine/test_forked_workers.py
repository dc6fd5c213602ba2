"""Workers forked from the warden as users have it, with the engine preloaded: what they share with it is not theirs."""

import asyncio

import pytest

from headrace import Engine
from headrace.errors import RunFailed
from tests.agents.engine import edge_functions as functions


def engine_at(path, **options):
    return Engine(path, **{"memory": "+400MB", "slot_memory": "120MB", "grace_s": 0.3, **options})


async def result_of(run):
    return await asyncio.wait_for(run.result(), 30)


async def test_a_run_whose_forks_take_all_there_is_is_told_so(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        with pytest.raises(RunFailed, match=r"out of memory: .+memory="):
            await result_of(await engine.submit(functions.forking))


async def test_a_program_is_measured_from_where_it_has_begun_and_not_by_whoever_forked_it(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        assert await result_of(await engine.submit(functions.has_preloaded, "headrace.agents.engine.engine"))
        said, peak_bytes = await result_of(await engine.submit(functions.commanding_many_small_programs))
        assert said == [f"{number}\n" for number in range(40)]
        assert peak_bytes < 12_000_000


async def test_children_that_share_their_parents_memory_are_no_emergency(tmp_path):
    async with engine_at(tmp_path / "a.run", memory="+300MB", slot_memory="200MB") as engine:
        run = await engine.submit(functions.forking_a_few)
        assert await result_of(run) == 16
        assert run.status().attempts <= 2  # on a busy machine the first reading after they began may come too late
