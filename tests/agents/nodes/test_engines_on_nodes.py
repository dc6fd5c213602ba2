"""Engines whose agent runs are on nodes: a lost node costs a step, and everything else is as on one machine."""

import asyncio
import errno
import importlib.util
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from headrace import Engine, Model, QuestionFreeText, Ray, Survey
from headrace.cluster.tunnel_wire import StreamData, decode_to_node
from headrace.errors import HeadraceError, OptionError, RunFailed, RunUndecided
from headrace.limits import MemoryLimits
from headrace.workers.functions import refer_to
from tests.agents.engine import waiting_functions
from tests.agents.nodes import node_functions as functions
from tests.cluster.nodes_here import HostHere, NodesHere

pytestmark = pytest.mark.usefixtures("small_warden")


def engine_on(path, nodes=2, slots=1, **options):
    return Engine(path, executor=Ray(str(nodes), slots_per_node=slots), memory="+1GB", grace_s=0.3, **options)


async def result_of(run, within_s=40):
    return await asyncio.wait_for(run.result(), within_s)


async def until(condition, within_s=40):
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


async def what_happened(engine):
    return [event.what for event in await engine.events()]


async def test_runs_are_spread_over_the_nodes_and_each_step_is_taken_once(tmp_path):
    log = tmp_path / "log"
    async with engine_on(tmp_path / "a.run") as engine:
        runs = [await engine.submit(functions.counting, str(log), f"r{number}", 3, 0.15) for number in range(6)]
        seen = []
        await until(lambda: seen.append(engine.status()) or seen[-1].running == 2)
        shown = seen[-1]  # a moment later one of them may have ended
        assert [(node.slots, node.in_flight) for node in shown.nodes] == [(1, 1), (1, 1)]
        assert {each.host for each in shown.in_slots} == {node.name for node in shown.nodes}
        assert "1 in flight in 1 slot" in str(shown)
        wardens = [await result_of(run) for run in runs]
        assert len({pid for each in wardens for pid in each}) == 2
    assert sorted(functions.lines(log)) == sorted(f"r{run}-{step}" for run in range(6) for step in range(3))


async def test_a_lost_node_costs_the_step_that_was_in_flight_and_counts_against_no_run(tmp_path):
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(functions.held, str(log), str(gate))
        for times in range(1, 6):  # more often than a run may lose a worker by itself
            await until(lambda times=times: functions.lines(log).count("held") == times)
            NodesHere.latest.lose()
            if times < 5:
                NodesHere.latest.add()
        await until(lambda: engine.status().waiting["HIGH"] == 1)
        gate.touch()
        NodesHere.latest.add()
        assert await result_of(run) == "after"
        happened = await what_happened(engine)
        assert (happened.count("node lost"), happened.count("node joined"), happened.count("lost")) == (5, 6, 5)
    assert functions.lines(log) == ["before", *["held"] * 6, "after"]


async def test_what_was_journaled_before_a_loss_is_not_done_again(tmp_path):
    log = tmp_path / "log"
    async with engine_on(tmp_path / "a.run", nodes=2, slots=2) as engine:
        runs = [await engine.submit(functions.counting, str(log), f"r{number}", 12, 0.05) for number in range(4)]
        for number in range(3):
            await until(lambda number=number: len(functions.lines(log)) >= 8 * (number + 1))
            NodesHere.latest.lose(0)
            NodesHere.latest.add()
        for run in runs:
            await result_of(run)
    taken = functions.lines(log)
    assert set(taken) == {f"r{run}-{step}" for run in range(4) for step in range(12)}
    assert len(taken) - len(set(taken)) <= 3 * 2  # at each loss, what was in flight in two slots


async def test_a_side_effect_that_a_lost_node_cut_short_waits_for_its_owner(tmp_path):
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.held_effect, str(log), str(gate))
        await until(lambda: functions.lines(log) == ["effect"])
        names = [node.name for node in engine.status().nodes]
        NodesHere.latest.lose(names.index(engine.status().in_slots[0].host))
        with pytest.raises(RunUndecided):
            await result_of(run)
        await run.resolve("effect", result="as it was")
        assert await result_of(run) == "as it was"
    assert functions.lines(log) == ["effect"]


async def test_a_killed_warden_on_a_node_costs_a_step_there(tmp_path):
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(functions.held, str(log), str(gate))
        await until(lambda: "held" in functions.lines(log))
        for pid in NodesHere.latest.warden_pids():
            os.kill(pid, signal.SIGKILL)
        gate.touch()
        assert await result_of(run) == "after"
        assert "node lost" not in await what_happened(engine)
    assert functions.lines(log).count("before") == 1


async def test_a_runaway_on_a_node_is_held_to_its_memory_and_tried_once_more(tmp_path):
    ray = Ray("2", slots_per_node=2, slot_memory="60MB")
    async with Engine(tmp_path / "a.run", executor=ray, memory="+1GB", grace_s=0.3) as engine:
        runaway = await engine.submit(functions.growing, 500_000_000)
        other = await engine.submit(functions.growing, 10_000_000)
        assert await result_of(other) == 10_000_000
        with pytest.raises(RunFailed, match="on its second try"):
            await result_of(runaway)


async def test_a_program_runs_on_the_node_with_large_streams_in_both_directions(tmp_path):
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        ended = await result_of(await engine.submit(functions.copying))
        assert ended == [3, functions.LARGE_BYTES, True, "said\n"]
        assert await result_of(await engine.submit(functions.running, "sh", "-c", "kill -9 $$")) == [None, 9, ""]


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (functions.running, ("no-such-program",), "There is no program 'no-such-program'"),
        (functions.writing_much, (), "more than 100,000"),
        (functions.program_that_grows, (), "python3"),
    ],
)
async def test_a_program_that_cannot_run_on_a_node_says_why(tmp_path, function, arguments, words):
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(function, *arguments)
        with pytest.raises(RunFailed, match=words):
            await result_of(run)


async def test_a_program_that_is_stopped_before_its_input_has_arrived_never_begins(tmp_path, monkeypatch):
    log, deliver = tmp_path / "log", HostHere.deliver

    async def slowly(host, payload):
        if any(isinstance(each, StreamData) for each in decode_to_node(payload)):
            await asyncio.sleep(0.02)
        await deliver(host, payload)

    monkeypatch.setattr(HostHere, "deliver", slowly)
    async with engine_on(tmp_path / "a.run", nodes=1, slots=2) as engine:
        run = await engine.submit(functions.beginning_late, str(log), 0.01)
        with pytest.raises(RunFailed, match="it took longer than"):
            await result_of(run)
        cancelled = await engine.submit(functions.beginning_late, str(log), None)
        await until(lambda: engine.status().awaiting == 1)
        await cancelled.cancel()
        assert await result_of(await engine.submit(functions.running, "sh", "-c", "exit 4")) == [4, None, ""]
        await asyncio.sleep(0.5)
    assert functions.lines(log) == []


async def test_no_payload_is_larger_than_what_ray_takes_beside_its_object_store(tmp_path, monkeypatch):
    sizes = []
    deliver = HostHere.deliver

    async def noted(host, payload):
        sizes.append(len(payload))
        await deliver(host, payload)

    monkeypatch.setattr(HostHere, "deliver", noted)
    async with engine_on(tmp_path / "a.run", nodes=1, slots=4) as engine:
        runs = [await engine.submit(functions.with_long_arguments, size) for size in (0, 1, 12, 15)]
        assert [await result_of(run) for run in runs] == [len("0\n"), len("1\n"), len("12\n"), len("15\n")]
    assert sum(sizes) > 2_800_000
    assert max(sizes) < 100_000


async def test_a_program_whose_streams_have_no_room_on_the_node_costs_its_own_run(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run", nodes=1, slots=2) as engine:
        other = await engine.submit(functions.held, str(log), str(gate))
        await until(lambda: "held" in functions.lines(log))
        monkeypatch.setattr("headrace.cluster.program_streams.TemporaryFile", full)
        with pytest.raises(RunFailed, match="streams cannot be kept on the node: No space left"):
            await result_of(await engine.submit(functions.running, "true"))
        gate.touch()
        assert await result_of(other) == "after"
        assert "node lost" not in await what_happened(engine)


async def test_a_program_ends_with_its_node(tmp_path):
    mark = f"sleep 61.{os.getpid() % 1000:03}"
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(functions.running, "sh", "-c", mark)
        await until(lambda: _is_running(mark))
        NodesHere.latest.lose()
        await until(lambda: not _is_running(mark))
        assert "node lost" in await what_happened(engine)
        await run.cancel()


async def test_models_children_and_spools_work_from_a_node(tmp_path, server):
    async with engine_on(tmp_path / "a.run") as engine:
        server.behave("ok", answer="fine")
        asked = [await engine.submit(waiting_functions.asks, server.url, f"prompt {number}") for number in range(4)]
        assert [await result_of(run) for run in asked] == ["fine"] * 4
        assert server.calls == 4
        for isolated in (False, True):
            assert await result_of(await engine.submit(functions.parent, isolated=isolated)) == [0, 2, 4]
        assert await result_of(await engine.submit(functions.spooling)) == functions.LARGE_BYTES


async def test_what_was_parked_on_a_cluster_goes_on_without_one_and_back(tmp_path):
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run") as engine:
        run = await engine.submit(functions.counted_by_checkpoint, str(log), str(gate), 4, key="a")
        await until(lambda: "gate" in functions.lines(log))
    gate.touch()
    async with Engine(tmp_path / "a.run", memory="+400MB") as engine:
        engine.register(functions.counted_by_checkpoint)
        run = await engine.find("a")
        assert await result_of(run) == "done"
    taken = [line for line in functions.lines(log) if line.startswith("step")]
    assert taken == [f"step-{number}" for number in range(4)]


async def test_a_node_that_lacks_the_function_is_given_up_and_the_run_waits_for_one_that_has_it(tmp_path, monkeypatch):
    file, log = tmp_path / "on_no_node.py", tmp_path / "log"
    file.write_text(CODE)
    spec = importlib.util.spec_from_file_location("on_no_node", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "on_no_node", module)
    spec.loader.exec_module(module)
    async with engine_on(tmp_path / "a.run", nodes=2) as engine:
        refer_to(module.agent)  # while its file is here; no node has it
        file.unlink()
        run = await engine.submit(module.agent, str(log))
        await until(lambda: not engine.status().nodes)
        assert engine.status().waiting_for == "a node of the cluster: none takes part now"
        lost = [event.reason for event in await engine.events() if event.what == "node lost"]
        assert ["is not on" in reason for reason in lost] == [True, True]
        file.write_text(CODE)
        NodesHere.latest.add()
        assert await result_of(run) == "ran"


CODE = """
async def agent(ctx, log):
    return "ran"
"""


async def test_surveys_and_heartbeats_stay_with_the_controller(tmp_path):
    beats = []
    job = Survey([QuestionFreeText(question_name="q", question_text="Who?")]).by(Model("test", canned_response="me"))
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        engine.every(0.05, lambda: beats.append(1), name="beat", jitter=0.0)
        NodesHere.latest.lose()  # no node is needed for them
        results = await asyncio.wait_for(engine.run(job, tmp_path / "b.run"), 30)
        assert [result.answer["q"] for result in results] == ["me"]
        await until(lambda: beats)


async def test_a_cluster_on_which_no_node_can_take_part_ends_the_engine_with_the_reason(tmp_path):
    with pytest.raises(HeadraceError, match="no node can"):  # noqa: PT012 - it comes while the run waits
        async with engine_on(tmp_path / "a.run", nodes=1) as engine:
            run = await engine.submit(functions.held, str(tmp_path / "log"), str(tmp_path / "gate"))
            NodesHere.latest.fail(HeadraceError("no node can take part"))
            await result_of(run)


async def test_an_engine_after_a_kill_is_told_the_wardens_of_the_one_before(tmp_path):
    async with engine_on(tmp_path / "a.run") as engine:
        await result_of(await engine.submit(functions.counting, str(tmp_path / "log"), "r", 1))
        await until(lambda: len(NodesHere.latest.warden_pids()) == 2)
        pids = NodesHere.latest.warden_pids()
    async with engine_on(tmp_path / "a.run"):
        assert sorted(NodesHere.latest.former_wardens.values()) == sorted(pids)


async def test_a_node_that_sends_no_readings_is_given_up_and_its_runs_go_on_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.agents.nodes.cluster_hosts._READS_WITHIN_S", 2.0)
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(functions.held, str(log), str(gate))
        await until(lambda: "held" in functions.lines(log))
        NodesHere.latest.stop_reading()
        await until(lambda: not engine.status().nodes)
        gate.touch()
        monkeypatch.setattr("headrace.agents.nodes.cluster_hosts._READS_WITHIN_S", 60.0)  # a busy node is not given up
        NodesHere.latest.add()
        assert await result_of(run) == "after"
        lost = [event.reason for event in await engine.events() if event.what == "node lost"]
        assert ["no reading of its memory" in reason for reason in lost] == [True]
    assert functions.lines(log) == ["before", "held", "held", "after"]


async def test_a_node_that_comes_back_at_once_under_its_name_joins_after_what_it_had_is_given_up(tmp_path):
    log, gate = tmp_path / "log", tmp_path / "gate"
    async with engine_on(tmp_path / "a.run", nodes=1) as engine:
        run = await engine.submit(functions.held, str(log), str(gate))
        await until(lambda: "held" in functions.lines(log))
        NodesHere.latest.come_back()
        gate.touch()
        assert await result_of(run) == "after"
        happened = [what for what in await what_happened(engine) if what.startswith("node")]
        assert happened == ["node joined", "node lost", "node joined"]


async def test_levels_of_memory_are_the_engines_and_the_budget_is_each_nodes(tmp_path):
    limits = MemoryLimits(budget="+700MB", shrink_at=0.5, shrink_until=0.4)
    async with Engine(tmp_path / "a.run", executor=Ray("1", slots_per_node=1), memory=limits) as engine:
        (node,) = engine.status().nodes
        assert node.budget_bytes > 700_000_000
        assert engine.status().budget_bytes != node.budget_bytes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"executor": Ray("1"), "slots": 2}, "slots_per_node"),
        ({"executor": Ray("1"), "slot_memory": "1GB"}, "slot_memory"),
        ({"executor": Ray("1"), "isolation": "inline"}, "worker processes"),
        ({"executor": "ray"}, "executor='ray' is not known"),
        ({"executor": Ray("1"), "memory": "much"}, "much"),
    ],
)
def test_options_that_make_no_sense_on_a_cluster_are_refused_at_once(tmp_path, options, words):
    with pytest.raises(OptionError, match=words):
        Engine(tmp_path / "a.run", **options)


def _is_running(mark):
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip() == mark:
                return True
    return False
