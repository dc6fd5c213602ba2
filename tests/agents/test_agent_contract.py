"""One suite for every executor of agent runs."""

import asyncio
import math
import time
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import pytest

from headrace.agents import contract
from headrace.agents.contract import (
    AgentEvent,
    AgentExecutor,
    AgentRun,
    AskWanted,
    Checkpoint,
    ChildWanted,
    CommandWanted,
    Emitted,
    MemoryUsed,
    ProgramCall,
    Receiving,
    ResultWanted,
    RunEnded,
    SlotWaits,
    SlotWanted,
    StepDone,
    StepRaised,
    StepStarting,
)
from headrace.agents.workers import agent_executor as isolated_agents
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from tests.agents.agent_executors import EXECUTORS, pools_for_agents


@pytest.fixture(scope="module")
async def pools(anyio_backend):
    async with pools_for_agents() as both:
        yield both


@pytest.fixture(params=sorted(EXECUTORS))
def opened(request, tmp_path, pools):
    return EXECUTORS[request.param](tmp_path, pools)


_unread: WeakKeyDictionary[AgentExecutor, list[AgentEvent]] = WeakKeyDictionary()


async def batches_of(executor):
    """Batches of events, beginning with what the last call of `told` has left."""
    if left := _unread.pop(executor, []):
        yield left
    async for batch in executor.events():
        yield batch.events


async def told(executor, *, acks=True, until=RunEnded, answers=None, ends=1):
    """Events up to the first of a kind, or so many; acknowledged as if they were on disk. On a busy machine more may
    come in the same batch: that is left for the next call. Left out: events that come where an answer takes a moment,
    unless the test waits for them.
    """
    events, passing = [], (MemoryUsed,) if until is SlotWaits else (MemoryUsed, SlotWaits)
    async with asyncio.timeout(20):
        async for batch in batches_of(executor):
            for place, event in enumerate(batch, 1):
                if isinstance(event, (ResultWanted, Receiving, CommandWanted)):
                    executor.put(event.id, event.epoch, event.step, (answers or {}).get(event.step))
                if not isinstance(event, passing):
                    events.append(event)
                ends -= isinstance(event, until)
                if not ends:
                    _unread[executor] = batch[place:]
                    if acks:
                        executor.ack(event.seq)
                    return events
            if acks:
                executor.ack(batch[-1].seq)
    return None


async def test_steps_are_told_in_order_and_then_the_end_with_the_result(opened):
    async with opened as executor:
        executor.start(AgentRun(7, 3, "stepping", b"[[3],{}]"))
        events = await told(executor)
        *steps, end = events
        assert [(step.step, step.result) for step in steps] == [("s0", b"0"), ("s1", b"1"), ("s2", b"2")]
        assert (end.cause, end.result) == (ExitCause.DONE, b"3")
        assert {(event.id, event.epoch) for event in events} == {(7, 3)}
        assert [event.seq for event in events] == sorted({event.seq for event in events})


async def test_what_is_larger_than_a_socket_buffer_goes_both_ways(opened):
    text = "x" * 3_000_000
    encoded = msgspec.json.encode(text)
    async with opened as executor:
        for number in (1, 2):
            arguments = b"[[" + encoded + b"],{}]"
            executor.start(AgentRun(number, 1, "large", arguments, steps={"earlier": encoded}, slot=1))
        events = await told(executor, answers={"mail": encoded}, ends=2)
    ends = [event for event in events if isinstance(event, RunEnded)]
    assert [(end.cause, end.reason) for end in ends] == [(ExitCause.DONE, "")] * 2
    assert {end.result for end in ends} == {b"[true,true,true," + encoded + b"]"}


async def test_nothing_goes_on_before_its_step_is_acknowledged(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "stepping", b"[[2],{}]"))
        (step,) = await told(executor, acks=False, until=StepDone)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(executor.events())
        executor.ack(step.seq)
        assert [type(event) for event in await told(executor)] == [StepDone, RunEnded]


async def test_journaled_steps_are_not_run_again_and_large_ones_are_fetched(opened):
    async with opened as executor:
        work = AgentRun(1, 2, "stepping", b"[[3],{}]", steps={"s0": b"10", "s1": None})
        executor.start(work)
        wanted, step, end = await told(executor, answers={"s1": b"20"})
        assert (type(wanted), wanted.step, step.step, end.result) == (ResultWanted, "s1", "s2", b"32")


async def test_the_state_of_the_last_checkpoint_is_there(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 2, "checkpointing", b"[[],{}]", state=b'{"i":4}', checkpoints=4))
        checkpoint, end = await told(executor)
        assert isinstance(checkpoint, Checkpoint)
        assert (checkpoint.number, checkpoint.state, end.result) == (5, b'{"seen":{"i":4}}', b'{"i":4}')


async def test_a_side_effect_is_announced_first_and_never_repeated_unasked(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "effect", b"[[],{}]"))
        (starting,) = await told(executor, acks=False, until=StepStarting)
        executor.ack(starting.seq)
        assert [type(event) for event in await told(executor)] == [StepDone, RunEnded]
        executor.start(AgentRun(2, 2, "effect", b"[[],{}]", started=["pay"]))
        (end,) = await told(executor)
        assert (end.cause, end.step) == (ExitCause.UNDECIDED, "pay")


async def test_a_programs_side_effect_is_announced_first_and_a_preemption_in_between_lets_it_run(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "program_effect", b"[[],{}]"))
        (starting,) = await told(executor, acks=False, until=StepStarting)
        await executor.signal(1, 1, Signal.PREEMPT, 20)
        executor.ack(starting.seq)
        wanted, end = await told(executor, answers={"send": b'{"code":0,"output":"sent"}'})
        assert (starting.runs_program, type(wanted), end.result) == (True, CommandWanted, b'"sent"')
        executor.start(AgentRun(2, 2, "program_effect", b"[[],{}]", started=["send"]))
        (end,) = await told(executor)
        assert (end.cause, end.step) == (ExitCause.UNDECIDED, "send")


async def test_a_side_effect_is_not_cut_short_by_a_preemption_though_others_end_beside_it(opened, monkeypatch):
    monkeypatch.setattr(isolated_agents, "_HARDER_AFTER_S", 0.05)
    async with opened as executor:
        executor.start(AgentRun(1, 1, "effects_beside_steps", b"[[],{}]"))
        begun = await told(executor, until=StepDone)
        assert [type(event) for event in begun[:3]] == [StepStarting, StepRaised, StepStarting]
        await executor.signal(1, 1, Signal.PREEMPT, 0.05)
        *earlier, end = await told(executor)
        assert "pay" in {event.step for event in earlier}
        assert end.cause is ExitCause.PREEMPTED


async def test_a_step_is_not_cut_short_by_a_preemption_without_a_deadline(opened, monkeypatch):
    monkeypatch.setattr(isolated_agents, "_HARDER_AFTER_S", 0.05)
    async with opened as executor:
        executor.start(AgentRun(1, 1, "with_a_long_step", b"[[],{}]"))
        await told(executor, until=Emitted)
        await executor.signal(1, 1, Signal.PREEMPT, math.inf)
        done, end = await told(executor)
        assert (done.step, end.cause) == ("long", ExitCause.PREEMPTED)


async def test_a_preemption_with_a_deadline_may_follow_one_without(opened, monkeypatch):
    monkeypatch.setattr(isolated_agents, "_HARDER_AFTER_S", 0.05)
    async with opened as executor:
        executor.start(AgentRun(1, 1, "stuck", b"[[],{}]"))
        await executor.signal(1, 1, Signal.PREEMPT, math.inf)
        await executor.signal(1, 1, Signal.PREEMPT, 0.05)
        assert (await told(executor))[-1].cause is ExitCause.PREEMPTED


async def test_a_run_without_its_message_is_parked_and_one_that_sleeps_says_until_when(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "receiving", b"[[],{}]"))
        assert (await told(executor))[-1].cause is ExitCause.PARKED
        executor.start(AgentRun(1, 2, "receiving", b"[[],{}]"))
        assert (await told(executor, answers={"$receive-0-1": b'"hello"'}))[-1].result == b'"hello"'
        executor.start(AgentRun(2, 1, "sleeping", b"[[],{}]", now_s=time.time()))
        end = (await told(executor))[-1]
        assert end.cause is ExitCause.PARKED
        assert end.resume_at == pytest.approx(time.time() + 3600, abs=60)


async def test_a_run_is_not_parked_before_the_side_effect_beside_has_ended(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "sleeping_beside_an_effect", b"[[],{}]"))
        *earlier, end = await told(executor)
        assert [event.step for event in earlier if isinstance(event, StepDone)] == ["$sleep-0-1", "pay"]
        assert end.cause is ExitCause.PARKED


@pytest.mark.parametrize(
    ("kind", "cause"),
    [("failing", ExitCause.FAILED), ("running_out", ExitCause.FAILED), ("exhausting", ExitCause.OUT_OF_MEMORY)],
)
async def test_what_goes_wrong_is_an_ending_with_its_reason(opened, kind, cause):
    async with opened as executor:
        executor.start(AgentRun(1, 1, kind, b"[[],{}]"))
        (end,) = await told(executor)
        assert end.cause is cause
        assert any(told in end.reason for told in ("no luck", "StopIteration", "MemoryError"))


@pytest.mark.parametrize(
    ("kind", "what", "cause"),
    [
        ("endless", Signal.PREEMPT, ExitCause.PREEMPTED),
        ("endless", Signal.KILL, ExitCause.LOST),
        ("stuck", Signal.PREEMPT, ExitCause.PREEMPTED),
        ("stuck", Signal.KILL, ExitCause.LOST),
    ],
)
async def test_a_run_stops_when_told_to_at_a_step_or_after_the_grace_period(opened, kind, what, cause):
    async with opened as executor:
        executor.start(AgentRun(1, 5, kind, b"[[],{}]"))
        await asyncio.sleep(0.05)
        await executor.signal(1, 4, what, 0.1)  # of an attempt that was replaced: not meant
        await executor.signal(1, 5, what, 0.1)
        assert (await told(executor))[-1].cause is cause


async def test_what_is_emitted_is_bounded_and_stops_nothing(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "talkative", b"[[],{}]"))
        events = await told(executor)
        emitted = [event for event in events if isinstance(event, Emitted)]
        assert 0 < len(emitted) <= 1000
        assert events[-1].cause is ExitCause.DONE


@pytest.mark.parametrize(
    "kind", ["returning_what_stopped_it", "failing_over_what_stopped_it", "returning_when_cancelled"]
)
async def test_what_a_function_makes_of_being_stopped_is_neither_a_result_nor_a_failure(opened, kind):
    async with opened as executor:
        executor.start(AgentRun(1, 1, kind, b"[[],{}]"))
        if kind == "returning_when_cancelled":
            await asyncio.sleep(0.3)
        else:
            await told(executor, until=StepDone)
        await executor.signal(1, 1, Signal.PREEMPT, 0.2)
        *earlier, end = await told(executor)
        assert (end.cause, end.result, end.reason) == (ExitCause.PREEMPTED, None, "")
        assert {type(event) for event in earlier} <= {StepDone}
        assert "after" not in {event.step for event in earlier}


async def test_a_run_that_keeps_its_own_parking_is_parked_all_the_same(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "returning_instead_of_sleeping", b"[[],{}]", now_s=time.time()))
        step, end = await told(executor)
        assert isinstance(step, StepDone)
        assert (end.cause, end.result) == (ExitCause.PARKED, None)
        assert end.resume_at > time.time() + 3000


async def waits_of(executor, count=1):
    """Events up to the slot's next wait, or so many."""
    return await told(executor, until=SlotWaits, ends=count)


async def test_a_slot_waits_while_all_that_it_asked_for_is_out_and_again_after_each_answer(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "asking", b"[[3],{}]", slot=4))
        *asked, waits = await waits_of(executor)
        assert [type(event) for event in asked] == [AskWanted] * 3
        assert waits.answers == {1: 0}
        for given, step in enumerate(("a1", "a0"), start=1):
            executor.put(1, 1, step, b'"reply"')
            (waits,) = await waits_of(executor)
            assert waits.answers == {1: given}
        executor.put(1, 1, "a2", b'"reply"')
        (end,) = await told(executor)
        assert end.cause is ExitCause.DONE


async def test_a_slot_does_not_wait_while_a_step_runs_beside_and_waits_when_that_has_ended(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "stepping_beside_an_ask", b"[[0],{}]"))
        events = await waits_of(executor)
        assert {type(event) for event in events[:-1]} == {AskWanted, StepDone}
        executor.put(1, 1, "a", b'"reply"')
        assert (await told(executor))[-1].result == b'["reply",1]'


async def test_a_step_in_a_slot_that_waits_asks_for_its_turn_first(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "stepping_beside_an_ask", b"[[0.2],{}]"))
        *_, wanted = await told(executor, until=SlotWanted)
        assert wanted.step == "beside"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(executor.events())
        executor.put(1, 1, "beside", None)
        done, waits = await waits_of(executor)
        assert (done.step, waits.answers) == ("beside", {1: 1})
        executor.put(1, 1, "a", b'"reply"')
        assert (await told(executor))[-1].result == b'["reply",1]'


async def test_a_step_whose_function_waits_for_an_answer_does_not_compute(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "asking_inside_steps", b"[[],{}]"))
        *_, waits = await waits_of(executor)
        assert waits.answers == {1: 0}
        executor.put(1, 1, "a", b'"reply"')
        assert (await told(executor))[-1].result == b'"reply"'


async def test_a_run_that_goes_on_without_its_answer_wants_its_slot_back(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "giving_up_an_ask", b"[[],{}]"))
        *_, wanted = await told(executor, until=SlotWanted)
        assert wanted.step == ""
        executor.put(1, 1, "", None)
        executor.put(1, 1, "after", None)  # the step may have asked for its turn by now
        *_, done, end = await told(executor)
        assert (done.step, end.result) == ("after", b"1")


@pytest.mark.parametrize("isolated", [False, True])
async def test_a_parent_waits_for_its_child_and_not_while_that_computes_in_its_slot(opened, isolated):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "parent", msgspec.json.encode([[isolated], {}]), slot=3))
        wanted, waits = await waits_of(executor)
        assert isinstance(wanted, ChildWanted)
        assert (wanted.is_isolated, waits.answers) == (isolated, {1: 0})
        executor.start(AgentRun(2, 1, "asking", b"[[1],{}]", slot=4 if isolated else 3))
        *_, waits = await waits_of(executor)
        assert waits.answers == ({2: 0} if isolated else {1: 0, 2: 0})
        executor.put(2, 1, "a0", b'"reply"')
        assert (await told(executor))[-1].id == 2
        executor.put(1, 1, "child", b"5")
        end = (await told(executor))[-1]
        assert (end.id, end.result) == (1, b"5")


async def test_the_limit_of_a_worker_comes_down_while_it_waits_and_is_up_again_before_it_computes(tmp_path, pools):
    async with EXECUTORS["isolated"](tmp_path, pools) as executor:
        executor.start(AgentRun(1, 1, "filling_after_an_ask", b"[[120000000],{}]", memory_bytes=150_000_000, slot=1))
        await waits_of(executor)
        slot = executor._hosts[""].slots[1]
        assert slot.limit_before_bytes >= 150_000_000
        loan = slot.loan
        async with asyncio.timeout(20):
            while loan.limit_bytes > 60_000_000:
                await asyncio.sleep(0.01)
        executor.put(1, 1, "a", b'"reply"')
        *_, end = await told(executor)
        assert (end.cause, end.result) == (ExitCause.DONE, b"120000000")


@pytest.mark.parametrize("what", [Signal.PREEMPT, Signal.KILL])
async def test_a_run_that_waits_for_its_turn_can_be_stopped(opened, what):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "stepping_beside_an_ask", b"[[0.1],{}]"))
        await told(executor, until=SlotWanted)
        await executor.signal(1, 1, what, 0.3)
        end = (await told(executor))[-1]
        assert end.cause is (ExitCause.PREEMPTED if what is Signal.PREEMPT else ExitCause.LOST)


@pytest.mark.parametrize("deadline_s", [20.0, math.inf])
async def test_a_run_that_only_waits_for_models_stops_at_once(opened, deadline_s):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "asking", b"[[3],{}]"))
        await waits_of(executor)
        await executor.signal(1, 1, Signal.PREEMPT, deadline_s)
        *_, end = await told(executor)  # it may want its slot back before it ends
        assert end.cause is ExitCause.PREEMPTED


async def test_a_step_whose_function_waits_for_a_model_is_not_cut(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "asking_inside_steps", b"[[],{}]"))
        await waits_of(executor)
        await executor.signal(1, 1, Signal.PREEMPT, math.inf)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(executor.events())
        executor.put(1, 1, "a", b'"reply"')
        inner, outer, _ = await told(executor)
        assert (inner.step, outer.step) == ("inner", "outer")


async def test_a_program_is_not_cut_by_a_call_beside_it_and_the_run_stops_when_it_has_ended(opened):
    async with opened as executor:
        executor.start(AgentRun(1, 1, "asking_beside_a_program", b"[[],{}]"))
        async with asyncio.timeout(20):
            async for batch in executor.events():
                executor.ack(batch.upto)
                if any(isinstance(event, SlotWaits) for event in batch.events):
                    break
        await executor.signal(1, 1, Signal.PREEMPT, math.inf)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(executor.events())
        executor.put(1, 1, "c", b'{"code":0,"signal":null,"output":"","errors":""}')
        *_, end = await told(executor)
        assert end.cause is ExitCause.PREEMPTED


def test_every_message_can_be_sent_as_bytes():
    common: dict[str, Any] = {"id": 1, "epoch": 2, "seq": 3}
    events: list[AgentEvent] = [
        contract.StepStarting(**common, step="s", runs_program=True),
        contract.StepRaised(**common, step="s"),
        contract.StepDone(**common, step="s", result=b"r"),
        contract.StepDiffers(**common, step="s", what="its arguments"),
        contract.Checkpoint(**common, state=b"s"),
        contract.ResultWanted(**common, step="s"),
        contract.Receiving(**common, step="s"),
        contract.ChildWanted(**common, step="s", kind="k", arguments=b"a"),
        contract.AskWanted(**common, step="s", model=b"m", prompt="p", system="s"),
        contract.CommandWanted(**common, step="s", command=ProgramCall(["node"], b"in", "/", {"A": "b"}, 5, None, 7)),
        contract.SlotWaits(**common, answers={1: 2}),
        contract.SlotWanted(**common, step="s"),
        contract.Emitted(**common, payload=b"p"),
        contract.MemoryUsed(**common, memory_bytes=5),
        contract.NearlyFull(**common),
        contract.LoopStuck(**common, seconds=1.5, stack="s"),
        contract.RunEnded(**common, cause=ExitCause.LOST, reason="gone"),
    ]
    assert {type(event) for event in events} == set(AgentEvent.__args__)
    messages: list[tuple[Any, Any]] = [
        (Batch[AgentEvent], Batch(3, events)),
        (AgentRun, AgentRun(1, 1, "kind", b"args", None, {"step": b"result"}, 5)),
    ]
    for kind, message in messages:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind) == message
