"""The life of agent runs in the engine: accepted, started, journaled, ended, parked, brought back.

Covers: acting on what the scheduler decides about runs, and telling it what executors report.
Does not cover: deciding (schedule), running (execute), runs that wait on disk (agents.engine.backlog).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, assert_never

from headrace.agents import contract
from headrace.agents.contract import AgentEvent, AgentExecutor, AgentRun, RemoteError
from headrace.agents.engine.agent_requests import AgentRequests
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.event_log import EventLog
from headrace.agents.engine.live_runs import Listeners, LiveRun, RunEnd
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    EffectEnded,
    EffectStarting,
    EndRun,
    KillRun,
    ParkRun,
    PreemptRun,
    StartRun,
    StepJournaled,
    StopReason,
)
from headrace.agents.task import TaskKind
from headrace.executor import Signal
from headrace.exit_causes import ExitCause
from headrace.memory.gauge import TreeGauge
from headrace.memory.reclaiming import reclaim_memory
from headrace.priority import Priority
from headrace.steady_clock import SteadyClock
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.store.engine_file.engine_schema import Effect, RunState
from headrace.store.engine_file.steps import StoredStep
from headrace.threads.crossing import Filled
from headrace.threads.traceback_timer import frames_in
from headrace.units import format_bytes

_log = logging.getLogger("headrace")
_TRAVELS_BYTES = 16_000  # larger results are fetched when the step is reached
_LEAST_PEAK_BYTES = 1_000_000
_FIRST_RETRY_S = 0.5
_LONGEST_RETRY_S = 60.0


class AgentRuns:
    """`spawn` keeps a coroutine alive on the loop; `on_parked` is told of runs that come back by themselves."""

    def __init__(
        self,
        file: EngineFile,
        driver: SchedulerDriver,
        writer: EngineWriter,
        writes: Writes,
        log: EventLog,
        executor: AgentExecutor,
        listeners: Listeners,
        requests: AgentRequests,
        gauge: TreeGauge,
        clock: SteadyClock,
        grace_s: float,
        is_strict: bool,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.live: dict[int, LiveRun] = {}  # bounded by the queue's depth and the slots
        self.on_child: Callable[[LiveRun, contract.ChildWanted], None] = lambda _run, _wanted: None
        self.on_parked: Callable[[RunState, float], None] = lambda _state, _resume_at: None
        self.ended_count = 0
        self.steps_count = 0
        self._leaving: set[int] = set()  # ended or parked, and not yet so on disk
        self._file = file
        self._driver = driver
        self._writer = writer
        self._writes = writes
        self._log = log
        self._executor = executor
        self._listeners = listeners
        self._requests = requests
        self._gauge = gauge
        self._clock = clock
        self._grace_s = grace_s
        self._is_strict = is_strict
        self._spawn = spawn

    # What the scheduler asks for.

    def start(self, command: StartRun) -> None:
        run = self.live[command.id]
        run.epoch, run.ended, run.stop, run.is_starting = command.epoch, None, None, True
        run.stop_reason = ""
        run.floor_bytes = self._gauge.read() if command.is_alone and not self._gauge.has_workers else None
        run.used_bytes = run.peak_bytes = 0
        run.effects.clear()
        run.marks.clear()
        self._writer.write(self._writes.runs.started(run.id, run.epoch, command.preemptions, command.deaths))
        arguments, run.arguments = run.arguments, None
        if arguments is not None:
            self._start_with(run, self._work(run, command, arguments))
        else:
            self._spawn(self._start_again(run, command))

    async def _start_again(self, run: LiveRun, command: StartRun) -> None:
        await self._writer.flush()  # what the last attempt journaled is read back now
        row = self._file.runs.get(run.id)
        assert row is not None
        work = self._work(run, command, row.arguments)
        work.checkpoints, work.state = self._file.steps.checkpoint(run.id)
        for step in self._file.steps.of_run(run.id, _TRAVELS_BYTES):
            _add_step(work, step)
        self._start_with(run, work)

    def _work(self, run: LiveRun, command: StartRun, arguments: bytes) -> AgentRun:
        return AgentRun(
            run.id,
            command.epoch,
            run.kind.name,
            arguments,
            memory_bytes=command.memory_bytes,
            token=self._file.token,
            slot=command.slot,
            now_s=self._clock.now(),
            is_strict=self._is_strict,
        )

    def _start_with(self, run: LiveRun, work: AgentRun) -> None:
        if run.epoch != work.epoch:
            return
        run.is_starting = False
        if run.stop is not None:  # told to stop before it began
            self._report(run, ExitCause.PREEMPTED)
            return
        self._executor.start(work)
        self._driver.tell(AttemptStarted(now_s=time.monotonic(), id=run.id, epoch=run.epoch))

    def stop(self, command: PreemptRun | KillRun) -> None:
        what = "preempted" if isinstance(command, PreemptRun) else "killed"
        self._log.record(what, command.why.value, run=command.id, reading=command.reading)
        run = self.live[command.id]
        run.stop = Signal.PREEMPT if isinstance(command, PreemptRun) else Signal.KILL
        run.stop_s = time.monotonic()
        run.stop_reason = _stop_reason(command, run.kind.timeout_s)
        self._requests.stop(run)
        if not run.is_starting:
            deadline_s = 0.0 if command.why is StopReason.EMERGENCY else self._grace_s
            self._spawn(self._executor.signal(run.id, command.epoch, run.stop, deadline_s))

    def settle(self, command: EndRun) -> None:
        run = self.live.pop(command.id)
        state, ended = RunState(command.cause.value), run.ended
        error = (ended.reason if ended is not None else "") or run.stop_reason
        if command.cause is ExitCause.FAILED and run.failures + 1 < run.kind.max_attempts:
            self._retry(run, error)
            return
        if run.has_children:
            self._writer.write(self._writes.runs.orphaned(run.id))
        result = ended.result if ended is not None and state is RunState.DONE else None
        self._end(RunEnd(run.name, state, result, error), run.id)

    def end_unstarted(self, id: int, name: str, state: RunState) -> None:
        """One that the scheduler does not know: cancelled on disk, or larger than the budget."""
        self._writer.write(self._writes.runs.orphaned(id))
        self._end(RunEnd(name, state, None, ""), id)

    def _end(self, end: RunEnd, id: int) -> None:
        self.ended_count += 1
        self._writer.write(self._writes.runs.ended(id, end.state, end.result, end.error, time.time()))
        self._leave(id)
        self._writer.after_commit(partial(self._listeners.ended, id, end))

    def _retry(self, run: LiveRun, error: str) -> None:
        failures = run.failures + 1
        wait_s = min(_FIRST_RETRY_S * 2 ** (failures - 1), _LONGEST_RETRY_S)
        self._log.record("retried", f"attempt {failures} failed: {error.partition(chr(10))[0]}", run=run.id)
        self._writer.write(self._writes.runs.failed_attempt(run.id, failures))
        anew = ParkRun(id=run.id, epoch=run.epoch, preemptions=0, deaths=0, executed_s=0.0)
        self._park(run, RunState.SLEEPING, self._clock.now() + wait_s, anew, error)

    def park(self, command: ParkRun) -> None:
        run = self.live.pop(command.id)
        ended = run.ended
        state, resume_at, error = RunState.WAITING, 0.0, ""
        if ended is not None and ended.cause is ExitCause.UNDECIDED:
            state, error = RunState.UNDECIDED, ended.step
            self._log.record("undecided", f"step {ended.step!r} has started and not finished", run=run.id)
            end = RunEnd(run.name, state, None, error)
            self._writer.after_commit(partial(self._listeners.ended, run.id, end))
        elif ended is not None and ended.cause is ExitCause.PARKED and ended.resume_at is not None:
            state, resume_at = RunState.SLEEPING, ended.resume_at
        elif ended is not None and ended.cause is ExitCause.PARKED and not run.has_mail:
            state = RunState.RECEIVING
        self._park(run, state, resume_at, command, error)

    def _park(self, run: LiveRun, state: RunState, resume_at: float, kept: ParkRun, error: str) -> None:
        writes = self._writes.runs.parked(
            run.id,
            state,
            resume_at=resume_at,
            preemptions=kept.preemptions,
            deaths=kept.deaths,
            executed_s=kept.executed_s,
            error=error,
        )
        self._writer.write(writes)
        self._leave(run.id)
        self._writer.after_commit(partial(self.on_parked, state, resume_at))

    def _leave(self, id: int) -> None:
        """Until that is on disk, the disk shows the run as it was before."""
        self._leaving.add(id)
        self._writer.after_commit(partial(self._leaving.discard, id))

    # What executors report.

    def took(self, event: AgentEvent) -> None:
        run = self.live.get(event.id)
        if run is None or run.epoch != event.epoch or run.ended is not None:
            self._log.record("refused", "it came from an attempt that was replaced or has ended", run=event.id)
            return
        now_s = time.monotonic()
        match event:
            case contract.StepDone():
                self._journal_step(run, event.step, event.result, event.mark)
            case contract.StepDiffers():
                self._step_differs(run, event)
            case contract.StepStarting():
                effect = Effect.OF_A_PROGRAM if event.runs_program else Effect.OF_A_FUNCTION
                writes = self._writes.steps.starting(run.id, run.epoch, event.step, effect, time.time(), event.mark)
                self._writer.write(writes)
                run.effects.add(event.step)
                self._driver.tell(EffectStarting(now_s=now_s, id=run.id, epoch=run.epoch))
            case contract.StepRaised():
                self._effect_ended(run, run.epoch, event.step)
            case contract.Checkpoint():
                writes = self._writes.steps.checkpoint(run.id, run.epoch, event.number, event.state, time.time())
                self._writer.write(writes)
                self._after_step(run)
            case contract.ResultWanted():
                self._requests.fetch(run, event)
            case contract.Receiving():
                self._requests.receive(run, event)
            case contract.AskWanted():
                run.marks[event.step] = event.mark
                self._requests.ask(run, event, self._journal_step)
            case contract.CommandWanted():
                run.marks[event.step] = event.mark
                self._requests.run_command(run, event, self._journal_step)
            case contract.ChildWanted():
                run.has_children = True
                run.marks[event.step] = event.mark
                self.on_child(run, event)
            case contract.Emitted():
                self._emitted(run, event.payload)
            case contract.RunEnded():
                self._ended(run, event)
            case contract.MemoryUsed():
                run.used_bytes = event.memory_bytes
                run.peak_bytes = max(run.peak_bytes, event.memory_bytes)
            case contract.LoopStuck():
                stack = frames_in(event.stack) or "(its stack cannot be had)"
                told = f"for {event.seconds:.1f} s so far, in a worker of {run.kind.name!r}, by:\n{stack}"
                self._log.record("loop stuck", told, run=run.id)
            case _:
                assert_never(event)

    def _journal_step(self, run: LiveRun, step: str, result: bytes, mark: bytes = b"") -> None:
        self.steps_count += 1
        mark = mark or run.marks.pop(step, b"")
        self._writer.write(self._writes.steps.done(run.id, run.epoch, step, result, time.time(), mark))
        if step in run.effects:
            self._writer.after_commit(partial(self._effect_ended, run, run.epoch, step))
        self._after_step(run)

    def _step_differs(self, run: LiveRun, event: contract.StepDiffers) -> None:
        told = f"step {event.step!r}: {event.what}"
        self._log.record("step changed", told, run=run.id)
        _log.warning("%s: run %d (%s), %s", self._file.path, run.id, run.name, told)

    def _effect_ended(self, run: LiveRun, epoch: int, step: str) -> None:
        if run.epoch == epoch and step in run.effects:
            run.effects.discard(step)
            self._driver.tell(EffectEnded(now_s=time.monotonic(), id=run.id, epoch=epoch))

    def _after_step(self, run: LiveRun) -> None:
        told = StepJournaled(now_s=time.monotonic(), id=run.id, epoch=run.epoch)
        self._writer.after_commit(partial(self._driver.tell, told))

    def _ended(self, run: LiveRun, event: contract.RunEnded) -> None:
        run.ended = event
        self._requests.forget(run)
        if event.cause is ExitCause.LOST and event.reason:
            self._log.record("lost", event.reason, run=run.id)
        elif event.cause is ExitCause.OUT_OF_MEMORY:
            self._log.record("out of memory", event.reason, run=run.id)
        if event.cause in (ExitCause.PREEMPTED, ExitCause.LOST) and run.stop is not None:
            self._reclaim(run)
        self._report(run, event.cause)

    def _reclaim(self, run: LiveRun) -> None:
        """What it held is free now, and the next reading should show it: all large blocks, and of small ones what
        Python gives back.
        """
        before = self._gauge.read()
        reclaim_memory()
        used = self._gauge.read()
        took_ms = (time.monotonic() - run.stop_s) * 1000
        told = (
            f"{took_ms:.0f} ms after it was told to stop; {format_bytes(max(0, before - used))} given back after that"
        )
        self._log.record("stopped", f"{told}, {format_bytes(used)} in use", run=run.id)

    def _report(self, run: LiveRun, cause: ExitCause) -> None:
        told = AttemptEnded(
            now_s=time.monotonic(), id=run.id, epoch=run.epoch, cause=cause, peak_bytes=self._peak_bytes(run)
        )
        self._driver.tell(told)

    def _peak_bytes(self, run: LiveRun) -> int:
        """What it took; inline nobody can tell two apart, and it is known only where it ran alone."""
        if run.floor_bytes is not None:
            return max(run.peak_bytes, self._gauge.read() - run.floor_bytes, _LEAST_PEAK_BYTES)
        return max(run.peak_bytes, _LEAST_PEAK_BYTES) if self._gauge.has_workers else 0

    def read(self, used_bytes: int) -> tuple[tuple[int, int], ...]:
        """A memory reading, for those that are measured by it. Returns what each run uses, where that is known."""
        for run in self.live.values():
            if run.floor_bytes is not None:
                run.peak_bytes = max(run.peak_bytes, used_bytes - run.floor_bytes)
        return tuple((run.id, run.used_bytes) for run in self.live.values() if run.used_bytes)

    def watch(self, id: int, reply: Filled[RunEnd]) -> None:
        """`reply` gets the end of a run, at once where it has ended."""
        row = None if self.knows(id) else self._file.runs.get(id)
        if row is not None and (row.state.is_final or row.state is RunState.UNDECIDED):
            reply.set_result(RunEnd(row.name, row.state, None, row.error))
        else:
            self._listeners.wait(id, reply)

    def knows(self, id: int) -> bool:
        """Whether what the disk shows of it is not the latest."""
        return id in self.live or id in self._leaving

    def revive(
        self,
        id: int,
        name: str,
        kind: TaskKind,
        priority: Priority,
        failures: int,
        arguments: bytes | None,
        parent: int | None,
    ) -> None:
        """The scheduler is about to know it."""
        self.live[id] = LiveRun(id, name, kind, priority, failures, arguments, parent)

    def _emitted(self, run: LiveRun | None, payload: bytes) -> None:
        """Nobody holds a child: who listens to the run that wants it hears it too."""
        while run is not None:
            self._listeners.emitted(run.id, payload)
            run = self.live.get(run.parent) if run.parent is not None else None

    def child_ended(self, parent: int, epoch: int, step: str, child: int, end: RunEnd) -> None:
        """Its result becomes the step's, if whoever wanted it is still there."""
        run = self.live.get(parent)
        if run is None or run.epoch != epoch or run.ended is not None:
            return
        if end.state is not RunState.DONE:
            self._executor.put(parent, epoch, step, None, RemoteError("RunFailed", str(end.failure())))
            return
        result = end.result if end.result is not None else self._file.runs.result(child)
        mark = run.marks.pop(step, b"")
        self._writer.write(self._writes.steps.done(parent, epoch, step, result or b"null", time.time(), mark))
        self._after_step(run)
        self._writer.after_commit(partial(self._executor.put, parent, epoch, step, result))

    def child_refused(self, parent: int, epoch: int, step: str, error: BaseException) -> None:
        self._executor.put(parent, epoch, step, None, RemoteError("RunFailed", str(error)))


def _add_step(work: AgentRun, step: StoredStep) -> None:
    if step.is_finished:
        work.steps[step.name] = step.result
    elif step.is_started:
        work.started.append(step.name)
    else:
        work.again.append(step.name)
        return
    if step.mark:
        work.marks[step.name] = step.mark
    if step.has_side_effect:
        work.effects.append(step.name)


def _stop_reason(command: PreemptRun | KillRun, timeout_s: float | None) -> str:
    """Why it was stopped, for whoever finds that to be its end."""
    reading = command.reading
    if command.why is StopReason.TIMED_OUT and timeout_s is not None:
        return f"it took longer than the {timeout_s:g} s that timeout_s= of its @task allows"
    if command.why is StopReason.EMERGENCY and reading is not None:
        used, budget = format_bytes(reading.used_bytes), format_bytes(reading.budget_bytes)
        return f"killed when all together used {used} of {budget}. Have it use less, or give the engine more memory="
    return ""
