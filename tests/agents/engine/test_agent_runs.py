import asyncio
import contextlib
import hashlib
import threading

import pytest

import headrace
from headrace import Engine, Model
from headrace.errors import CircuitOpen, EngineClosed, HeadraceError, QueueFull, RunCancelled, RunFailed, TaskError
from headrace.store.engine_file.engine_schema import RunState

calls: list[str] = []
may_end: list[bool] = []  # long runs go on to their end where it is not empty


@pytest.fixture(autouse=True)
def _no_calls():
    calls.clear()
    may_end.clear()


async def note(name, value=None):
    calls.append(name)
    return value


async def until(run, state):
    async with asyncio.timeout(30):
        while run.status().state is not state:
            await asyncio.sleep(0.01)


async def two_steps(ctx, word):
    first = await ctx.step("first", note, "first", {"word": word, "pair": (1, 2)})
    second = await ctx.step("second", hashlib.sha256, b"x") if word == "unstorable" else None
    return [first, second]


async def test_a_step_returns_the_journals_copy_the_first_time_too(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(two_steps, "tide")
        assert await run.result() == [{"word": "tide", "pair": [1, 2]}, None]
        assert run.status().state is RunState.DONE


async def test_the_same_function_and_arguments_are_the_same_run(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        first = await engine.submit(two_steps, "tide")
        await first.result()
        again, other = await engine.submit(two_steps, "tide"), await engine.submit(two_steps, "ebb")
        fresh = await engine.submit(two_steps, "tide", key=None)
        assert (again.id, await again.result()) == (first.id, await first.result())
        assert len({first.id, other.id, fresh.id}) == 3
        await engine.drain()
    assert calls.count("first") == 3


async def test_runs_submitted_at_once_under_one_key_are_one_run(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        runs = await asyncio.gather(*(engine.submit(two_steps, str(i), key="one") for i in range(20)))
        assert len({run.id for run in runs}) == 1
        found = await engine.find("one")
        assert found is not None
        assert found.id == runs[0].id


def agent_with(captured):
    async def agent(ctx, number):
        return [captured, number]

    return agent


class Clerk:
    async def work(self, ctx):
        return await ctx.run(agent_with(1), 0, name="a"), await ctx.run(agent_with(2), 0, name="b")


async def test_functions_that_differ_only_in_what_they_captured_are_not_taken_for_each_other(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await (await engine.submit(agent_with("red"), 1)).result() == ["red", 1]
        assert await (await engine.submit(agent_with("red"), 2)).result() == ["red", 2]
        with pytest.raises(TaskError, match=r"differ only in what they have captured.*arguments"):
            await engine.submit(agent_with("blue"), 3)
        with pytest.raises(RunFailed, match="differ only in what they have captured"):
            await (await engine.submit(Clerk().work)).result()
        with pytest.raises(TaskError, match="captured"):
            await engine.submit(Clerk().work)


async def test_a_function_that_is_defined_anew_takes_the_place_of_the_old_one(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        for answer in ("old", "new"):
            names = {"__name__": "notebook"}
            exec(f"async def agent(ctx, which): return {answer!r}", names)  # noqa: S102 - as a notebook does
            assert await (await engine.submit(names["agent"], answer)).result() == answer


async def counting(ctx, upto):
    keys = []
    for i in range((ctx.state or {"i": 0})["i"], upto):
        keys.append(await ctx.step(f"n-{i}", lambda i=i: calls.append(f"n-{i}") or ctx.step_key))
        await ctx.checkpoint({"i": i + 1})
        await asyncio.sleep(0.01)
        while i == 20 and not may_end:
            await asyncio.sleep(0.01)
    return len(keys)


_FILE = bytes(range(256)) * 4000  # a megabyte that is no text


async def downloading(ctx, header):
    page = await ctx.step("download", note, "download", {"header": header, "body": _FILE})
    await ctx.checkpoint({"digest": hashlib.sha256(page["body"]).digest()})
    await ctx.receive()
    assert ctx.state == {"digest": hashlib.sha256(_FILE).digest()}
    return [page["header"], page["body"], await ctx.step("view", bytearray, b"\xff")]


async def test_bytes_come_back_as_they_were_also_after_a_restart(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(downloading, b"\x89PNG\0")
        await until(run, RunState.RECEIVING)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(downloading, b"\x89PNG\0")
        await run.send(b"go on")
        assert await run.result() == [b"\x89PNG\0", _FILE, b"\xff"]
        assert run.status().attempts == 2
    assert calls == ["download"]


async def test_leaving_the_engine_parks_a_run_that_a_later_one_goes_on_with(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(counting, 60)
        while len(calls) < 5:
            await asyncio.sleep(0.005)
        waiting = asyncio.ensure_future(run.result())
    with pytest.raises(EngineClosed, match="parked"):
        await waiting
    before = len(calls)
    assert 5 <= before < 60
    may_end.append(True)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert [(each.kind, each.state) for each in await engine.unfinished()] == [
            ("tests.agents.engine.test_agent_runs:counting", RunState.WAITING)
        ]
        assert sum(engine.status().unknown.values()) == 1  # a name in a file makes no code run
        assert "no function here for 1 of" in str(engine.status())
        engine.register(counting)
        await engine.drain()
        # Stopped between a step and its checkpoint, it meets that step again and gets it from the journal.
        assert await (await engine.submit(counting, 60)).result() in (60 - before, 61 - before)
    assert calls == [f"n-{i}" for i in range(60)]


async def test_a_step_has_the_same_idempotency_key_each_time_and_another_one_elsewhere(tmp_path):
    keys = []

    async def keyed(ctx, fails):
        keys.append(await ctx.step("a", lambda: ctx.step_key))
        await ctx.step("b", lambda: keys.append(ctx.step_key))
        assert ctx.step_key is None
        if fails and ctx.attempt == 1:
            raise ValueError("again")

    kept = headrace.task(name="keyed", max_attempts=2)(keyed)
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        await (await engine.submit(kept, True)).result()
        await (await engine.submit(kept, False)).result()
    a1, b1, a1_again, a2, b2 = keys
    assert a1 == a1_again
    assert len({a1, b1, a2, b2}) == 4
    assert len(a1) == 32


async def large(ctx):
    text = await ctx.step("large", lambda: calls.append("large") or "x" * 1_000_000)
    if ctx.state is None:
        await ctx.checkpoint({"text": text})
    await ctx.receive()
    return [len(text), len(ctx.state["text"]), text]


async def test_large_results_and_states_survive_a_restart_of_their_run(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(large)
        await until(run, RunState.RECEIVING)
        await run.send("go on")
        lengths = await run.result()
        assert lengths == [1_000_000, 1_000_000, "x" * 1_000_000]
        assert run.status().attempts == 2
    assert calls == ["large"]


async def napping(ctx, seconds):
    await ctx.sleep(seconds)
    return await ctx.step("after", note, "after", "rested")


async def test_a_sleeping_run_holds_no_slot(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1) as engine:
        sleeper = await engine.submit(napping, 3600)
        await until(sleeper, RunState.SLEEPING)
        assert await (await engine.submit(two_steps, "meanwhile")).result()
        assert await (await engine.submit(napping, 0.05)).result() == "rested"
        assert sleeper.status().state is RunState.SLEEPING
        await sleeper.cancel()


async def answering(ctx):
    heard = [await ctx.receive()]
    while heard[-1] != "enough":
        heard.append(await ctx.receive())
    return heard


async def test_a_run_that_waits_for_messages_gets_each_of_them_once_and_in_order(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(answering)
        await run.send("early")
        await until(run, RunState.RECEIVING)
        for message in ({"n": 1}, "enough"):
            await run.send(message)
        with contextlib.suppress(HeadraceError):  # it may have ended by now
            await run.send("too late")
        assert await run.result() == ["early", {"n": 1}, "enough"]


async def prepared(ctx):
    first = await ctx.receive()
    for i in range((ctx.state or {"i": 0})["i"], 3):
        await ctx.checkpoint({"i": i + 1, "heard": [*(ctx.state or {"heard": []})["heard"], await ctx.receive()]})
    return [first, *ctx.state["heard"]]


async def prepared_by_name(ctx):
    state = ctx.state or {"heard": []}
    first = await ctx.receive(name="first")
    while len(state["heard"]) < 3:
        state["heard"].append(await ctx.receive())
        await ctx.checkpoint(state)
    return [first, *state["heard"]]


async def beginning_anew(ctx):
    heard = []
    for _ in range(4):
        heard.append(await ctx.receive())
        await ctx.checkpoint({"heard": heard})
    return heard


@pytest.mark.parametrize("function", [prepared, prepared_by_name, beginning_anew])
async def test_what_comes_before_a_checkpoint_is_not_done_again_whether_its_state_is_read_or_not(tmp_path, function):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(function)
        for message in range(4):
            await asyncio.wait_for(until(run, RunState.RECEIVING), 10)  # each is met by another attempt
            await run.send(message)
        assert await asyncio.wait_for(run.result(), 10) == [0, 1, 2, 3]
        assert run.status().attempts == 5


async def asking(ctx):
    return [await ctx.ask(Model("test", canned_response="Fine."), f"How are you, {i}?") for i in range(2)]


async def test_an_agent_asks_a_model_and_what_it_took_is_counted(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await (await engine.submit(asking)).result() == ["Fine.", "Fine."]
        assert engine.status().usage["calls"] == 2
        assert (engine.status().counts["ended"], engine.status().counts["steps"]) == (1, 2)


async def emitting(ctx):
    await ctx.receive()
    for i in range(3):
        ctx.emit({"i": i})
        await ctx.step(f"s{i}", note, f"s{i}")


async def test_what_a_run_emits_reaches_whoever_listens_until_it_ends(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(emitting)
        heard = asyncio.ensure_future(_all(run.events()))
        await asyncio.sleep(0.05)
        await run.send("go")
        assert await asyncio.wait_for(heard, 10) == [{"i": 0}, {"i": 1}, {"i": 2}]


async def _all(events):
    return [event async for event in events]


async def spooling(ctx):
    with ctx.spool() as file:
        for i in range(1000):
            file.write(b"%d\n" % i)
        file.seek(0)
        return sum(1 for _ in file)


async def test_a_spool_holds_large_output_in_a_file(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await (await engine.submit(spooling)).result() == 1000
    assert [path.name for path in tmp_path.iterdir()] == ["a.run"]


async def waiting_long(ctx, number=0):
    await ctx.step("begin", note, "begin")
    await asyncio.sleep(60)


async def test_a_full_queue_makes_submit_wait_and_submit_nowait_refuse(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1, queue_depth=2) as engine:
        runs = [await engine.submit(waiting_long, i) for i in range(3)]
        with pytest.raises(QueueFull, match=r"2 agent runs wait at priority HIGH.*no run has ended yet") as refused:
            await engine.submit_nowait(waiting_long, 9)
        assert refused.value.depth == 2
        patient = asyncio.ensure_future(engine.submit(waiting_long, 10))
        await asyncio.sleep(0.1)
        assert not patient.done()
        await runs[0].cancel()
        runs.append(await asyncio.wait_for(patient, 10))
        with pytest.raises(RunCancelled):
            await runs[0].result()
        for run in runs[1:]:
            await run.cancel()
            with pytest.raises(RunCancelled):
                await run.result()


async def test_one_who_gave_up_waiting_for_room_has_submitted_nothing(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1, queue_depth=1) as engine:
        held = [await engine.submit(waiting_long, i) for i in range(2)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.submit(two_steps, "late"), 0.05)
        for run in held:
            await run.cancel()
        await engine.drain()
        assert [call for call in calls if call == "first"] == []


async def test_a_kind_whose_circuit_is_open_is_refused_at_once_though_the_queue_is_full(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline", slots=1, queue_depth=1) as engine:
        for number in range(3):
            with pytest.raises(RunFailed):
                await (await engine.submit(failing, number)).result()
        held = [await engine.submit(waiting_long, i) for i in range(2)]
        with pytest.raises(CircuitOpen):
            await asyncio.wait_for(engine.submit(failing, 5), 5)
        with pytest.raises(CircuitOpen):
            await engine.submit_nowait(failing, 5)
        for run in held:
            await run.cancel()


async def failing(ctx, number):
    raise ValueError(f"no luck with {number}")


async def test_a_failed_run_tells_why_and_a_kind_that_keeps_failing_is_refused(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        for number in range(3):
            run = await engine.submit(failing, number)
            with pytest.raises(RunFailed, match=f"no luck with {number}") as failure:
                await run.result()
            assert "raise ValueError" in failure.value.reason
        with pytest.raises(CircuitOpen, match="refused") as refused:
            await engine.submit(failing, 4)
        ((_, probe_in_s),) = engine.status().open_circuits.items()
        assert 0 < probe_in_s <= refused.value.retry_after_s < 60
        assert await (await engine.submit(two_steps, "another kind")).result()
        assert any(event.what == "a kind of task is refused for a while" for event in await engine.events())


@headrace.task(name="flaky", max_attempts=3, timeout_s=30, memory="50MB")
async def flaky(ctx):
    await ctx.step("once", note, "once")
    if ctx.attempt < 2:
        raise ConnectionError("away")
    return ctx.attempt


async def test_a_kind_with_attempts_left_is_tried_again_and_repeats_no_step(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        assert await (await engine.submit(flaky)).result() == 2
    assert calls == ["once"]


@headrace.task(timeout_s=0.2)
async def too_slow(ctx):
    await asyncio.sleep(60)


async def test_a_run_that_takes_too_long_is_stopped(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(too_slow)
        with pytest.raises(RunFailed, match="timed out"):
            await run.result()


@headrace.task(timeout_s=2.0)
async def slow_in_parts(ctx):
    for number in range(20):
        await ctx.step(f"s{number}", asyncio.sleep, 0.3)
        await ctx.sleep(0.05)


async def test_time_spent_before_sleeping_on_disk_counts(tmp_path):
    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        run = await engine.submit(slow_in_parts)
        with pytest.raises(RunFailed, match="timed out"):
            await run.result()
        assert 2 <= run.status().attempts < 10  # each part alone is well within the limit


async def test_agents_run_on_the_engines_own_thread(tmp_path):
    names = []

    async def where(ctx):
        names.append(threading.current_thread().name)

    async with Engine(tmp_path / "a.run", isolation="inline") as engine:
        await (await engine.submit(where)).result()
    assert names == ["headrace-engine"]
