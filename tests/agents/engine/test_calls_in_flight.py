"""A call that has gone out to a model outlives the attempt that asked for it, and is not made twice."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import Priority
from headrace.errors import RunCancelled
from tests.agents.engine import waiting_functions as functions
from tests.agents.engine.waiting_engines import LONG_S, engine_at, results, until
from tests.models.gathering_server import Gathering

pytestmark = pytest.mark.usefixtures("small_warden")


async def happened(engine, what, count=1):
    async with asyncio.timeout(LONG_S):
        while sum(event.what == what for event in await engine.events()) < count:
            await asyncio.sleep(0.01)


async def asked(engine, server):
    """The call is out, and its run's slot waits."""
    await until(lambda: server.calls == 1 and engine.status().awaiting > 0)


async def test_a_higher_run_has_the_memory_of_one_that_waits_at_once_and_no_call_is_made_twice(tmp_path, server):
    log, held = tmp_path / "log", Gathering(2)
    server.behave([held.respond])
    async with engine_at(tmp_path / "a.run", "process", memory="+300MB", slot_memory="200MB") as engine:
        low = await engine.submit(functions.holds_memory_and_asks, server.url, str(log), priority=Priority.LOW)
        await asked(engine, server)
        high = await engine.submit(functions.large, str(log), priority=Priority.HIGH)
        assert await results(high) == ["large"]
        assert held.waiting == 1  # the reply is still to come
        held.answer()
        assert await results(low) == [["tell", 100 << 20]]
        assert engine.status().usage["calls"] == 1
    assert server.calls == 1
    assert functions.lines(log) == ["told", "large"]


async def preempted(engine, server, tmp_path, function=functions.tells_its_worker_and_asks):
    """A run that was preempted while its call was in flight, and what has its memory until the flag is there."""
    run = await engine.submit(function, server.url, str(tmp_path / "log"), priority=Priority.LOW)
    await asked(engine, server)
    flag = str(tmp_path / "flag")
    other = await engine.submit(functions.large_until, str(tmp_path / "log"), flag, priority=Priority.HIGH)
    await happened(engine, "preempted")
    await until(lambda: "computes" in functions.lines(tmp_path / "log"))
    return run, other


def narrow(path, isolation="process"):
    """One of two runs fits."""
    return engine_at(path, isolation, memory="+300MB", slot_memory="280MB")


async def test_a_reply_that_comes_while_its_run_is_in_the_queue_is_journaled(tmp_path, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with narrow(tmp_path / "a.run") as engine:
        run, other = await preempted(engine, server, tmp_path, functions.holds_memory_and_asks)
        steps = engine.status().counts["steps"]
        held.answer()
        await until(lambda: engine.status().counts["steps"] > steps)
        (tmp_path / "flag").touch()
        assert await results(run, other) == [["tell", 100 << 20], None]
    assert server.calls == 1


async def test_a_run_that_comes_back_joins_its_call(tmp_path, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with narrow(tmp_path / "a.run") as engine:
        run, other = await preempted(engine, server, tmp_path, functions.holds_memory_and_asks)
        (tmp_path / "flag").touch()
        assert await results(other) == [None]
        await until(lambda: engine.status().awaiting == 1)
        held.answer()
        assert await results(run) == [["tell", 100 << 20]]
    assert server.calls == 1


async def test_a_reply_that_comes_before_the_next_attempt_is_at_its_step_is_kept_for_it(tmp_path, server):
    held, log = Gathering(2), tmp_path / "log"
    server.behave([held.respond, "ok"], answer="again")
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(functions.lingers_and_asks, server.url, str(log), str(tmp_path / "flag"))
        await asked(engine, server)
        os.kill(int(functions.lines(log)[0]), signal.SIGKILL)
        await until(lambda: len(functions.lines(log)) == 2)
        held.answer()
        await asyncio.sleep(0.2)  # the reply comes; nothing shows it
        (tmp_path / "flag").touch()
        assert await results(run) == ["tell"]
        assert engine.status().usage["calls"] == 1
    assert server.calls == 1


async def test_the_time_for_a_reply_does_not_run_out_while_no_attempt_waits_for_it(tmp_path, server):
    held, log, flag = Gathering(2), tmp_path / "log", tmp_path / "flag"
    server.behave([held.respond])
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(functions.lingers_and_asks, server.url, str(log), str(flag), 5.0)
        await asked(engine, server)
        os.kill(int(functions.lines(log)[0]), signal.SIGKILL)
        await asyncio.sleep(5.5)
        flag.touch()
        await until(lambda: engine.status().awaiting == 1)
        held.answer()
        assert await results(run) == ["tell"]
    assert server.calls == 1


@pytest.mark.parametrize("function", [functions.tells_its_worker_and_asks, functions.child_tells_and_asks])
async def test_a_worker_killed_while_its_run_waits_costs_nothing(tmp_path, server, function):
    log, held = tmp_path / "log", Gathering(2)
    server.behave([held.respond])
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(function, server.url, str(log))
        await asked(engine, server)
        os.kill(int(functions.lines(f"{log}.pids")[0]), signal.SIGKILL)
        await until(lambda: len(functions.lines(f"{log}.pids")) == 2)
        held.answer()
        assert await results(run) == ["tell"]
    assert server.calls == 1
    assert functions.lines(log) == ["told", "after"]


async def test_a_worker_that_runs_out_of_memory_beside_a_call_does_not_cost_the_call(tmp_path, server):
    server.behave("ok", answer="paid", latency=lambda _: 2.0)
    options = {"memory": "+600MB", "slot_memory": "100MB", "oom_retry_memory": "300MB"}
    async with engine_at(tmp_path / "a.run", "process", **options) as engine:
        run = await engine.submit(functions.fills_beside_an_ask, server.url, 150 << 20)
        assert await results(run) == [["paid", 150 << 20]]
        assert "out of memory" in [event.what for event in await engine.events()]
    assert server.calls == 1


async def test_an_attempt_that_asks_something_else_gets_the_reply_to_that(tmp_path, server):
    held, log = Gathering(2), tmp_path / "log"
    server.behave([held.respond])
    async with engine_at(tmp_path / "a.run", "process") as engine:
        run = await engine.submit(functions.asks_something_else_each_time, server.url, str(log))
        await asked(engine, server)
        os.kill(int(functions.lines(log)[0]), signal.SIGKILL)
        assert await results(run) == [["attempt 2", 2]]
        await until(lambda: engine.status().usage.get("calls") == 2)
    assert server.calls == 2


async def test_a_call_that_fails_after_its_attempt_is_made_again_by_the_next(tmp_path, server):
    held, log = Gathering(2, fails=True), tmp_path / "log"
    server.behave([held.respond, "ok"], answer="again")
    async with narrow(tmp_path / "a.run") as engine:
        run, other = await preempted(engine, server, tmp_path, functions.holds_memory_and_asks)
        held.answer()
        await until(lambda: held.waiting == 0)
        await asyncio.sleep(0.2)
        (tmp_path / "flag").touch()
        assert await results(run, other) == [["again", 100 << 20], None]
    assert server.calls == 2
    assert functions.lines(log) == ["told", "computes"]


async def test_a_reply_of_a_run_that_was_cancelled_meanwhile_is_dropped_and_counted(tmp_path, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with narrow(tmp_path / "a.run") as engine:
        run, other = await preempted(engine, server, tmp_path, functions.holds_memory_and_asks)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await results(run)
        steps = engine.status().counts["steps"]
        held.answer()
        await until(lambda: engine.status().usage.get("calls") == 1)
        assert engine.status().counts["steps"] == steps
        (tmp_path / "flag").touch()
        await results(other)


async def test_a_run_that_is_cancelled_while_it_waits_gives_its_call_up(tmp_path, isolation, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.asks, server.url, "tell")
        await asked(engine, server)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await results(run)
        held.answer()
        await asyncio.sleep(0.1)
        assert engine.status().usage.get("calls", 0) == 0


async def test_a_step_that_runs_beside_a_call_is_not_cut_and_its_result_is_kept(tmp_path, isolation, server):
    held, log, flag = Gathering(2), str(tmp_path / "log"), tmp_path / "flag"
    server.behave([held.respond, "ok"], answer="again")
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        low = await engine.submit(functions.computes_beside_an_ask, server.url, log, str(flag), priority=Priority.LOW)
        await until(lambda: server.calls == 1 and "begins" in functions.lines(log))
        high = await engine.submit(functions.asks, server.url, "high", priority=Priority.HIGH)
        await happened(engine, "preempted")
        await asyncio.sleep(0.5)  # longer than the grace period
        flag.touch()
        assert await results(high) == ["again"]
        held.answer()
        assert await results(low) == [["beside", "ended"]]
    assert functions.lines(log) == ["begins", "ends"]
    assert server.calls == 2


async def test_an_engine_that_closes_keeps_a_reply_that_comes_within_its_grace_period(tmp_path, isolation, server):
    held, log = Gathering(2), str(tmp_path / "log")
    server.behave([held.respond])
    async with engine_at(tmp_path / "a.run", isolation, grace_s=20.0) as engine:
        await engine.submit(functions.tells_its_worker_and_asks, server.url, log)
        await asked(engine, server)
        asyncio.get_running_loop().call_later(0.5, held.answer)  # while the engine waits, however late that begins
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.tells_its_worker_and_asks, server.url, log)
        assert await results(run) == ["tell"]
    assert server.calls == 1


async def test_an_engine_that_closes_does_not_wait_for_a_reply_that_does_not_come(tmp_path, isolation, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    log = str(tmp_path / "log")
    began_s = time.monotonic()
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        await engine.submit(functions.tells_its_worker_and_asks, server.url, log)
        await asked(engine, server)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < LONG_S / 2
    async with engine_at(tmp_path / "a.run", isolation) as engine:
        run = await engine.submit(functions.tells_its_worker_and_asks, server.url, log)
        assert await results(run) == ["again"]


KILLED = """
import asyncio, sys
from headrace import Engine
from tests.agents.engine import waiting_functions as functions

async def main():
    async with Engine(sys.argv[1], memory="+300MB", slots=1) as engine:
        await (await engine.submit(functions.asks, sys.argv[2], "tell")).result()

asyncio.run(main())
"""


async def test_a_call_that_was_in_flight_when_the_engine_was_killed_is_made_again(tmp_path, server):
    held = Gathering(2)
    server.behave([held.respond, "ok"], answer="again")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a.run"), server.url]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as process:
        await until(lambda: server.calls == 1)
        process.kill()
    async with engine_at(tmp_path / "a.run", "process") as engine:
        assert await results(await engine.submit(functions.asks, server.url, "tell")) == ["again"]
    assert server.calls == 2
