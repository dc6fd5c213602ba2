"""`RunCommands` carries out the scheduler's commands about runs: start, stop, end, park.

    StartRun ──► journal "started" ──► executor.start(AgentRun with its journal so far) ──► AttemptStarted
    PreemptRun, KillRun ──► executor.signal                                    ──► AttemptEnded, through run_events
    EndRun ──► journal the end, or park it for another attempt ──► after COMMIT: callers who wait
    ParkRun ──► journal "sleeping", "receiving", "waiting" or "undecided" ──► after COMMIT: the backlog

Does not cover: deciding (scheduler), events of running attempts (run_events), runs on disk (backlog).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from headrace.agents.contract import AgentRun
from headrace.agents.engine.agent_requests import AgentRequests
from headrace.agents.engine.engine_parts import HERE, EngineParts
from headrace.agents.engine.live_runs import LiveRun, RunEnd
from headrace.agents.scheduler.events import (
    MEMORY_LACKED,
    SLOT_LACKED,
    AttemptEnded,
    AttemptStarted,
    EndRun,
    KillRun,
    ParkRun,
    PreemptRun,
    RecordShortage,
    SetPriority,
    StartRun,
    StopReason,
)
from headrace.agents.workers.agent_deaths import lost_in_words, set_aside_in_words
from headrace.executor import Signal
from headrace.exit_causes import ExitCause
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.store.engine_file.steps import StoredStep
from headrace.units import format_bytes

_NAME_LETTERS = 200
_TRAVELS_BYTES = 16_000  # larger results are fetched when the step is reached
_LEAST_PEAK_BYTES = 1_000_000
_FIRST_RETRY_S = 0.5
_AT_ONCE = (StopReason.EMERGENCY, StopReason.OTHERS_NEED_IT)
_FOR_GOOD = (StopReason.CANCELLED, StopReason.TIMED_OUT)
_NOT_FOR_MEMORY = (*_FOR_GOOD, StopReason.CLOSING)
_CUTS_EFFECTS = (ExitCause.CANCELLED, ExitCause.TIMED_OUT)
_LONGEST_RETRY_S = 60.0


class RunCommands:
    """`on_parked` is called with the state and the wake-up time of each run that was parked."""

    def __init__(self, parts: EngineParts, requests: AgentRequests) -> None:
        self.on_parked: Callable[[RunState, float], None] = lambda _state, _resume_at: None
        self.ended_count = 0
        self._parts = parts
        self._requests = requests
        self._runs = parts.runs
        self._writer = parts.writer
        self._writes = parts.writes
        self._measured: LiveRun | None = None  # the only run, where that tells what it takes

    def start(self, command: StartRun) -> None:
        run = self._runs.by_id[command.id]
        if command.deaths and run.ended is not None and not run.first_death:
            run.first_death = run.ended.reason or run.stop_reason
        run.epoch, run.ended, run.stop, run.is_starting = command.epoch, None, None, True
        run.is_stopped_for_memory = False
        run.host = command.host
        run.stop_reason, run.is_given_up = "", False
        self._measure_alone(run)
        run.used_bytes = run.peak_bytes = 0
        run.effects.clear()
        run.doubtful.clear()
        run.marks.clear()
        self._parts.answers.started(run, command.slot)
        self._writer.write(self._writes.runs.started(run.id, run.epoch, command.preemptions, command.deaths))
        arguments, run.arguments = run.arguments, None
        if arguments is not None:
            self._start_with(run, self._work(run, command, arguments))
        else:
            self._parts.spawn(self._start_again(run, command))

    def _measure_alone(self, run: LiveRun) -> None:
        """Inline, runs share one heap: what a run takes shows in the whole, for as long as no other runs beside it."""
        run.floor_bytes = None
        if self._parts.gauge.has_workers:
            return
        is_only = self._parts.driver.scheduler.slots_in_use == 1
        if self._measured is not None and not is_only:
            self._measured.floor_bytes = None
        if is_only and run.parent is None:
            run.floor_bytes = self._parts.gauge.read()
            self._measured = run

    async def _start_again(self, run: LiveRun, command: StartRun) -> None:
        await self._writer.flush()  # what the last attempt journaled is read back now
        file = self._parts.file
        row = file.runs.get(run.id)
        assert row is not None
        work = self._work(run, command, row.arguments)
        work.checkpoints, work.state = file.steps.checkpoint(run.id)
        for step in file.steps.of_run(run.id, _TRAVELS_BYTES):
            _add_step(work, step)
        self._start_with(run, work)

    def _work(self, run: LiveRun, command: StartRun, arguments: bytes) -> AgentRun:
        return AgentRun(
            run.id,
            command.epoch,
            run.kind.name,
            arguments,
            memory_bytes=command.memory_bytes,
            token=self._parts.file.token,
            slot=command.slot,
            host=command.host,
            now_s=self._parts.clock.now(),
            is_strict=self._parts.options.is_strict,
            priority=run.priority,
        )

    def _start_with(self, run: LiveRun, work: AgentRun) -> None:
        if run.epoch != work.epoch:
            return
        run.is_starting = False
        if run.stop is not None:  # stopped before it began
            self._parts.answers.ended(run)
            self._requests.attempt_ended(run, goes_on=True)
            report_exit(self._parts, run, ExitCause.PREEMPTED)
            return
        if self._parts.telemetry is not None:
            self._parts.telemetry.started(run.id, run.epoch, run.kind.name, run.parent)
        self._parts.executor.start(work)
        self._parts.driver.send(AttemptStarted(now_s=time.monotonic(), id=run.id, epoch=run.epoch))

    def stop(self, command: PreemptRun | KillRun) -> None:
        run = self._runs.by_id[command.id]
        self._record_stop(command, run)
        run.stop = Signal.PREEMPT if isinstance(command, PreemptRun) else Signal.KILL
        run.stop_sent_s = time.monotonic()
        run.is_stopped_for_memory |= _is_for_memory(command)  # or was before, and this one only hurries it
        run.stop_reason = _stop_reason(command, run.kind.timeout_s)
        run.is_given_up = command.why in _FOR_GOOD
        self._requests.stop(run)
        deadline_s = self._deadline_s(command)
        if deadline_s > 0:  # one that is killed at once does nothing with what it gets
            self._parts.answers.stopping(run)
        if not run.is_starting:
            self._parts.spawn(self._parts.executor.signal(run.id, command.epoch, run.stop, deadline_s))

    def _record_stop(self, command: PreemptRun | KillRun, run: LiveRun) -> None:
        what = "killed"
        if isinstance(command, PreemptRun):
            if run.stop is not None:
                return  # it was told before, and has a deadline now
            what = "preempted"
            self._writer.write(self._writes.runs.preempted(run.id))
        self._parts.log.record(what, self._why_stopped(command), run=command.id, reading=command.reading)

    def _why_stopped(self, command: PreemptRun | KillRun) -> str:
        """The reason, and for whom it makes room. What that run lacked stands before its name, which may be anything:
        whoever reads an event tells by its begin whether memory caused it.
        """
        why, whom = command.why, command.for_whom
        if whom is None or why is StopReason.WITH_PARENT:
            return why.value
        lacked = (SLOT_LACKED if whom.lacks_slot else MEMORY_LACKED) if why is StopReason.MAKES_ROOM else ""
        first = self._runs.by_id.get(whom.id)
        name = f" ({first.name[:_NAME_LETTERS]})" if first is not None else ""
        return f"{why.value}{lacked}: run {whom.id}{name}"

    def _deadline_s(self, command: PreemptRun | KillRun) -> float:
        if isinstance(command, PreemptRun) and command.is_patient:
            return math.inf
        is_at_once = isinstance(command, KillRun) and command.why in _AT_ONCE
        return 0.0 if is_at_once else self._parts.options.grace_s

    def end(self, command: EndRun) -> None:
        run = self._runs.by_id.pop(command.id)
        state, ended = RunState(command.cause.value), run.ended
        error = (ended.reason if ended is not None else "") or run.stop_reason
        if command.cause is ExitCause.OUT_OF_MEMORY:
            error = set_aside_in_words(run.first_death, error, is_tried_again=run.kind.oom_retry)
        if command.cause is ExitCause.LOST:
            error = lost_in_words(
                error,
                self._parts.options.queue.most_losses + 1,
                is_with_parent=run.stop is not None,
                is_with_warden=ended is not None and not ended.is_own,
            )
        if command.shortage is not None:
            error = shortage_in_words(command.shortage)
        if run.doubtful and command.cause in _CUTS_EFFECTS:
            error = self._name_cut_effects(run, command.cause, error)
        if command.cause is ExitCause.FAILED and run.failures + 1 < run.kind.max_attempts:
            self._retry(run, error)
            return
        if run.has_children:
            if command.cause in _CUTS_EFFECTS:
                self._cancel_parked_children(run.id)
            self._writer.write(self._writes.runs.orphaned(run.id))
        result = ended.result if ended is not None and state is RunState.DONE else None
        self._end(RunEnd(run.name, state, result, error, ended is not None and ended.is_endpoints), run.id)

    def _name_cut_effects(self, run: LiveRun, cause: ExitCause, error: str) -> str:
        """Record the side effects that ended with the run, since nobody will be asked about them; return its error."""
        steps = ", ".join(repr(step) for step in sorted(run.doubtful))
        words = f"it ended inside the side effect of step {steps}, which may or may not have happened"
        self._parts.log.record("undecided", f"{cause.value}: {words}", run=run.id)
        return f"{error}; {words}" if error else words

    def end_unstarted(self, id: int, name: str, state: RunState) -> None:
        """End a run that the scheduler does not know: cancelled on disk, or larger than the budget."""
        self._writer.write(self._writes.runs.orphaned(id))
        self._end(RunEnd(name, state, None, ""), id)

    def _cancel_parked_children(self, id: int) -> None:
        """Those that the scheduler knows it cancels itself."""
        runs = self._parts.file.runs
        for child in runs.unfinished_children(id):
            if not self._runs.is_ahead_of_disk(child) and (row := runs.get(child)) is not None:
                self._cancel_parked_children(child)
                self.end_unstarted(child, row.name, RunState.CANCELLED)

    def _end(self, end: RunEnd, id: int) -> None:
        self.ended_count += 1
        self._requests.run_ended(id)
        if end.state in FAILED_STATES:
            first_line = end.error.partition("\n")[0]
            words = first_line if end.state is RunState.FAILED else f"{end.state.value}: {first_line}"
            self._parts.log.record("failed", words.removesuffix(": "), run=id)
        self._writer.write(self._writes.runs.ended(id, end.state, end.result, end.error, time.time()))
        self._writer.after_commit(self._runs.leave(id))
        self._writer.after_commit(partial(self._parts.listeners.ended, id, end))

    def _retry(self, run: LiveRun, error: str) -> None:
        failures = run.failures + 1
        wait_s = min(_FIRST_RETRY_S * 2 ** (failures - 1), _LONGEST_RETRY_S)
        first_line = error.partition("\n")[0]
        self._parts.log.record("retried", f"attempt {failures} failed: {first_line}", run=run.id)
        self._writer.write(self._writes.runs.failed_attempt(run.id, failures))
        anew = ParkRun(id=run.id, epoch=run.epoch, preemptions=0, deaths=0, executed_s=0.0)
        self._park(run, RunState.SLEEPING, self._parts.clock.now() + wait_s, anew, error)

    def park(self, command: ParkRun) -> None:
        run = self._runs.by_id.pop(command.id)
        ended = run.ended
        state, resume_at, error = RunState.WAITING, 0.0, ""
        if ended is not None and ended.cause is ExitCause.UNDECIDED:
            state, error = RunState.UNDECIDED, ended.step
            self._parts.log.record("undecided", f"step {ended.step!r} has started and not finished", run=run.id)
            end = RunEnd(run.name, state, None, error)
            self._writer.after_commit(partial(self._parts.listeners.ended, run.id, end))
        elif ended is not None and ended.cause is ExitCause.PARKED and ended.resume_at is not None:
            state, resume_at = RunState.SLEEPING, ended.resume_at
        elif ended is not None and ended.cause is ExitCause.PARKED and not run.has_mail:
            state = RunState.RECEIVING
        self._park(run, state, resume_at, command, error)

    def set_priority(self, command: SetPriority) -> None:
        """The caller's submission that raised it has written it."""
        run = self._runs.by_id[command.id]
        run.priority = command.priority
        self._parts.executor.set_priority(run.id, command.epoch, command.priority)

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
        self._writer.after_commit(self._runs.leave(run.id))
        self._writer.after_commit(partial(self.on_parked, state, resume_at))


def report_exit(parts: EngineParts, run: LiveRun, cause: ExitCause) -> None:
    """Send the scheduler how the run's attempt ended, and the memory that it took."""
    event = AttemptEnded(
        now_s=time.monotonic(),
        id=run.id,
        epoch=run.epoch,
        cause=cause,
        peak_bytes=_peak_bytes(parts, run),
        limit_bytes=run.ended.limit_bytes if run.ended is not None else 0,
        is_own=run.ended is None or run.ended.is_own,
        is_endpoints=run.ended is not None and run.ended.is_endpoints,
    )
    parts.driver.send(event)


def _peak_bytes(parts: EngineParts, run: LiveRun) -> int:
    """Inline, a run's own peak is known only where no other ran beside it."""
    if run.floor_bytes is not None:
        return max(run.peak_bytes, parts.gauge.read() - run.floor_bytes, _LEAST_PEAK_BYTES)
    return max(run.peak_bytes, _LEAST_PEAK_BYTES) if parts.gauge.has_workers else 0


def shortage_in_words(short: RecordShortage, waits_s: float | None = None) -> str:
    """Say what memory a run lacks even beside nothing else: one that waits for it, or has been given up."""
    needs, room, best = (format_bytes(n) for n in (short.needs_bytes, short.room_bytes, short.best_room_bytes))
    budget = format_bytes(short.reading.budget_bytes)
    host = short.reading.host
    where, there, whose = ("", "here", "this process") if host == HERE else (f" on {host}", "there", "its host process")
    facts = (
        f"it needs {needs}, and of the budget of {budget}{where} a run can have {room} now, beside nothing else: the"
        f" rest is in use outside of runs, by {whose} and what it started ({best} could be had before)"
    )
    fix = f"Free memory {there}, declare less (memory= of its @task), or give the engine more memory="
    if waits_s is None:
        return f"{facts}. {fix}"
    return f"{facts}. It starts when there is enough, and fails after {waits_s:g} s without. {fix}"


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


def _is_for_memory(command: PreemptRun | KillRun) -> bool:
    lacks_slot = command.for_whom is not None and command.for_whom.lacks_slot
    return command.why not in _NOT_FOR_MEMORY and not (command.why is StopReason.MAKES_ROOM and lacks_slot)


def _stop_reason(command: PreemptRun | KillRun, timeout_s: float | None) -> str:
    """Why the run was stopped, in words that become its error if it ends by this; empty where it goes on later."""
    reading = command.reading
    if command.why is StopReason.TIMED_OUT and timeout_s is not None:
        return f"it took longer than the {timeout_s:g} s that timeout_s= of its @task allows"
    if command.why is StopReason.EMERGENCY and reading is not None:
        used, budget = format_bytes(reading.used_bytes), format_bytes(reading.budget_bytes)
        return f"killed when all together used {used} of {budget}. Have it use less, or give the engine more memory="
    return ""
