"""Agents in worker processes: whatever happens to one costs it a step, and the others nothing."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from headrace import Engine, Priority
from headrace.errors import CircuitOpen, CommandFailed, InvalidInput, OptionError, RunCancelled, RunFailed, RunUndecided
from headrace.limits import MemoryLimits
from headrace.memory.measure.own_tree import tree_bytes
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.engine_file.notes import NoteWrites
from headrace.workers.lender import Lender
from tests.agents.engine import isolated_functions as functions
from tests.agents.engine.engine_files import warden_of

pytestmark = pytest.mark.usefixtures("small_warden")

MB = 1 << 20


@pytest.fixture(autouse=True)
def _soon_hung(monkeypatch):
    monkeypatch.setattr("headrace.agents.workers.engine_workers.HANG_S", 1.0)


def engine_at(path: Path, **options) -> Engine:
    given = {"memory": "+400MB", "slot_memory": "120MB", "grace_s": 0.3, **options}
    return Engine(path, **given)


async def result_of(run, within_s=40):
    return await asyncio.wait_for(run.result(), within_s)


async def reasons(engine, what):
    return [event.reason for event in await engine.events() if event.what == what]


@pytest.mark.parametrize("how", sorted(functions.DEATHS))
async def test_a_workers_death_costs_one_step_and_tells_its_cause(tmp_path, how):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        others = [await engine.submit(functions.modest, number) for number in range(3)]
        run = await engine.submit(functions.dying, str(log), how)
        assert await result_of(run) == [how, 2]
        assert [await result_of(other) for other in others] == [0, 1, 2]
        (reason,) = await reasons(engine, "lost")
        assert functions.DEATHS[how][1] in reason
        assert "'deadly'" in reason
    assert functions.lines(log) == ["before", f"dying by {how}", f"dying by {how}", "after"]
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.run", "log"}  # no spool, no socket, nothing else


async def test_a_kind_that_crashes_again_and_again_opens_its_circuit_and_the_others_go_on(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.crashing, key="a")
        with pytest.raises(CircuitOpen):  # noqa: PT012 - accepted until its crashes are seen
            for number in range(200):
                await engine.submit(functions.crashing, key=f"more {number}")
                await asyncio.sleep(0.05)
        assert "exited with code 3" in (await reasons(engine, "lost"))[0]
        assert await result_of(await engine.submit(functions.modest, 5)) == 5
        await run.cancel()


async def test_a_death_inside_a_side_effect_waits_for_its_owner(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.effect_then_death, str(log))
        with pytest.raises(RunUndecided):
            await result_of(run)
        assert functions.lines(log) == ["dying by kill"]
        await run.resolve("pay", again=True)
        assert await result_of(run) == "kill"


async def test_memory_beyond_the_limit_is_tried_once_more_alone_and_then_set_aside_with_the_reason(tmp_path):
    budget = MemoryLimits(budget_bytes=tree_bytes() + 400 * MB)
    async with engine_at(tmp_path / "a.run", memory=budget, slot_memory="60MB") as engine:
        for number, how in enumerate(functions.ALLOCATORS, 1):
            log = tmp_path / how
            others = [await engine.submit(functions.modest, other, key=None) for other in range(3)]
            run = await engine.submit(functions.taking, str(log), how, 2000)
            with pytest.raises(RunFailed, match=r"out of memory.*'take'.*slot_memory="):
                await result_of(run)
            assert [await result_of(other) for other in others] == [0, 1, 2]
            status = engine.status()
            assert (how, run.status().state, run.status().attempts) == (how, RunState.OUT_OF_MEMORY, 2)
            assert status.counts["out of memory"] == 2 * number, how
            assert status.open_circuits == {}  # it says something of the budget, not of the code
            assert status.peak_bytes <= budget.budget_bytes, how
            assert functions.lines(log) == [f"before {how}"]  # journaled: not repeated for the second try


async def test_a_run_that_needed_more_gets_it_when_it_is_alone(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", slot_memory="60MB") as engine:
        run = await engine.submit(functions.grows, str(log))
        assert await result_of(run) == 90 * MB
    assert functions.lines(log) == ["try", "try"]


async def test_a_child_that_needed_more_gets_it_with_its_parent_alone(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", slot_memory="60MB") as engine:
        run = await engine.submit(functions.with_a_child_that_grows, str(log))
        assert await result_of(run) == 90 * MB
        assert functions.lines(log) == ["before", "try", "try"]
        (told,) = await reasons(engine, "preempted")
        assert told == "its child ran out of memory, and is tried again with it and more memory"
        assert engine.status().counts["out of memory"] == 1


async def test_a_result_that_does_not_fit_is_out_of_memory_and_no_crash(tmp_path):
    async with engine_at(tmp_path / "a.run", slot_memory="60MB") as engine:
        run = await engine.submit(functions.returning_a_lot, 20 * MB)
        assert len(await result_of(run)) == 20 * MB
        (told,) = await reasons(engine, "out of memory")
        assert re.match(r"MemoryError, with (\d+ MB resident|[2-9]\d MB in use( and \d+ MB reserved)? of the)", told)
        assert "lost" not in engine.status().counts


@pytest.mark.parametrize("stubborn", [functions.never_awaiting, functions.ignoring, functions.sleeping_in_a_step])
async def test_a_run_that_does_not_stop_is_ended_by_signals_and_its_slot_is_free(tmp_path, stubborn):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run", slots=1) as engine:
        run = await engine.submit(stubborn, str(log))
        while functions.lines(log)[:1] != ["begin"]:
            await asyncio.sleep(0.01)
        began_s = time.monotonic()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await result_of(run)
        assert time.monotonic() - began_s < 10
        assert await result_of(await engine.submit(functions.modest, 5)) == 5


async def test_leaving_parks_a_run_that_does_not_stop_and_it_goes_on_from_its_last_step(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.never_awaiting, str(log), key="n")
        while functions.lines(log) != ["begin"]:
            await asyncio.sleep(0.01)
    async with engine_at(tmp_path / "a.run") as engine:
        engine.register(functions.never_awaiting)
        run = await engine.find("n")
        assert run is not None
        while run.status().attempts < 2:
            await asyncio.sleep(0.01)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await result_of(run)
    assert functions.lines(log) == ["begin"]


async def test_when_the_warden_is_killed_its_runs_go_on_in_workers_of_another(tmp_path):
    logs = [tmp_path / f"log {number}" for number in range(2)]
    async with engine_at(tmp_path / "a.run") as engine:
        runs = [await engine.submit(functions.counting, str(log), 120) for log in logs]
        killed = None
        for times in range(1, 4):  # more often than a run may lose its worker by itself
            async with asyncio.timeout(60):  # until the file names the new warden
                while len(functions.lines(logs[0])) <= 3 * times or warden_of(tmp_path / "a.run") == killed:
                    await asyncio.sleep(0.01)
            killed = warden_of(tmp_path / "a.run")
            os.kill(killed, signal.SIGKILL)
        assert [await result_of(run) for run in runs] == [sum(range(120))] * 2
    for log in logs:  # the step in flight may run again after each kill, no other
        taken = [int(line) for line in functions.lines(log)]
        assert sorted(set(taken)) == list(range(120))
        assert len(taken) <= 123


async def test_the_file_names_a_new_warden_at_once_and_never_none(tmp_path, monkeypatch):
    noted, write, log = [], NoteWrites.warden, tmp_path / "log"
    monkeypatch.setattr(NoteWrites, "warden", lambda writes, pid: noted.append(pid) or write(writes, pid))
    monkeypatch.setattr("headrace.memory.gauge._HOST_EVERY_S", 60.0)  # not only with what is done once a second
    async with engine_at(tmp_path / "a.run") as engine, asyncio.timeout(60):
        run = await engine.submit(functions.counting, str(log), 20)
        while len(functions.lines(log)) < 3:
            await asyncio.sleep(0.01)
        os.kill(noted[0], signal.SIGKILL)
        assert await result_of(run) == sum(range(20))
    assert len(set(noted)) == len(noted) == 2
    assert None not in noted


async def test_a_worker_stopped_from_outside_is_replaced(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.stopping_itself, str(log))
        assert await result_of(run) == 2
        assert "stopped" in (await reasons(engine, "lost"))[0]


async def test_ten_thousand_lines_on_stderr_hurt_nobody(tmp_path, capfd):
    async with engine_at(tmp_path / "a.run") as engine:
        assert await result_of(await engine.submit(functions.wordy)) == "said"
    assert capfd.readouterr().err.count("much to say") == 10_000


async def test_children_live_in_their_parents_worker(tmp_path):
    async with engine_at(tmp_path / "a.run", slots=1) as engine:
        assert await result_of(await engine.submit(functions.family, str(tmp_path / "log"))) == [True, True]


async def test_models_messages_events_and_spools_are_the_same_as_inline(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.asking)
        heard = asyncio.ensure_future(anext(aiter(run.events())))
        await asyncio.sleep(0)  # it listens from then on, and the run emits after its message
        await run.send("Good.")
        assert await result_of(run) == ["Fine.", 5000, "Good."]
        assert await asyncio.wait_for(heard, 5) == {"size": 5000}
        assert engine.status().usage["calls"] == 1
        with pytest.raises(RunFailed, match="does not travel"):
            await result_of(await engine.submit(functions.asking_a_function))


async def test_large_results_travel_and_come_back_after_a_death(tmp_path):
    async with engine_at(tmp_path / "a.run", slot_memory="350MB") as engine:
        run = await engine.submit(functions.large, str(tmp_path / "log"))
        assert await result_of(run) == [5_000_000, 20_000_000]
        assert run.status().attempts == 2


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_program_is_a_step_with_its_exit_code_signal_and_output(tmp_path, isolation):
    async with engine_at(tmp_path / "a.run", isolation=isolation) as engine:
        told = "import sys; print(sys.stdin.read()); print('oh', file=sys.stderr); sys.exit(3)"
        run = await engine.submit(functions.commanding, "", told, input="in")
        assert await result_of(run) == [3, None, "in\n", "oh\n"]
        killed = "import os; print(1, flush=True); os.kill(os.getpid(), 9)"
        assert await result_of(await engine.submit(functions.commanding, "", killed)) == [None, 9, "1\n", ""]
        greedy = "x = bytearray(900_000_000); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(9)"
        run = await engine.submit(functions.commanding, "", greedy, memory="50MB")
        end = await outcome_of(run)
        if isinstance(end, RunFailed):  # the warden was quicker than the hard limit
            assert "Give it more than" in str(end)
        else:
            code, signal, _, errors = end
            assert (code, signal) == (1, None)
            assert "MemoryError" in errors
        with pytest.raises(RunFailed, match=CommandFailed.__name__):
            await result_of(await engine.submit(functions.commanding, "", "while True: pass", timeout_s=0.3))
        with pytest.raises(RunFailed, match="is not a command"):
            await result_of(await engine.submit(functions.commanding_badly))


async def outcome_of(run):
    try:
        return await result_of(run)
    except RunFailed as error:
        return error


async def test_memory_is_lent_to_a_run_and_its_programs_with_its_priority(tmp_path, monkeypatch):
    lent, lend = [], Lender.lend

    async def recorded(lender, *args, **options):
        lent.append(loan := await lend(lender, *args, **options))
        return loan

    monkeypatch.setattr(Lender, "lend", recorded)
    async with engine_at(tmp_path / "a.run") as engine:
        for priority in (Priority.LOW, Priority.CRITICAL):
            await result_of(await engine.submit(functions.commanding, "", "", priority=priority, key=None))
            assert [loan.priority for loan in lent] == [priority] * 2
            lent.clear()


async def test_a_program_that_was_journaled_is_not_run_again(tmp_path):
    log = tmp_path / "log"
    async with engine_at(tmp_path / "a.run") as engine:
        assert await result_of(await engine.submit(functions.commanding_then_dying, str(log))) == "done\n"
    assert functions.lines(log).count("program") == 1


async def test_a_program_with_a_side_effect_that_was_cut_short_waits_for_its_owner(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        for decision in ({"result": {"code": 0, "output": "sent"}}, {"again": True}):
            log = tmp_path / next(iter(decision))
            script = f"echo sent | tee -a '{log}'; [ $(wc -l < '{log}') = 2 ] || sleep 60"
            run = await engine.submit(functions.commanding_and_dying, str(log), ["sh", "-c", script])
            with pytest.raises(RunUndecided, match="'send'"):
                await result_of(run)
            assert functions.lines(log) == ["sent"]
            for wrong in (None, "sent", {"output": "sent"}, {"code": 0, "said": "sent"}, {"code": "0"}):
                with pytest.raises(OptionError, match=r'does not say how the program ended.*"code": 0'):
                    await run.resolve("send", result=wrong)
            await run.resolve("send", **decision)
            code, output = await result_of(run)
            assert (code, output.strip(), len(functions.lines(log))) == (0, "sent", 1 + ("again" in decision))


async def test_a_function_without_a_file_is_refused_before_anything_starts(tmp_path, monkeypatch):
    cell = ModuleType("a_cell")
    exec("async def in_a_cell(ctx):\n    return 1", cell.__dict__)  # noqa: S102 - as a notebook does
    monkeypatch.setitem(sys.modules, "a_cell", cell)
    async with engine_at(tmp_path / "a.run") as engine:
        with pytest.raises(InvalidInput, match=r"isolation='inline'"):
            await engine.submit(cell.in_a_cell)
        assert await engine.unfinished() == []


async def test_the_status_says_which_layers_hold_workers_to_their_limits(tmp_path):
    async with engine_at(tmp_path / "a.run") as engine:
        layers = engine.status().layers
        assert layers["RLIMIT_DATA"] == layers["watchdog"] == "active"
        assert layers["cgroup v2"].startswith(("active", "unproven"))
    async with Engine(tmp_path / "b.run", isolation="inline") as engine:
        assert "inline" in engine.status().layers["isolation"]


async def test_processes_are_the_default(tmp_path):
    async with Engine(tmp_path / "a.run") as engine:
        assert await result_of(await engine.submit(functions.member, str(tmp_path / "log"), 1)) != os.getpid()


UNGUARDED = """
import asyncio
from headrace import Engine, Priority
async def agent(ctx):
    return 1
async def main():
    async with Engine("a.run", memory="+200MB") as engine:
        try:
            await (await engine.submit(agent)).result()
        except Exception as error:
            print(error)
asyncio.run(main())
"""


def test_a_script_that_does_its_work_when_imported_is_told_what_to_write(tmp_path):
    (tmp_path / "script.py").write_text(UNGUARDED)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert 'Put what the script does under `if __name__ == "__main__":`' in ran.stdout, ran.stderr
