"""Requests of callers beside submitting: waits that are given up, decisions about side effects."""

import asyncio
from pathlib import Path

import pytest

import headrace
from headrace import Engine
from headrace.errors import RunUndecided


async def listening(ctx):
    return await ctx.receive()


async def waiting_at(engine: Engine) -> int:
    """How many replies the engine holds for those who wait for the end of a run."""
    return engine._access.look(lambda loop: sum(map(len, loop._listeners._waiting.values())))


async def test_one_who_gave_up_waiting_for_a_result_is_forgotten(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(listening)
        patient = asyncio.create_task(run.result())
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run.result(), 0.005)
        assert await waiting_at(engine) == 1
        await run.send("hello")
        assert await asyncio.wait_for(patient, 20) == "hello"
        assert await asyncio.wait_for(run.result(), 20) == "hello"
        assert await waiting_at(engine) == 0


def pay(log):
    with Path(log).open("a") as file:
        file.write("paid\n")
    if Path(log).read_text() == "paid\n":
        raise ConnectionError("nobody knows whether it arrived")
    return "receipt"


@headrace.task(max_attempts=2)
async def paying(ctx, log, how):
    return await ctx.step("pay", pay, log, side_effect=True)


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_run_goes_on_as_its_caller_decides(tmp_path, monkeypatch, isolation):
    monkeypatch.setattr("headrace.agents.engine.run_commands._FIRST_RETRY_S", 0.01)
    async with Engine(tmp_path / "a.run", isolation=isolation, memory="+400MB") as engine:
        for decision, result, payments in (
            ({"again": True}, "receipt", 2),
            ({"result": None}, None, 1),
            ({"result": "found"}, "found", 1),
        ):
            log = tmp_path / f"{decision}"
            run = await engine.submit(paying, str(log), str(decision))
            with pytest.raises(RunUndecided, match="'pay'"):
                await asyncio.wait_for(run.result(), 20)
            await run.resolve("pay", **decision)
            assert await asyncio.wait_for(run.result(), 20) == result
            assert log.read_text() == "paid\n" * payments
