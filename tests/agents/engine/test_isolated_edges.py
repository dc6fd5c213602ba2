"""Agents in worker processes, at the edges: one run after the other, and what workers say that nobody expects."""

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace import Engine
from headrace.errors import InvalidInput, RunFailed
from tests.agents.engine import edge_functions as functions
from tests.agents.engine import isolated_functions
from tests.agents.engine.engine_files import warden_of

pytestmark = pytest.mark.usefixtures("small_warden")


def engine_at(path, **options):
    return Engine(path, **{"memory": "+400MB", "slot_memory": "120MB", "grace_s": 0.3, **options})


async def result_of(run, within_s=30):
    return await asyncio.wait_for(run.result(), within_s)


async def test_the_next_run_has_what_it_was_promised_though_the_last_worker_is_just_leaving(tmp_path):
    async with engine_at(tmp_path / "a.run", memory="+400MB", slot_memory="250MB") as engine:
        runs = [await engine.submit(functions.hungry, number, 100) for number in range(14)]
        assert {await result_of(run) for run in runs} == {100 << 20}
        assert "out of memory" not in engine.status().counts
        assert [run.status().attempts for run in runs] == [1] * 14


UNFIT = {
    functions.commanding_with_a_number_in_its_environment: "'PORT' in environment= is text, not int: 8080",
    functions.asking_a_number: "A prompt is text, not int: 5",
    functions.stepping_with_bytes_for_a_name: "A step's name is text, not bytes",
    functions.speaking_nonsense: "could not be understood",
}


async def test_what_cannot_travel_fails_its_run_and_leaves_nobody_waiting(tmp_path):
    async with engine_at(tmp_path / "a.run", slots=1) as engine:
        for function, told in UNFIT.items():
            with pytest.raises(RunFailed, match=told):
                await result_of(await engine.submit(function))
            assert await result_of(await engine.submit(functions.hungry, 1, 10, key=None)) == 10 << 20


async def test_a_child_that_nobody_waits_for_ends_too_and_holds_nobody_up(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        runs = [
            await engine.submit(functions.leaving_a_child_behind, str(tmp_path / "log"), key=None) for _ in range(4)
        ]
        assert [await result_of(run, 10) for run in runs] == [False] * 4
        await asyncio.wait_for(engine.drain(), 10)
        assert await engine.unfinished() == []


@pytest.mark.parametrize("leaving", [functions.leaving_a_thread_behind, functions.leaving_a_task_behind])
async def test_a_worker_that_cannot_leave_is_ended_and_what_it_was_lent_comes_back(tmp_path, leaving):
    async with engine_at(tmp_path / "a.run", slots=1) as engine:
        await result_of(await engine.submit(leaving, key=None))
        assert await result_of(await engine.submit(functions.hungry, 1, 100)) == 100 << 20
        assert engine.status().counts.get("out of memory", 0) == 0
        give_up_at = time.monotonic() + 20
        while len(children_of(warden_of(tmp_path / "a.run"))) > 1:
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.05)


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


RAISED = {
    functions.raising_what_cannot_be_said: "Unspeakable",
    functions.raising_generator_exit: "GeneratorExit",
    functions.raising_cancelled: "CancelledError: it cancelled itself",
    functions.raising_keyboard_interrupt: r"failed: KeyboardInterrupt \(line \d+ of edge_functions\.py\)\. Once",
}


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_whatever_a_run_raises_is_its_end(tmp_path, isolation):
    async with engine_at(tmp_path / "a.run", isolation=isolation) as engine:
        for raising, told in RAISED.items():
            with pytest.raises(RunFailed, match=told):
                await result_of(await engine.submit(raising), 10)


async def test_a_file_above_the_engines_cap_is_told_with_the_option_that_moves_it(tmp_path):
    async with engine_at(tmp_path / "a.run", largest_file="1MB") as engine:
        with pytest.raises(RunFailed, match=r"File too large.*largest_file="):
            await result_of(await engine.submit(functions.spooling_much), 10)


async def test_a_worker_that_becomes_another_program_is_ended(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        with pytest.raises(RunFailed, match="closed its channel"):
            await result_of(await engine.submit(functions.becoming_another_program), 10)


async def test_what_is_emitted_faster_than_it_leaves_is_dropped_by_size_too(tmp_path):
    async with engine_at(tmp_path / "a.run", slot_memory="200MB") as engine:
        assert await result_of(await engine.submit(functions.emitting_much)) == "emitted"
        assert "out of memory" not in engine.status().counts


async def test_a_program_has_nothing_open_but_its_streams(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        assert await result_of(await engine.submit(functions.listing_what_its_program_has_open)) == ["0", "1", "2"]


async def test_what_ended_a_run_is_told_with_what_to_do(tmp_path):
    async with engine_at(tmp_path / "a.run", preload=["no_such_module_of_ours", "colorsys"]) as engine:
        assert await result_of(await engine.submit(functions.has_preloaded, "colorsys"))
        with pytest.raises(RunFailed, match=r"timed out: it took longer than the 0.3 s that timeout_s="):
            await result_of(await engine.submit(functions.too_slow))
        with pytest.raises(InvalidInput, match="it is a method"):
            await engine.submit(functions.Holder().method)
        assert "cannot be started in /not/there" in await result_of(
            await engine.submit(functions.commanding_in_a_place_that_is_not_there)
        )
        with pytest.raises(RunFailed) as failed:
            await result_of(await engine.submit(functions.stopping_its_loop))
        assert "warden" not in failed.value.reason.partition("worker.py")[0]
        told = {event.what: event.reason for event in await engine.events()}
        assert "No module named 'no_such_module_of_ours'" in told["not preloaded"]


GUARDED_TOO_MUCH = """
import asyncio
import subprocess
import sys
from headrace import Engine
async def main():
    async with Engine("a.run", memory="+200MB") as engine:
        try:
            await (await engine.submit(agent)).result()
        except Exception as error:
            print(error)
if __name__ == "__main__":
    async def agent(ctx):
        return 1
    asyncio.run(main())
"""


def test_a_function_that_workers_do_not_find_in_the_script_is_told_where_to_stand(tmp_path):
    (tmp_path / "script.py").write_text(GUARDED_TOO_MUCH)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert "has no agent when a worker imports it. Define it at the top of the file" in ran.stdout, ran.stderr


FAMILY = """
import asyncio
from headrace import Engine
async def child(ctx):
    await ctx.receive()
async def parent(ctx):
    await ctx.run(child)
async def main():
    async with Engine("a.run", memory="+200MB") as engine:
        await engine.submit(parent)
        while len(kinds := [run.kind for run in await engine.unfinished()]) < 2:
            await asyncio.sleep(0.01)
        print(kinds)
if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_scripts_function_is_of_the_same_kind_as_a_run_and_as_a_child(tmp_path):
    (tmp_path / "script.py").write_text(FAMILY)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout == "['__main__:parent', '__main__:child']\n", ran.stderr


async def test_a_parent_hears_what_became_of_its_child_and_keeps_its_limit_though_that_met_it(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.outliving_a_childs_memory_error)
        told, size = await result_of(run)
        assert re.search(r"out of memory.*in use of the .*step.*slot_memory=", told)
        assert size == 60 << 20
        assert run.status().attempts == 2, "its child was tried once more, together with it"


async def test_a_worker_in_which_a_run_has_left_something_is_not_used_again(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.agents.workers.agent_executor._LEAVES_WITHIN_S", 30.0)  # a slow one is not replaced
    async with engine_at(tmp_path / "a.run", slots=1) as engine:
        changes = ("a timer", "another directory", "a signal ignored", "another limit")
        for what in ("nothing", "a thread", "a process", "a stream closed", *changes):
            first = await result_of(await engine.submit(functions.leaving, what, key=None))
            second = await result_of(await engine.submit(functions.leaving, what, key=None))
            assert (first == second) is (what == "nothing"), what


async def test_a_side_effect_that_has_failed_protects_its_run_no_longer(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", grace_s=0.1) as engine:
        await engine.submit(functions.failing_to_pay_and_never_awaiting_again, str(log))
        while not log.exists():
            await asyncio.sleep(0.02)
        began = time.monotonic()
    assert time.monotonic() - began < 6  # where it is waited for, closing gives up after ten


async def test_a_run_that_stops_its_warden_goes_on_and_an_event_tells_of_it(tmp_path):
    async with engine_at(tmp_path / "a.run", slots=1) as engine, asyncio.timeout(30):
        assert await result_of(await engine.submit(functions.stopping_its_warden)) == "gone on"
        while not (told := [event.reason for event in await engine.events() if event.what == "warden stopped"]):
            await asyncio.sleep(0.05)
        assert "continued" in told[0]


async def test_a_run_that_kills_its_warden_again_and_again_is_set_aside_alone(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", slots=2) as engine, asyncio.timeout(120):
        deadly = await engine.submit(functions.killing_its_warden, str(log))
        beside = await engine.submit(isolated_functions.counting, str(tmp_path / "counted"), 40)
        with pytest.raises(RunFailed, match=r"tried 3 times, at last alone, .* seems to end the warden"):
            await result_of(deadly)
        assert await result_of(beside) == sum(range(40))
        assert len(isolated_functions.lines(log)) == 3
        assert [each.id for each in await engine.failed()] == [deadly.id]
