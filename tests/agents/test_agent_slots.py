"""What a slot sends to its worker, and in which order."""

from typing import cast

from headrace.agents.contract import AgentRun
from headrace.agents.workers.agent_host import AgentHost
from headrace.agents.workers.agent_slots import AgentSlot
from headrace.agents.workers.agent_wire import BeginRun, StepAnswer
from headrace.executor import Signal
from headrace.priority import Priority
from headrace.workers.hosting.executor_wire import SignalWork
from headrace.workers.wire import FunctionReference


def raised_slot() -> AgentSlot:
    """A slot whose messages wait until its limit is raised; its worker has not started."""
    slot = AgentSlot(0, cast("AgentHost", None), 0, Priority.HIGH)
    slot.until_raised = []
    return slot


def test_a_signal_does_not_wait_for_the_limit_with_its_runs_answers():
    slot, preempt = raised_slot(), SignalWork(1, 0, Signal.PREEMPT, 5.0)
    slot.send_in_turn(answer := StepAnswer(1, 0, "search", b"", None))
    slot.send_signal(preempt)
    assert slot.until_raised == [answer]
    assert slot.unsent == [preempt]


def test_a_signal_stays_behind_the_beginning_of_its_run():
    slot, cancel = raised_slot(), SignalWork(2, 0, Signal.CANCEL, 5.0)
    begin = BeginRun(AgentRun(2, 0, "child", b""), FunctionReference("m", "f", "m.py"))
    slot.send_in_turn(begin)
    slot.send_signal(cancel)
    assert slot.until_raised == [begin, cancel]
    assert slot.unsent == []
