"""`RunEvents` takes the events that executors report about running attempts: it journals them and tells the scheduler.

    executor event                           journaled as            the scheduler gets
    StepStarting, StepRaised                 a step's start          EffectStarting, EffectEnded
    StepDone, Checkpoint                     a step, a checkpoint    StepJournaled, after COMMIT
    Ended                                    by run_commands         AttemptEnded
    requests (results, messages, replies,    the step's result,      StepJournaled, after COMMIT
      programs, children)                    then the answer
    SlotWaits, SlotWanted                    nothing                 WaitBegan, WaitOver, by held_answers
    NearlyFull                               nothing                 MemoryWanted
    Emitted, Reading, LoopStuck, StepDiffers passed on or recorded

An event of an attempt that was replaced or has ended is refused. Does not cover: answering requests (agent_requests).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import assert_never

from headrace.agents import contract
from headrace.agents.contract import AgentEvent, RemoteError
from headrace.agents.engine.agent_requests import AgentRequests, CommandsOfHost
from headrace.agents.engine.engine_parts import HERE, EngineParts
from headrace.agents.engine.live_runs import LiveRun, RunEnd
from headrace.agents.engine.run_commands import report_exit
from headrace.agents.model_calls import AgentCalls
from headrace.agents.scheduler.events import EffectEnded, EffectStarting, MemoryWanted, StepJournaled
from headrace.exit_causes import ExitCause
from headrace.memory.reclaiming import reclaim_memory
from headrace.store.engine_file.engine_schema import Effect, RunState
from headrace.threads.crossing import CallbackPromise, Promise
from headrace.threads.stack_dump import frames_in
from headrace.units import format_bytes

# How an attempt may end after which the run is called again: what it has asked models for is not asked twice.
_GOES_ON = {ExitCause.PREEMPTED, ExitCause.LOST, ExitCause.OUT_OF_MEMORY, ExitCause.PARKED, ExitCause.UNDECIDED}

_logger = logging.getLogger("headrace")


def _no_children(_parent: LiveRun, _wanted: contract.ChildWanted, _accepted: Promise[int]) -> None:
    raise AssertionError("set by the loop before anything runs")


class RunEvents:
    """`submit_child` finds or submits the run that a ChildWanted asks for, and replies with its number. `commands` runs
    the programs of a host's runs.
    """

    def __init__(self, parts: EngineParts, calls: AgentCalls, commands: CommandsOfHost) -> None:
        self.submit_child: Callable[[LiveRun, contract.ChildWanted, Promise[int]], None] = _no_children
        self.requests = AgentRequests(parts, calls, commands, self._journal_answer)
        self.steps_count = 0
        self._parts = parts
        self._runs = parts.runs
        self._log = parts.log
        self._writer = parts.writer
        self._writes = parts.writes

    def take(self, event: AgentEvent) -> None:
        run = self._runs.attempt(event.id, event.epoch)
        if run is None:
            self._log.record("refused", "it came from an attempt that was replaced or has ended", run=event.id)
            return
        match event:
            case contract.StepDone():
                self._journal_step(run, event.step, event.result, event.mark)
                self._export_step(run, event)
            case contract.StepDiffers():
                self._step_differs(run, event)
            case contract.StepStarting():
                self._effect_starting(run, event)
            case contract.StepRaised():
                if run.stop is None:
                    run.doubtful.discard(event.step)
                self._effect_ended(run, run.epoch, event.step)
                self._export_step(run, event)
            case contract.Checkpoint():
                writes = self._writes.steps.checkpoint(run.id, run.epoch, event.number, event.state, time.time())
                self._writer.write(writes)
                self._after_step(run)
            case contract.ResultWanted():
                self.requests.fetch(run, event)
            case contract.Receiving():
                self.requests.receive(run, event)
            case contract.AskWanted():
                self.requests.ask(run, event)
            case contract.CommandWanted():
                self.requests.run_command(run, event)
            case contract.ChildWanted():
                self._child_wanted(run, event)
            case contract.SlotWaits():
                self._parts.answers.slot_waits(run, event)
            case contract.SlotWanted():
                self._parts.answers.put(run.id, run.epoch, event.step, None)
            case contract.Emitted():
                self._emitted(run, event.payload)
            case contract.RunEnded():
                self._ended(run, event)
            case contract.MemoryUsed():
                run.used_bytes = event.memory_bytes
                run.peak_bytes = max(run.peak_bytes, event.memory_bytes)
            case contract.NearlyFull():
                now_s, is_urgent = time.monotonic(), event.is_urgent
                self._parts.driver.send(MemoryWanted(now_s=now_s, id=run.id, epoch=run.epoch, is_urgent=is_urgent))
            case contract.LoopStuck():
                stack = frames_in(event.stack) or "(its stack cannot be had)"
                words = f"for {event.seconds:.1f} s so far, in a worker of {run.kind.name!r}, by:\n{stack}"
                self._log.record("loop stuck", words, run=run.id)
            case _:
                assert_never(event)

    def watch(self, id: int, reply: Promise[RunEnd]) -> None:
        """`reply` gets the end of a run, at once where it has ended."""
        row = None if self._runs.is_ahead_of_disk(id) else self._parts.file.runs.get(id)
        if row is not None and (row.state.is_final or row.state is RunState.UNDECIDED):
            reply.set_result(RunEnd(row.name, row.state, None, row.error))
        else:
            self._parts.listeners.wait(id, reply)

    # Steps and side effects.

    def _journal_answer(self, id: int, epoch: int, step: str, result: bytes, mark: bytes) -> None:
        run = self._runs.attempt(id, epoch)
        if run is not None:
            self._journal_step(run, step, result, mark)
        else:  # the attempt has ended: written unless another has begun
            self.steps_count += 1
            self._writer.write(self._writes.steps.done(id, epoch, step, result, time.time(), mark))

    def _journal_step(self, run: LiveRun, step: str, result: bytes, mark: bytes) -> None:
        self.steps_count += 1
        self._writer.write(self._writes.steps.done(run.id, run.epoch, step, result, time.time(), mark))
        if step in run.effects:
            run.doubtful.discard(step)
            self._writer.after_commit(partial(self._effect_ended, run, run.epoch, step))
        self._after_step(run)

    def _after_step(self, run: LiveRun) -> None:
        event = StepJournaled(now_s=time.monotonic(), id=run.id, epoch=run.epoch)
        self._writer.after_commit(partial(self._parts.driver.send, event))

    def _export_step(self, run: LiveRun, event: contract.StepDone | contract.StepRaised) -> None:
        telemetry = self._parts.telemetry
        if telemetry is not None and event.took_s is not None:
            error = "raised" if isinstance(event, contract.StepRaised) else ""
            telemetry.stepped(run.id, event.step, event.took_s, error=error)

    def _step_differs(self, run: LiveRun, event: contract.StepDiffers) -> None:
        words = f"step {event.step!r}: {event.what}"
        self._log.record("step changed", words, run=run.id)
        _logger.warning("%s: run %d (%s), %s", self._parts.file.path, run.id, run.name, words)

    def _effect_starting(self, run: LiveRun, event: contract.StepStarting) -> None:
        effect = Effect.OF_A_PROGRAM if event.runs_program else Effect.OF_A_FUNCTION
        self._writer.write(self._writes.steps.starting(run.id, run.epoch, event.step, effect, time.time(), event.mark))
        run.effects.add(event.step)
        run.doubtful.add(event.step)
        self._parts.driver.send(EffectStarting(now_s=time.monotonic(), id=run.id, epoch=run.epoch))

    def _effect_ended(self, run: LiveRun, epoch: int, step: str) -> None:
        if run.epoch == epoch and step in run.effects:
            run.effects.discard(step)
            self._parts.driver.send(EffectEnded(now_s=time.monotonic(), id=run.id, epoch=epoch))

    def _emitted(self, run: LiveRun | None, payload: bytes) -> None:
        """Callers have no handle of a child: those who listen to its parent get its events too."""
        if run is not None:
            self._parts.emitted.keep(time.time(), run.id, payload)
        while run is not None:
            self._parts.listeners.emitted(run.id, payload)
            run = self._runs.by_id.get(run.parent) if run.parent is not None else None

    # Ends.

    def host_lost(self, host: str, reason: str) -> None:
        """Note that all attempts on a host are over; the scheduler hears it of the host, for all of them."""
        for run in list(self._runs.by_id.values()):
            if run.host == host and run.epoch and run.ended is None:
                words = f"the node {host} is lost: {reason}"
                lost = contract.RunEnded(id=run.id, epoch=run.epoch, seq=0, cause=ExitCause.LOST, reason=words)
                self._note_end(run, lost)
                self._log.record("lost", words, run=run.id)

    def _note_end(self, run: LiveRun, event: contract.RunEnded) -> None:
        run.ended = event
        if self._parts.telemetry is not None:
            self._parts.telemetry.ended(run.id, event.cause)
        self.requests.attempt_ended(run, goes_on=event.cause in _GOES_ON and not run.is_given_up)
        self._parts.answers.ended(run)

    def _ended(self, run: LiveRun, event: contract.RunEnded) -> None:
        self._note_end(run, event)
        is_kinds = event.cause is ExitCause.FAILED and not event.is_endpoints
        if is_kinds or (event.cause is ExitCause.LOST and run.stop is None and event.is_own):
            self._runs.last_failures[run.kind.name] = (run.name, event.reason)
        if event.cause is ExitCause.LOST and event.reason:
            self._log.record("lost", event.reason, run=run.id)
        elif event.cause is ExitCause.OUT_OF_MEMORY:
            self._log.record("out of memory", event.reason, run=run.id)
        elif event.cause is ExitCause.PREEMPTED and event.reason:
            self._log.record("put off", event.reason, run=run.id)
        if event.cause in (ExitCause.PREEMPTED, ExitCause.LOST) and run.stop is not None:
            self._record_stopped(run)
        report_exit(self._parts, run, event.cause)

    def _record_stopped(self, run: LiveRun) -> None:
        """Note how long a run took to stop. Where it was stopped for its memory, return that before the next reading:
        all large blocks, and of small objects what Python gives back.
        """
        took_ms = (time.monotonic() - run.stop_sent_s) * 1000
        told = f"{took_ms:.0f} ms after it was told to stop"
        if run.host != HERE:  # its memory was its node's
            self._log.record("stopped", f"{told}, on {run.host}", run=run.id)
            return
        gauge = self._parts.gauge
        used, freed = gauge.read(), ""
        # Not for every stop: collecting garbage stops the whole program, for seconds where that holds many objects.
        if run.is_stopped_for_memory:
            before = used
            reclaim_memory()
            used = gauge.read()
            freed = f" {format_bytes(max(0, before - used))} given back after that,"
        self._log.record("stopped", f"{told};{freed} {format_bytes(used)} in use", run=run.id)

    # Children.

    def _child_wanted(self, run: LiveRun, event: contract.ChildWanted) -> None:
        run.has_children = True
        run.marks[event.step] = event.mark
        child_of = (run.id, run.epoch, event.step)
        accepted = CallbackPromise[int](partial(self._child_accepted, child_of), partial(self._child_refused, child_of))
        self.submit_child(run, event, accepted)

    def _child_accepted(self, child_of: tuple[int, int, str], child: int) -> None:
        self.watch(child, CallbackPromise[RunEnd](partial(self._child_ended, child_of, child), lambda _: None))

    def _child_refused(self, child_of: tuple[int, int, str], error: BaseException) -> None:
        run = self._runs.attempt(child_of[0], child_of[1])
        name = run.name if run is not None else ""
        refused = RemoteError("RunFailed", str(error), run_name=name, state="was refused", reason=str(error))
        self._parts.answers.put(*child_of, None, refused)

    def _child_ended(self, child_of: tuple[int, int, str], child: int, end: RunEnd) -> None:
        """Journal the child's result as the parent's step, if the attempt that asked for it still goes on."""
        parent, epoch, step = child_of
        run = self._runs.attempt(parent, epoch)
        if run is None:
            return
        if end.state is not RunState.DONE:
            self._parts.answers.put(*child_of, None, _as_remote_error(end))
            return
        result = end.result if end.result is not None else self._parts.file.runs.result(child)
        mark = run.marks.pop(step, b"")
        self._writer.write(self._writes.steps.done(parent, epoch, step, result or b"null", time.time(), mark))
        self._after_step(run)
        self._writer.after_commit(partial(self._parts.answers.put, *child_of, result))


def _as_remote_error(end: RunEnd) -> RemoteError:
    """The failure of a child, as its parent gets it: with the fields that a caller's RunFailed has."""
    failure = end.failure()
    return RemoteError(
        type(failure).__name__,
        failure.message,
        failure.fix,
        run_name=end.name,
        state=failure.state,
        reason=end.error,
        is_endpoints=end.is_endpoints,
    )
