"""Runs that end without a result: what is told of them, where they are found, and whose failure it was."""

import asyncio
import re

import pytest

from headrace import Engine, task
from headrace.errors import ModelUnusable, RunFailed
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine import waiting_functions as functions
from tests.agents.engine.waiting_functions import lines

LONG_S = 40


async def failure_of(run):
    with pytest.raises(RunFailed) as caught:
        await asyncio.wait_for(run.result(), LONG_S)
    return caught.value


async def events(engine, what):
    return [(event.run, event.reason) for event in await engine.events() if event.what == what]


def divides(by):
    return 1 / by


@task(breaker=None)
async def fails(ctx, tool):
    raise KeyError(f"no tool\n{tool}")


@task(breaker=None)
async def fails_in_a_step(ctx):
    await ctx.step("before", divides, 1)
    await ctx.step("divide", divides, 0)


@task(breaker=None)
async def catches(ctx, tool):
    try:
        await ctx.run(fails, tool)
    except RunFailed as error:
        return [error.run_name, error.state, error.reason]


def engine_at(path, isolation="inline", **options):
    given = {"memory": "+500MB", "slot_memory": "100MB", "grace_s": 0.3, **options}
    return Engine(path, isolation=isolation, **given)


async def test_a_failed_run_is_an_event_is_counted_and_is_found_to_be_tried_again(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        for tool in "abc":
            await engine.submit(fails, tool, key=tool)
        await engine.submit(fails_in_a_step, key="cancelled", priority=0)
        await (await engine.find("cancelled")).cancel()
        await engine.drain()
        assert engine.status().counts["failed"] == len(await events(engine, "failed")) >= 3
        assert all("KeyError" in reason for run, reason in await events(engine, "failed") if run <= 3)
        assert not await engine.unfinished()
        failed = (await engine.failed())[:3]
        assert [status.name for status in failed] == ["a", "b", "c"]
        assert {status.state for status in failed} == {RunState.FAILED}
        assert [status.name for status in await engine.failed(1)] == [(await engine.failed())[-1].name]
        await engine.handle(failed[0]).retry()
        assert "KeyError" in str(await failure_of(engine.handle(failed[0])))


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_the_error_names_the_step_and_the_line(tmp_path, isolation):
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        error = await failure_of(await engine.submit(fails_in_a_step))
        where = r"ZeroDivisionError: division by zero \(in step 'divide', line \d+ of test_failed_runs\.py\)"
        assert re.search(where, str(error))
        assert "return 1 / by" in error.reason
        error = await failure_of(await engine.submit(fails, "x"))
        assert re.search(r"no tool\S* \(line \d+ of test_failed_runs\.py\)", str(error))


async def test_a_parent_gets_the_failure_of_its_child_with_the_fields_that_a_caller_gets(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        told = await failure_of(await engine.submit(fails, "x", key="x"))
        name, state, reason = await asyncio.wait_for((await engine.submit(catches, "x")).result(), LONG_S)
        assert name.endswith("> tests.agents.engine.test_failed_runs:fails")
        assert (state, reason) == (told.state, told.reason)
        assert "Traceback" in reason


@pytest.mark.usefixtures("small_warden")
async def test_a_child_that_kills_the_worker_it_shares_with_its_parent_ends_with_it(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", "process") as engine:
        error = await failure_of(await engine.submit(functions.dies_with_its_child, str(log)))
        await asyncio.wait_for(engine.drain(), LONG_S)
        assert lines(log) == ["dying"] * 3
        assert "in step 'deadly' of its child 'tests.agents.engine.waiting_functions:dying_child'" in str(error)
        assert "tried 3 times" in str(error)
        assert "$run" not in str(error)
        parent, child = await engine.failed()
        assert (parent.state, child.state) == (RunState.LOST, RunState.LOST)


@task(name="meets an unusable model")
async def unusable(ctx, number, in_a_child):
    if in_a_child:
        return await ctx.run(unusable, number, False)
    raise ModelUnusable("its key is refused")


@pytest.mark.parametrize("in_a_child", [False, True])
async def test_what_an_endpoint_fails_with_does_not_open_the_circuit_of_the_kind(tmp_path, in_a_child):
    async with engine_at(tmp_path / "a.run") as engine:
        for number in range(5):
            error = await failure_of(await engine.submit(unusable, number, in_a_child))
            assert "its key is refused" in str(error)
        assert not engine.status().open_circuits
