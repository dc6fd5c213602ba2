"""An engine is watched and steered from another process, through the socket beside its file."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Engine, task
from headrace.agents.steering.engine_client import emitted_by, engine_state, steer_run
from headrace.agents.steering.engine_messages import (
    CancelRunRequest,
    ResolveRequest,
    RetryRunRequest,
    SendRequest,
)
from headrace.errors import NotRunning, NotSteerable, RunCancelled, RunFailed, RunFileError
from headrace.store.engine_file.engine_schema import RunState
from tests.agents.engine.programs import paying
from tests.trouble.children import until

ROOT = Path(__file__).parents[3]
outside = {"is_ready": False}


@pytest.fixture(autouse=True)
def _patient_requests(monkeypatch):
    """A busy machine may keep the engine from answering in time; no test here is about that."""
    monkeypatch.setattr("headrace.store.holder_socket.silent_holders._MOST_PATIENCE_S", 30.0)
    monkeypatch.setattr("headrace.store.holder_socket.request_client.ANSWER_WITHIN_S", 60.0)
    monkeypatch.setattr("headrace.agents.steering.engine_server._SERVE_WITHIN_S", 50.0)
    monkeypatch.setattr("headrace.agents.steering.engine_server._END_WITHIN_S", 30.0)


async def listening(ctx):
    ctx.emit({"told": "<b>hello"})
    return await ctx.receive()


async def endless(ctx):
    await ctx.step("begin", asyncio.sleep, 0)
    await asyncio.sleep(600)


@task(max_attempts=1)
async def failing(ctx):
    if not outside["is_ready"]:
        raise ValueError("not yet")
    return "at last"


def inline(path: Path) -> Engine:
    return Engine(path, isolation="inline", memory="+300MB", breaker=None)


async def elsewhere(function, *arguments):
    """As another process asks: the engine's loop must not be the one that waits."""
    return await asyncio.to_thread(function, *arguments)


async def test_an_engine_tells_how_it_stands_and_what_runs_in_its_slots(tmp_path: Path):
    path = tmp_path / "a.run"
    async with inline(path) as engine:
        engine.every(0.05, lambda: None, name="beat", jitter=0)
        run = await engine.submit(endless)
        await elsewhere(until, lambda: bool(engine.status().in_slots), "a run in its slot")
        await elsewhere(until, lambda: engine.status().heartbeats[0].runs > 0, "a beat")
        seen = await elsewhere(engine_state, path)
        assert seen is not None
        (shown,) = seen.status.in_slots
        assert (seen.pid, seen.status.slots, shown.run, shown.name) == (os.getpid(), 2, run.id, run.name)
        assert seen.status.heartbeats[0].runs > 0
        assert 0 < seen.status.memory_bytes < seen.status.budget_bytes
        # 70, 85 and 95 %; of what is on top, where this process holds much before the engine opens.
        above = [1 - level for level in seen.levels]
        assert 0 < above[0] < 0.31
        assert above == pytest.approx([above[0], above[0] / 2, above[0] / 6])
        made = (tmp_path / "a.run.sock").stat()
        assert stat.S_ISSOCK(made.st_mode)
        assert stat.S_IMODE(made.st_mode) == 0o600
    assert engine_state(path) is None
    assert [each.name for each in tmp_path.iterdir()] == ["a.run"]


async def test_a_run_is_cancelled_from_outside_and_that_is_an_event(tmp_path: Path):
    path = tmp_path / "a.run"
    async with inline(path) as engine:
        run = await engine.submit(endless)
        reply = await elsewhere(steer_run, path, CancelRunRequest(run.id))
        with pytest.raises(RunCancelled):
            await run.result()
        assert reply.state == "cancelled"
        with pytest.raises(NotSteerable, match="ended already"):
            await elsewhere(steer_run, path, CancelRunRequest(run.id))
        with pytest.raises(NotSteerable, match="no run 99"):
            await elsewhere(steer_run, path, CancelRunRequest(99))
        steered = [event for event in await engine.events() if event.what == "steered"]
    assert [(event.run, event.reason.partition(",")[0]) for event in steered] == [(run.id, "cancelled")]


async def test_a_failed_run_is_tried_again_from_outside(tmp_path: Path):
    path, outside["is_ready"] = tmp_path / "a.run", False
    async with inline(path) as engine:
        run = await engine.submit(failing)
        with pytest.raises(RunFailed):
            await run.result()
        outside["is_ready"] = True
        await elsewhere(steer_run, path, RetryRunRequest(run.id))
        assert await run.result() == "at last"
        with pytest.raises(NotSteerable, match="cannot be tried again"):
            await elsewhere(steer_run, path, RetryRunRequest(run.id))


async def test_a_message_from_outside_reaches_a_run_and_its_emitted_events_are_shown(tmp_path: Path):
    path = tmp_path / "a.run"
    async with inline(path) as engine:
        run = await engine.submit(listening)
        await elsewhere(until, lambda: run.status().state is RunState.RECEIVING, "a run that waits for a message")
        assert [event.text for event in await elsewhere(emitted_by, path, run.id)] == ['{"told":"<b>hello"}']
        with pytest.raises(NotSteerable, match="not JSON"):
            await elsewhere(steer_run, path, SendRequest(run.id, "not json"))
        await elsewhere(steer_run, path, SendRequest(run.id, '{"go": [1, "on"]}'))
        assert await run.result() == {"go": [1, "on"]}


def killed_inside_a_side_effect(path: Path) -> int:
    """The run whose process was killed while its side effect ran."""
    command = [sys.executable, "-m", "tests.agents.engine.programs.paying", str(path)]
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        run = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
    return run


@pytest.mark.parametrize(("result", "paid"), [('{"id": 7}', {"id": 7}), (None, "paid again")])
async def test_a_side_effect_is_resolved_from_outside(tmp_path: Path, result: str | None, paid: object):
    path = tmp_path / "a.run"
    number = await elsewhere(killed_inside_a_side_effect, path)
    paying.patience["s"] = 0.0
    async with inline(path) as engine:
        engine.register(paying.shop)
        while (found := (await engine.unfinished())[0]).state is not RunState.UNDECIDED:
            await asyncio.sleep(0.01)
        assert found.id == number
        with pytest.raises(NotSteerable, match="nothing to decide"):
            await elsewhere(steer_run, path, ResolveRequest(number, "other", result))
        await elsewhere(steer_run, path, ResolveRequest(number, "pay", result))
        assert await engine.handle(found).result() == paid


async def test_nothing_is_steered_where_no_engine_is_or_no_file(tmp_path: Path):
    path = tmp_path / "a.run"
    async with inline(path):
        pass
    with pytest.raises(NotRunning, match="Nothing is running"):
        steer_run(path, CancelRunRequest(1))
    with pytest.raises(RunFileError, match="no run file"):
        steer_run(tmp_path / "b.run", CancelRunRequest(1))


async def test_bytes_that_are_no_request_are_refused_and_the_engine_goes_on(tmp_path: Path):
    path = tmp_path / "a.run"
    async with inline(path):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "a.run.sock"))
        writer.write(b"\xff" * 4)
        assert b"refused" in await reader.read()
        writer.close()
        await writer.wait_closed()
        assert await elsewhere(engine_state, path) is not None
