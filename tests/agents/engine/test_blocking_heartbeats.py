"""Async heartbeats that block the engine's loop: the first offence is told, and stalls nothing any more."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable

import pytest

from headrace import Engine, Model


async def fine(ctx):
    return await ctx.step("count", len, "ab")


class Beat:
    """An async heartbeat that blocks its loop, the first time for a moment, then until it is let go."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.is_inside = threading.Event()
        self.may_leave = threading.Event()

    async def __call__(self) -> None:
        self.threads.append(threading.current_thread().name)
        await asyncio.sleep(0)
        if len(self.threads) == 1:
            time.sleep(0.5)
            return
        self.is_inside.set()
        assert self.may_leave.wait(30)


async def until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not is_true():
            await asyncio.sleep(0.01)


async def events_of(engine: Engine, what: str) -> list[str]:
    return [event.reason for event in await engine.events() if event.what == what]


async def blocking():
    time.sleep(0.5)


async def test_after_its_first_offence_a_heartbeat_that_blocks_stalls_nothing(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "headrace")
    beat = Beat()

    async def beating():
        await beat()

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, beating, name="beat", jitter=0, timeout_s=60)
        await until(beat.is_inside.is_set)
        assert await (await engine.submit(fine)).result() == 2, "an agent's steps go on beside it"
        assert not beat.may_leave.is_set()
        (shown,) = engine.status().heartbeats
        beat.may_leave.set()
        await until(lambda: len(beat.threads) > 3)
        (told,) = await events_of(engine, "heartbeat moved")
    assert shown.has_own_thread
    assert "in a thread of its own" in str(shown)
    assert "beat: it blocked the engine's loop for" in told
    assert [record.message for record in caplog.records if "beat" in record.message] == [f"Heartbeat {told}."]


async def gathering():
    await asyncio.gather(blocking(), asyncio.sleep(0))


@pytest.mark.parametrize("function", [gathering, Beat()], ids=["in a task of its own", "an object that is called"])
async def test_it_is_noticed_wherever_the_heartbeat_blocks(tmp_path, function):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(60, function, name="beat", jitter=0)
        await until(lambda: engine.status().heartbeats[0].has_own_thread)


async def test_a_heartbeat_that_waits_as_it_should_stays_on_the_engines_loop(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.agents.engine.heartbeat_calls._LONGEST_TURN_S", 0.8)  # a busy machine is no offence
    threads = set()

    async def waiting(ctx):
        threads.add(threading.get_ident())
        await asyncio.sleep(1.0)
        await ctx.step("blocks a thread of steps", time.sleep, 1.0)

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, waiting, name="waiting", jitter=0, timeout_s=60)
        await until(lambda: engine.status().heartbeats[0].runs > 1)
        assert not engine.status().heartbeats[0].has_own_thread
        assert await events_of(engine, "heartbeat moved") == []
    assert len(threads) == 1


async def test_in_its_thread_a_heartbeat_can_do_what_it_could_before(tmp_path):
    told = []

    async def busy(ctx):
        time.sleep(0.3)
        asked = await ctx.ask(Model("test", canned_response="Fine."), "How are you?")
        counted = await ctx.step("count", len, "abc")
        later = await ctx.step("later", asyncio.sleep, 0.01, "later")
        ctx.emit({"seen": True})
        await ctx.checkpoint({"i": 1})
        run = await engine.submit(fine, key=None)
        told.append((threading.get_ident(), asked, counted, later, await run.result(), engine.status().running))

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.1, busy, name="busy", jitter=0, timeout_s=30)
        await until(lambda: len(told) >= 4)
        (shown,) = engine.status().heartbeats
        assert (shown.failures, shown.last_error) == (0, "")
        assert engine.status().usage["calls"] >= 3
    first, *later = told
    assert {each[0] for each in later}.isdisjoint({first[0]})
    assert len({each[0] for each in later}) == 1, "one thread, with one loop, for all its calls"
    assert {each[1:5] for each in told} == {("Fine.", 3, "later", 2)}


async def test_what_it_raises_in_its_thread_is_recorded_as_before(tmp_path):
    async def broken(ctx):
        time.sleep(0.3)
        if threading.current_thread() is not began_in[0]:
            raise SystemExit("not the program's end")

    async def parking(ctx):
        time.sleep(0.3)
        await ctx.sleep(10)

    began_in = []

    async def note():
        began_in.append(threading.current_thread())

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(60, note, name="note", jitter=0)
        await until(lambda: began_in)
        engine.every(0.1, broken, name="broken", jitter=0, timeout_s=30)
        engine.every(0.1, parking, name="parking", jitter=0, timeout_s=30)
        await until(lambda: all(beat.failures > 1 for beat in engine.status().heartbeats[1:]))
        told = "\n".join(await events_of(engine, "heartbeat failed"))
    assert "broken: SystemExit: not the program's end" in told
    assert "parking: A heartbeat cannot wait on disk" in told


async def test_in_its_thread_a_heartbeat_is_stopped_after_its_time_and_never_runs_twice_at_once(tmp_path):
    running, most, is_moved = [], [], threading.Event()

    async def slow():
        if not is_moved.is_set():
            is_moved.set()
            time.sleep(0.3)
            return
        running.append(1)
        most.append(len(running))
        try:
            time.sleep(0.2)  # longer than its time: it is cancelled as soon as it lets go
            await asyncio.sleep(30)
        finally:
            running.pop()

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, slow, name="slow", jitter=0, timeout_s=0.1)
        await until(lambda: len(most) >= 3)
        assert await events_of(engine, "heartbeat stopped")
    assert set(most) == {1}
    assert not running


async def test_leaving_the_engine_does_not_wait_for_a_thread_that_is_blocked(tmp_path):
    beat = Beat()
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.05, beat, name="beat", jitter=0, timeout_s=60)
        await until(beat.is_inside.is_set)
        closing_at = time.monotonic()
    assert time.monotonic() - closing_at < 10
    assert not beat.may_leave.is_set()
    beat.may_leave.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_one_that_ignores_being_cancelled_is_torn_down_in_its_thread(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.agents.heartbeat_loop.CANCEL_EVERY_S", 0.1)
    calls = []

    async def deaf():
        calls.append(threading.get_ident())
        time.sleep(0.3)
        while len(calls) > 1:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.1, deaf, name="deaf", jitter=0, timeout_s=0.2)
        await until(lambda: len(calls) >= 4)
        assert calls[0] not in calls[1:]  # only the first blocked the engine's loop


async def test_another_function_of_the_name_starts_on_the_engines_loop_again(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.agents.engine.heartbeat_calls._LONGEST_TURN_S", 0.45)
    threads = []

    async def well():
        threads.append(threading.get_ident())

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(60, well, name="well", jitter=0)
        engine.every(0.05, blocking, name="beat", jitter=0)
        await until(lambda: engine.status().heartbeats[1].runs > 2)
        engine.every(0.1, blocking, name="beat", jitter=0)
        assert engine.status().heartbeats[1].has_own_thread, "the same function, in another rhythm"
        engine.every(0.1, well, name="beat", jitter=0)
        await until(lambda: len(threads) > 2)
        assert not engine.status().heartbeats[1].has_own_thread
        engine.every(0.05, blocking, name="gone", jitter=0)
        await until(lambda: engine.status().heartbeats[2].runs > 2)
        engine.stop_beating("gone")
    assert len(set(threads)) == 1


async def test_a_heartbeat_that_takes_longer_than_its_time_limit_has_failed_and_says_so(tmp_path):
    async def slow() -> None:
        await asyncio.sleep(60)

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.2, slow, name="slow", timeout_s=0.3)
        await until(lambda: engine.status().heartbeats[0].failures)
        assert engine.status().heartbeats[0].last_error == "it took longer than its time limit, timeout_s=0.3"


class Unusual(BaseException):
    pass


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("raised", [GeneratorExit("a"), Unusual("a"), SystemExit("a"), asyncio.CancelledError("a")])
async def test_whatever_an_async_heartbeat_raises_is_a_failure_and_nothing_is_printed(
    tmp_path, caplog, capfd, raised, blocks
):
    async def bad(ctx):
        if blocks:
            time.sleep(0.3)
        await asyncio.sleep(0)
        raise raised

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.1, bad, name="bad", jitter=0, timeout_s=30)
        await until(lambda: engine.status().heartbeats[0].failures > 2)
        (shown,) = engine.status().heartbeats
        assert type(raised).__name__ in shown.last_error
        assert shown.has_own_thread is blocks
        assert len(await events_of(engine, "heartbeat failed")) >= 3
        assert await (await engine.submit(fine)).result() == 2
        gc.collect()
    assert capfd.readouterr().err == ""
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("raised", [StopIteration("a"), GeneratorExit("a"), Unusual("a")])
async def test_whatever_a_heartbeat_in_a_thread_raises_is_a_failure(tmp_path, caplog, raised):
    def bad():
        raise raised

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        engine.every(0.1, bad, name="bad", jitter=0, timeout_s=30)
        await until(lambda: engine.status().heartbeats[0].failures > 2)
        told = await events_of(engine, "heartbeat failed")
        assert all(type(raised).__name__ in each for each in told)
    assert [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR] == []
