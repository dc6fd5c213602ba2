"""Answers to what agent runs ask for, held while the slot of a run computes for somebody else.

    SlotWaits  ──► WaitBegan: the scheduler may give the slot to others
    an answer for a run of a slot that waits, already journaled  ──► held; WaitOver. A large one is dropped here, and
                                                                     read back from the journal when it is put
    ResumeRun  ──► the run's answers are put: it computes again
    the run is to stop  ──► its answers are put at once: it stops where it gets them
    its attempt has ended  ──► they are forgotten: the next attempt finds them in the journal

A SlotWaits that crossed an answer or a start on its way is not true any more, and is ignored: the slot says so again.
Does not cover: making the answers (agent_requests, run_events), whether a slot waits (agents.slot_turns).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.agents.contract import AgentExecutor, RemoteError, SlotWaits
from headrace.agents.engine.live_runs import HeldAnswer, LiveRun, LiveRuns
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import ResumeRun, WaitBegan, WaitOver

# Memory that answers take while they are held is memory that the runs which wait for them were promised.
_LARGE_BYTES = 16_000


@dataclass(slots=True, eq=False)
class _EngineSlot:
    runs: dict[int, LiveRun] = field(default_factory=dict[int, LiveRun])
    is_waiting: bool = False


class HeldAnswers:
    """The only way in which answers reach the executor. `journaled` reads the result of a run's step."""

    def __init__(
        self,
        driver: SchedulerDriver,
        executor: AgentExecutor,
        runs: LiveRuns,
        journaled: Callable[[int, str], bytes | None],
    ) -> None:
        self._driver = driver
        self._executor = executor
        self._runs = runs
        self._journaled = journaled
        self._slots: dict[int, _EngineSlot] = {}  # those in use

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: RemoteError | None = None) -> None:
        """Give a run its answer: now, or when its slot has its turn."""
        run = self._runs.attempt(id, epoch)
        if run is None:
            return
        slot = self._slots.get(run.slot)
        if run.stop is not None or slot is None or not slot.is_waiting:
            self._give(run, HeldAnswer(step, data, error))
            return
        is_large = data is not None and len(data) > _LARGE_BYTES
        run.held.append(HeldAnswer(step, None if is_large else data, error, is_in_journal=is_large))
        if len(run.held) == 1:
            self._driver.send(WaitOver(now_s=time.monotonic(), id=id, epoch=epoch))

    def slot_waits(self, run: LiveRun, event: SlotWaits) -> None:
        slot = self._slots[run.slot]
        is_true_still = event.answers == {each.id: each.answers for each in slot.runs.values()}
        if is_true_still and not slot.is_waiting:
            slot.is_waiting = True
            self._driver.send(WaitBegan(now_s=time.monotonic(), id=run.id, epoch=run.epoch))

    def started(self, run: LiveRun, slot: int) -> None:
        """A run is being started in this slot: the slot computes."""
        run.slot, run.answers = slot, 0
        run.held.clear()
        entered = self._slots.setdefault(slot, _EngineSlot())
        entered.runs[run.id] = run
        entered.is_waiting = False

    def resume(self, command: ResumeRun) -> None:
        run = self._runs.attempt(command.id, command.epoch)
        if run is not None:
            self._slots[run.slot].is_waiting = False
            self._give_all(run, [HeldAnswer("", None, None)])  # its slot computes, even if it was given all before

    def stopping(self, run: LiveRun) -> None:
        self._give_all(run, [])

    def ended(self, run: LiveRun) -> None:
        run.held.clear()
        slot = self._slots.get(run.slot)
        if slot is not None and slot.runs.get(run.id) is run:
            del slot.runs[run.id]
            if not slot.runs:
                del self._slots[run.slot]

    def _give_all(self, run: LiveRun, where_none: list[HeldAnswer]) -> None:
        held, run.held = run.held, []
        for answer in held or where_none:
            self._give(run, answer)

    def _give(self, run: LiveRun, answer: HeldAnswer) -> None:
        run.answers += 1
        data = self._journaled(run.id, answer.step) if answer.is_in_journal else answer.data
        self._executor.put(run.id, run.epoch, answer.step, data, answer.error)
