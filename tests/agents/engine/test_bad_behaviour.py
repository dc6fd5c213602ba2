import asyncio
import gc
import threading
import time
import weakref

import pytest

from headrace import Engine, Model
from headrace.errors import RunCancelled, RunFailed

ignored: list[str] = []
released = threading.Event()


async def fine(ctx, number=0):
    return await ctx.step("ok", abs, number)


async def blocking(ctx):
    released.wait(30)  # as a thoughtless agent would
    return "woke up"


async def test_a_task_that_blocks_the_loop_is_reported_with_its_stack_while_it_does(tmp_path):
    released.clear()
    async with Engine(tmp_path / "a.run", isolation="inline", stuck_after_s=0.3) as engine:
        submitting = asyncio.ensure_future(engine.submit(blocking))
        give_up_at = time.monotonic() + 10
        while "released.wait(30)" not in (engine.stuck or ""):  # a busy machine may hold the loop up, too
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.02)
        released.set()
        assert await (await submitting).result() == "woke up"
        reported = [event for event in await engine.events() if event.what == "loop stuck"]
        assert len([event for event in reported if "released.wait(30)" in event.reason]) == 1
        give_up_at = time.monotonic() + 10
        while engine.stuck is not None:
            assert time.monotonic() < give_up_at, "the loop turns again, and nothing blocks it"
            await asyncio.sleep(0.02)
        assert await (await engine.submit(fine)).result() == 0


async def ignoring_cancellation(ctx):
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ignored.append("cancelled")


async def ignoring_everything(ctx):
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:  # noqa: BLE001 - as bad as code gets
            ignored.append("cancelled")


@pytest.mark.parametrize("function", [ignoring_cancellation, ignoring_everything])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python complains, and rightly
async def test_a_task_that_ignores_being_cancelled_ends_all_the_same_and_nothing_else_suffers(
    tmp_path, monkeypatch, function
):
    monkeypatch.setattr("headrace.agents.inline_agents._CANCEL_EVERY_S", 0.05)
    ignored.clear()
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(function)
        await asyncio.sleep(0.1)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await asyncio.wait_for(run.result(), 10)
        assert await (await engine.submit(fine, -3)).result() == 3
        assert any("torn down" in event.reason for event in await engine.events())
    assert len(ignored) >= 3
    gc.collect()


async def listening(ctx):
    return await ctx.receive()


async def test_those_who_ask_again_and_again_leave_nothing_behind(tmp_path):
    loops = weakref.WeakSet()

    async def ask(run):
        loops.add(asyncio.get_running_loop())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.result(), 0.001)

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(listening)
        for _ in range(120):
            await asyncio.to_thread(asyncio.run, ask(run))  # as a handler of a service might
        gc.collect()
        assert len(loops) < 60


async def test_a_heartbeat_that_raises_every_time_goes_on_beating(tmp_path):
    beaten = []

    def broken():
        beaten.append(1)
        raise RuntimeError("no pulse")

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, broken, name="pulse", jitter=0)
        while len(beaten) < 3:
            await asyncio.sleep(0.01)
        assert await (await engine.submit(fine)).result() == 0
        await asyncio.sleep(0.05)
        status = engine.status()
        (beat,) = status.heartbeats
        assert beat.failures >= 3
        assert "no pulse" in beat.last_error
        assert f"{beat.failures} of them failed" in str(status)
        assert any("no pulse" in event.reason for event in await engine.events())


async def test_a_heartbeat_is_never_run_twice_at_once_and_is_stopped_after_its_time(tmp_path):
    running, most = [], []

    async def slow(ctx):
        running.append(1)
        most.append(len(running))
        try:
            await ctx.step("look", asyncio.sleep, 30)
        finally:
            running.pop()

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.04, slow, name="slow", jitter=0, timeout_s=0.1, max_skips=1)
        while len(most) < 3:
            await asyncio.sleep(0.01)
        (beat,) = engine.status().heartbeats
        told = {event.what for event in await engine.events()}
        engine.stop_beating("slow")
    assert set(most) == {1}
    assert beat.last_skip_reason == "the last beat is still running"
    assert {"heartbeat skipped", "heartbeat stopped", "heartbeat blind"} <= told


async def test_a_heartbeat_in_a_thread_that_does_not_return_in_time_is_waited_for(tmp_path):
    running, most = [], []

    def slow():
        running.append(1)
        most.append(len(running))
        time.sleep(0.25)
        running.pop()

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, slow, name="slow", jitter=0, timeout_s=0.05)
        while len(most) < 3:
            await asyncio.sleep(0.01)
        assert engine.status().heartbeats[0].last_skip_reason == "the last beat is still running"
    assert set(most) == {1}


async def deaf():
    await ignoring_cancellation(None)


async def deaf_to_everything():
    await ignoring_everything(None)


@pytest.mark.parametrize("function", [deaf, deaf_to_everything])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_heartbeats_that_ignore_being_cancelled_stop_neither_the_others_nor_the_engine_from_closing(
    tmp_path, monkeypatch, function
):
    monkeypatch.setattr("headrace.agents.engine.heartbeat_calls._CANCEL_EVERY_S", 0.1)
    beaten = []
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        for number in range(3):
            engine.every(0.05, function, name=f"deaf {number}", jitter=0, timeout_s=0.05)
        engine.every(0.05, lambda: beaten.append(1), name="well", jitter=0)
        while len(beaten) < 3:
            await asyncio.sleep(0.01)
        closing_at = time.monotonic()
    assert time.monotonic() - closing_at < 10
    gc.collect()


async def dozing(ctx):
    await ctx.sleep(10)


async def commanding(ctx):
    await ctx.command(["true"], side_effect=True)


async def with_a_child(ctx):
    await ctx.run(dozing)


async def test_a_heartbeat_that_would_wait_on_disk_run_a_program_or_have_a_child_is_told_that_it_cannot(tmp_path):
    refused = {dozing: "cannot wait on disk", commanding: "runs no programs", with_a_child: "has no children"}
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        for function in refused:
            engine.every(0.05, function, jitter=0)
        while not all(beat.failures for beat in engine.status().heartbeats):
            await asyncio.sleep(0.01)
        for beat, told in zip(engine.status().heartbeats, refused.values(), strict=True):
            assert told in beat.last_error


async def asking(ctx):
    await ctx.ask(Model("test", canned_response="Fine."), "How are you?")


async def test_what_a_heartbeat_asks_is_counted_with_the_rest(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(60, asking, name="asking", jitter=0)
        while not engine.status().usage:
            await asyncio.sleep(0.01)
        assert engine.status().usage["calls"] == 1


async def exhausting(ctx):
    if ctx.attempt < 3:
        raise MemoryError
    return ctx.attempt


async def test_a_run_that_is_out_of_memory_is_tried_once_more_alone_and_then_set_aside(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(exhausting)
        with pytest.raises(RunFailed, match="out of memory"):
            await run.result()
        assert run.status().attempts == 2


async def raising(ctx):
    raise SystemExit("an agent must not end the program")


async def test_an_agent_that_raises_more_than_an_exception_fails_alone(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(raising)
        with pytest.raises(RunFailed, match="SystemExit"):
            await asyncio.wait_for(run.result(), 10)
        assert await (await engine.submit(fine, -1)).result() == 1
