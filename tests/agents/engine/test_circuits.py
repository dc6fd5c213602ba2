"""The circuit of a kind of run, with real workers: what one run does costs no other run its turn."""

import asyncio
import time
from pathlib import Path

import pytest

import headrace
from headrace import Engine
from headrace.agents.scheduler.events import AttemptEnded, Notice, Submitted
from headrace.errors import CircuitOpen, OptionError, RunFailed
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine import isolated_functions as functions

pytestmark = pytest.mark.usefixtures("small_warden")

SOON = BreakerLimits(cool_down_s=2.0)


def engine_at(path: Path, **options) -> Engine:
    return Engine(path, **{"memory": "+400MB", "slot_memory": "100MB", "slots": 4, **options})


async def within(waiting, seconds=40):
    return await asyncio.wait_for(waiting, seconds)


async def until_in(state: RunState, *runs) -> None:
    give_up_s = time.monotonic() + 40
    while any(run.status().state is not state for run in runs):
        assert time.monotonic() < give_up_s, [run.status() for run in runs]
        await asyncio.sleep(0.02)


async def test_one_message_that_kills_its_worker_refuses_no_other_conversation(tmp_path):
    """Four conversations that park between replies, one of which gets a message that no worker survives."""
    async with engine_at(tmp_path / "a.run") as engine:
        talks = [await engine.submit(functions.conversation, key=f"talk {number}") for number in range(4)]
        await until_in(RunState.RECEIVING, *talks)
        await talks[0].send("die")
        with pytest.raises(RunFailed, match="lost"):
            await within(talks[0].result())
        assert talks[0].status().attempts >= 4  # it parked once, and was tried three times
        assert engine.status().open_circuits == {}
        for number, talk in enumerate(talks[1:]):
            await talk.send(f"hello {number}")
        newcomer = await engine.submit(functions.conversation, key="a new user")
        for talk in (*talks[1:], newcomer):
            await talk.send("bye")
        assert [await within(talk.result()) for talk in talks[1:]] == [
            [f"hello {number}", "bye"] for number in range(3)
        ]
        assert await within(newcomer.result()) == ["bye"]


async def test_what_has_started_before_goes_on_while_its_circuit_is_open_and_parking_closes_it(tmp_path):
    """A message wakes a parked conversation though new ones are refused; after the pause, newcomers that park count."""
    async with engine_at(tmp_path / "a.run", breaker=SOON) as engine:
        old = await engine.submit(functions.conversation, key="old")
        await until_in(RunState.RECEIVING, old)
        for number in range(3):
            bad = await engine.submit(functions.conversation, "raise", key=f"bad {number}")
            with pytest.raises(RunFailed, match="raise"):
                await within(bad.result())
        with pytest.raises(CircuitOpen):
            await engine.submit(functions.conversation, key="refused")
        await old.send("still there?")
        await old.send("bye")
        assert await within(old.result()) == ["still there?", "bye"]
        await asyncio.sleep(2.1)
        for number in range(3):
            probe = await engine.submit(functions.conversation, key=f"probe {number}")
            await until_in(RunState.RECEIVING, probe)
        assert engine.status().open_circuits == {}


async def test_an_open_circuit_names_the_run_that_failed_last_its_error_and_when_to_try_again(tmp_path):
    async with engine_at(tmp_path / "a.run", isolation="inline") as engine:
        for number in range(3):
            run = await engine.submit(functions.raising, f"number {number}", key=f"run {number}")
            with pytest.raises(RunFailed):
                await within(run.result())
        with pytest.raises(
            CircuitOpen,
            match=r"The run run 2 failed last: ValueError: number 2 \(line \d+ of isolated_functions\.py\)\. ",
        ) as refused:
            await engine.submit(functions.raising, "again")
        (opened,) = [event.reason for event in await engine.events() if event.what == Notice.CIRCUIT_OPENED.value]
        assert ":raising: the run run 2 failed last: ValueError: number 2 (line " in opened
        assert 0 < refused.value.retry_after_s <= 10
        assert f"again in {refused.value.retry_after_s:.1f} s" in refused.value.fix
        assert (refused.value.run_name, refused.value.reason.splitlines()[1]) == ("run 2", "and a second line")


async def test_a_kind_may_have_a_breaker_of_its_own_or_none(tmp_path):
    async with engine_at(tmp_path / "a.run", isolation="inline") as engine:
        for number in range(5):
            with pytest.raises(RunFailed):
                await within((await engine.submit(functions.raising_freely, number)).result())
        with pytest.raises(RunFailed):
            await within((await engine.submit(functions.raising_once, 0)).result())
        with pytest.raises(CircuitOpen) as refused:
            await engine.submit(functions.raising_once, 1)
        assert 20 < refused.value.retry_after_s <= 25


async def test_an_engine_without_a_breaker_refuses_only_kinds_with_one_of_their_own(tmp_path):
    async with engine_at(tmp_path / "a.run", isolation="inline", breaker=None) as engine:
        for number in range(5):
            with pytest.raises(RunFailed):
                await within((await engine.submit(functions.raising, number)).result())
        with pytest.raises(RunFailed):
            await within((await engine.submit(functions.raising_once, 0)).result())
        with pytest.raises(CircuitOpen):
            await engine.submit(functions.raising_once, 1)


async def test_a_childs_breaker_comes_with_its_kind_from_the_worker(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        for number in range(4):
            parent = await engine.submit(functions.with_failing_child, number)
            assert await within(parent.result()) == "its child failed"
        assert engine.status().open_circuits == {}


async def test_a_run_that_waits_on_disk_to_be_a_probe_does_not_keep_parked_ones_of_its_kind_there(tmp_path):
    """Of two runs on disk one has started before: the circuit refuses the other, and this one goes on."""
    async with engine_at(tmp_path / "a.run", isolation="inline", slots=1, queue_depth=1) as engine:
        talk = await engine.submit(functions.conversation, key="talk")
        await until_in(RunState.RECEIVING, talk)
        long = await engine.submit(functions.sleeping_long)
        waiting = await engine.submit(functions.conversation, key="never started")
        assert waiting.status().state is RunState.WAITING
        assert long.status().attempts == 1
    async with engine_at(tmp_path / "a.run", isolation="inline", slots=2, queue_depth=1) as engine:
        for number in range(3):
            engine._access.look(lambda loop, number=number: fail(loop, number))
        assert list(engine.status().open_circuits) == [functions.conversation.__module__ + ":conversation"]
        engine.register(functions.conversation)
        await asyncio.sleep(0.2)
        assert waiting.id == (await engine.find("never started")).id
        assert (await engine.find("never started")).status().attempts == 0
        again = await engine.find("talk")
        await again.send("bye")
        assert await within(again.result()) == ["bye"]
        await (await engine.find("never started")).cancel()


def fail(loop, number: int) -> None:
    """Tell the engine's scheduler of a run that failed, by itself: so the circuit is open before anything is read."""
    kind, number = functions.conversation.__module__ + ":conversation", 10_000 + number
    scheduler = loop._driver.scheduler
    (start,) = scheduler.handle(Submitted(now_s=time.monotonic(), id=number, kind=kind, memory_bytes=1))
    scheduler.handle(AttemptEnded(now_s=time.monotonic(), id=number, epoch=start.epoch, cause=ExitCause.FAILED))


@pytest.mark.parametrize("given", [3, "none", BreakerLimits])
def test_a_breaker_that_is_none_is_refused_before_anything_runs(given):
    with pytest.raises(OptionError, match="is not BreakerLimits"):
        headrace.task(breaker=given)(functions.modest)
