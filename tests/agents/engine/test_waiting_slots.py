"""A slot is for computing: a run that waits for a model, a program or a child gives it away, and takes it back."""

import asyncio
import os
import signal

import pytest

from headrace import Priority
from headrace.agents.engine import held_answers
from headrace.agents.engine.live_runs import HeldAnswer
from headrace.errors import RunCancelled
from tests.agents.engine import waiting_functions as functions
from tests.agents.engine.waiting_engines import engine_at, results, until
from tests.models.gathering_server import Gathering

pytestmark = pytest.mark.usefixtures("small_warden")


@pytest.mark.parametrize("count", [4, 10])
async def test_more_runs_than_slots_wait_for_models_at_once(tmp_path, isolation, server, count):
    gathering = Gathering(min(count, 8))  # as many as a new endpoint gets at once
    server.behave([gathering.respond])
    async with engine_at(tmp_path / "a.run", isolation, slots=2, queue_depth=10) as engine:
        runs = [await engine.submit(functions.asks, server.url, f"p{number}") for number in range(count)]
        assert await results(*runs) == [f"p{number}" for number in range(count)]
    assert gathering.most >= min(count, 8)
    assert server.calls == count


async def test_a_run_that_asks_several_times_at_once_waits_again_after_each_reply(tmp_path, isolation, server):
    gathering = Gathering(4)
    server.behave(lambda call: "ok" if call.prompt == "quick" else gathering.respond, answer="quick")
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        several = await engine.submit(functions.asks_several, server.url, ["a", "quick", "b", "c"])
        one = await engine.submit(functions.asks, server.url, "d")
        assert await results(several, one) == [["a", "quick", "b", "c"], "d"]


async def test_a_step_beside_a_request_has_its_turn_when_the_other_run_waits_too(tmp_path, isolation, server):
    server.behave([Gathering(2).respond])
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        beside = await engine.submit(functions.steps_beside_an_ask, server.url, "a", str(tmp_path / "log"))
        other = await engine.submit(functions.asks, server.url, "b")
        assert await results(beside, other) == [["a", "beside"], "b"]


async def test_a_child_that_waits_in_its_parents_slot_gives_it_away(tmp_path, isolation, server):
    server.behave([Gathering(2).respond])
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        runs = [await engine.submit(functions.child_asks, server.url, name) for name in ("a", "b")]
        assert await results(*runs) == ["a", "b"]


async def test_runs_that_wait_for_programs_wait_at_once(tmp_path):
    logs = [str(tmp_path / "one"), str(tmp_path / "two")]
    async with engine_at(tmp_path / "a.run", "process") as engine:
        runs = [await engine.submit(functions.waits_for_a_program, *pair) for pair in (logs, logs[::-1])]
        assert await results(*runs) == [0, 0]


async def test_no_more_runs_compute_at_once_than_there_are_slots(tmp_path, isolation, server):
    log = tmp_path / "log"
    server.behave("ok", latency=lambda _: 0.06)
    async with engine_at(tmp_path / "a.run", isolation, slots=2, queue_depth=10) as engine:
        runs = [await engine.submit(functions.computes_and_asks, server.url, f"r{n}", str(log)) for n in range(6)]
        assert await results(*runs) == [f"r{number}" for number in range(6)]
    assert len(functions.lines(log)) == 2 * 3 * 6
    assert functions.most_at_once(log) <= 2


async def test_an_engine_that_is_left_while_its_run_waits_goes_on_when_it_is_opened_again(tmp_path, isolation, server):
    log, held = tmp_path / "log", Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        await engine.submit(functions.tells_its_worker_and_asks, server.url, str(log))
        await until(lambda: server.calls == 1 and engine.status().awaiting == 1)
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.tells_its_worker_and_asks, server.url, str(log))
        assert await results(run) == ["again"]
    assert functions.lines(log) == ["told", "after"]


async def held_answer(engine, server, tmp_path):
    """A run whose reply is there and whose slot computes for another, which ends when the flag is there."""
    log = str(tmp_path / "log")
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    run = await engine.submit(functions.tells_its_worker_and_asks, server.url, log)
    await until(lambda: server.calls == 1 and engine.status().awaiting == 1)
    other = await engine.submit(functions.computes_until, log, str(tmp_path / "flag"))
    await until(lambda: "computes" in functions.lines(log))
    steps = engine.status().counts["steps"]
    held.answer()
    await until(lambda: engine.status().counts["steps"] > steps)  # the reply is journaled
    await asyncio.sleep(0.1)
    assert engine.status().awaiting == 1
    assert "after" not in functions.lines(log)
    return run, other


async def test_a_reply_is_held_until_the_run_has_its_turn_again(tmp_path, isolation, server):
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run, other = await held_answer(engine, server, tmp_path)
        (tmp_path / "flag").touch()
        assert await results(run, other) == ["tell", None]
    assert server.calls == 1


async def test_a_large_reply_is_held_in_the_journal_only(tmp_path, isolation, server, monkeypatch):
    monkeypatch.setattr(held_answers, "_LARGE_BYTES", 1)
    held: list[HeldAnswer] = []
    monkeypatch.setattr(held_answers, "HeldAnswer", lambda *a, **k: held.append(HeldAnswer(*a, **k)) or held[-1])
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run, other = await held_answer(engine, server, tmp_path)
        assert [(answer.data, answer.is_in_journal) for answer in held if answer.step] == [(None, True)]
        (tmp_path / "flag").touch()
        assert await results(run, other) == ["tell", None]
    assert server.calls == 1


async def test_a_worker_killed_while_its_reply_is_held_costs_nothing(tmp_path, server):
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run, other = await held_answer(engine, server, tmp_path)
        os.kill(int(functions.lines(tmp_path / "log.pids")[0]), signal.SIGKILL)
        (tmp_path / "flag").touch()
        assert await results(run, other) == ["tell", None]
    assert server.calls == 1
    assert functions.lines(tmp_path / "log") == ["told", "computes", "after"]


async def test_a_run_is_cancelled_while_its_reply_is_held(tmp_path, isolation, server):
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run, other = await held_answer(engine, server, tmp_path)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await results(run)
        (tmp_path / "flag").touch()
        assert await results(other) == [None]
        assert await engine.unfinished() == []


async def test_an_engine_that_is_left_while_a_reply_is_held_does_not_ask_again(tmp_path, isolation, server):
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        await held_answer(engine, server, tmp_path)
        (tmp_path / "flag").touch()
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.tells_its_worker_and_asks, server.url, str(tmp_path / "log"))
        assert await results(run) == ["tell"]
    assert server.calls == 1


async def test_a_run_that_waits_gives_its_memory_to_critical_work(tmp_path, server):
    log, held = tmp_path / "log", Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with engine_at(tmp_path / "a.run", "process", memory="+300MB", slot_memory="200MB") as engine:
        run = await engine.submit(functions.holds_memory_and_asks, server.url, str(log))
        await until(lambda: server.calls == 1 and engine.status().awaiting == 1)
        critical = await engine.submit(functions.large, str(log), priority=Priority.CRITICAL)
        assert await results(critical) == ["large"]
        held.answer()
        assert await results(run) == [["tell", 100 << 20]]
    assert functions.lines(log) == ["told", "large"]
    assert server.calls == 1


async def test_a_time_limit_gives_the_call_up_and_its_error_has_its_turn_as_a_reply_would(tmp_path, server):
    server.behave("hang")
    log, flag = tmp_path / "log", tmp_path / "flag"
    async with engine_at(tmp_path / "a.run", "inline") as engine:
        asking = await engine.submit(functions.asks_briefly, server.url, "p")
        try:
            await until(lambda: server.calls)
            computing = await engine.submit(functions.computes_until, str(log), str(flag))
            await until(log.exists)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asking.result(), 4)
        finally:
            flag.touch()
        assert await results(asking, computing) == ["ProviderTimeout", None]
    assert server.calls == 1
