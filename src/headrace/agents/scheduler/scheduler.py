"""`Scheduler`: a pure state machine that takes events and returns commands. Covers: which module handles which event.

The same events in the same order give the same commands: time comes with the events, and nothing here waits, reads or
draws random numbers. `events` has the tables of both sides; the package's docstring names the modules that decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from headrace.agents.scheduler import lifecycle
from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    Cancelled,
    Closing,
    EffectEnded,
    EffectStarting,
    HeartbeatAdded,
    HeartbeatEnded,
    HeartbeatRemoved,
    HostJoined,
    HostLost,
    MemoryMeasured,
    MemoryReading,
    MemoryWanted,
    PriorityRaised,
    SchedulerCommand,
    SchedulerEvent,
    StepJournaled,
    StopReason,
    Submitted,
    SurveyClosed,
    SurveyOpened,
    SurveyUsage,
    Tick,
    WaitBegan,
    WaitOver,
)
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.reservations import KindSize
from headrace.agents.scheduler.hosts.survey_permits import HostSurveys
from headrace.agents.scheduler.placing import dispatch
from headrace.agents.scheduler.relief import make_memory, take_reading
from headrace.agents.scheduler.scheduler_state import FINAL, SchedulerState
from headrace.agents.scheduler.snapshot import Snapshot, snapshot_of
from headrace.agents.scheduler.waiting_slots import wait_began, wait_over
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, KindBreaker, QueueLimits
from headrace.memory.governor import Pressure
from headrace.priority import Priority


class Scheduler:
    def __init__(self, limits: QueueLimits, breaker_limits: BreakerLimits | None) -> None:
        self._state = SchedulerState(limits, breaker_limits)

    def pressure(self, host: str) -> Pressure:
        """The level that the host's last memory reading led to."""
        return self._state.hosts[host].pressure

    def zero_bytes(self, host: str) -> int:
        """What counts as no memory in use on a host, since no work holds it; 0 as a rule."""
        known = self._state.hosts.get(host)
        return known.governor.zero_bytes if known else 0

    def handle(self, event: SchedulerEvent) -> list[SchedulerCommand]:
        """Return what to do now, in order: as many commands as there are slots, but for `Closing`, which parks all
        runs.
        """
        state = self._state
        state.commands = []
        match event:  # the most frequent ones first
            case StepJournaled():
                lifecycle.step_done(state, event)
                return state.commands
            case AttemptEnded():
                lifecycle.ended(state, event)
            case Submitted():
                lifecycle.submitted(state, event)
            case AttemptStarted():
                lifecycle.started(state, event)
                return state.commands
            case EffectStarting():
                lifecycle.effect_starting(state, event)
                return state.commands
            case EffectEnded():
                lifecycle.effect_ended(state, event)
                return state.commands
            case WaitBegan():
                wait_began(state, event)
            case WaitOver():
                wait_over(state, event)
            case MemoryMeasured():
                self._read(event)
                return state.commands
            case MemoryWanted():
                make_memory(state, event)
                return state.commands
            case Tick():
                self._tick(event.now_s)
            case Cancelled():
                if run := state.runs.get(event.id):
                    lifecycle.stop_for_good(state, run, StopReason.CANCELLED, event.now_s)
            case PriorityRaised():
                lifecycle.raise_priority(state, event)
            case SurveyOpened() | SurveyUsage() | SurveyClosed():
                self._survey_event(event)
            case HeartbeatAdded() | HeartbeatRemoved() | HeartbeatEnded():
                self._beat(event)
            case HostJoined():
                self._join(event)
            case HostLost():
                self._lose(event.host, event.now_s)
            case Closing():
                lifecycle.close(state, event.now_s)
            case _:
                assert_never(event)
        dispatch(state, event.now_s)
        return state.commands

    def __len__(self) -> int:
        """How many runs wait, are held or run: each was accepted and has not ended."""
        return len(self._state.runs)

    def has_room(self, level: Priority) -> bool:
        """Return whether the queue of this level takes another submission: not while closing, nor at its depth."""
        return not self._state.is_closing and self._state.queue.count(level) < self._state.limits.queue_depth

    def refuses(self, kind: str, breaker: KindBreaker, now_s: float) -> bool:
        """Whether the circuit of a kind is open: a submission need not wait for room to be refused."""
        return self._state.circuits.refuses(kind, breaker, now_s)

    def next_probe_s(self, kind: str) -> float | None:
        return self._state.circuits.next_probe_s(kind)

    def recall_sizes(self, sizes: Mapping[str, KindSize]) -> None:
        """Begin with what an earlier engine has learned of kinds of runs."""
        self._state.reservations.recall(sizes)

    def changed_sizes(self) -> dict[str, KindSize]:
        """What has been learned since the last call, where it is noticeably different: to be kept."""
        return self._state.reservations.changes()

    @property
    def slots_in_use(self) -> int:
        return sum(len(host.slots) for host in self._state.hosts.values())

    def expected_wait_s(self, level: Priority) -> float:
        return self._state.expected_wait_s(level)

    def next_tick_s(self) -> float | None:
        """When the next `Tick` is due: for a heartbeat, a timeout or a probe."""
        state = self._state
        times = (state.heartbeats.next_tick_s(), state.next_deadline_s(), state.circuits.next_tick_s())
        return min((at_s for at_s in times if at_s is not None), default=None)

    def snapshot(self, now_s: float | None = None) -> Snapshot:
        """Without the time, it does not tell why the first in line waits, which is to be computed."""
        return snapshot_of(self._state, now_s)

    def _read(self, event: MemoryMeasured) -> None:
        """Runs come first: surveys get the memory that is left, or give back what the next run needs."""
        if host := self._state.hosts.get(event.host):
            take_reading(self._state, host, event)
            dispatch(self._state, event.now_s)
            self._state.commands += host.regrant()

    def _tick(self, now_s: float) -> None:
        state = self._state
        for run in state.overdue(now_s):
            lifecycle.stop_for_good(state, run, StopReason.TIMED_OUT, now_s)
        if not state.is_closing:
            state.commands += state.heartbeats.tick(now_s, self._reading_of)

    def _reading_of(self, name: str) -> MemoryReading | None:
        host = self._state.hosts.get(name)
        return host.reading if host else None

    def _survey_event(self, event: SurveyOpened | SurveyUsage | SurveyClosed) -> None:
        if isinstance(event, SurveyOpened):
            if host := self._state.hosts.get(event.host):
                host.surveys.open(event)
            return
        surveys = self._surveys_with(event.survey)
        if surveys is None:
            return
        if isinstance(event, SurveyUsage):
            surveys.used(event)
        else:
            surveys.close(event.survey)

    def _surveys_with(self, survey: str) -> HostSurveys | None:
        return next((host.surveys for host in self._state.hosts.values() if survey in host.surveys.by_id), None)

    def _beat(self, event: HeartbeatAdded | HeartbeatRemoved | HeartbeatEnded) -> None:
        heartbeats = self._state.heartbeats
        match event:
            case HeartbeatAdded():
                heartbeats.add(event)
            case HeartbeatRemoved():
                heartbeats.remove(event.name)
            case HeartbeatEnded():
                heartbeats.ended(event.name, event.epoch)
        self._tick(event.now_s)

    def _join(self, event: HostJoined) -> None:
        self._lose(event.host, event.now_s)  # a host that joins again has lost its runs
        self._state.hosts[event.host] = Host(
            event.host, event.slots, event.limits, self._state.limits, event.kept_back_bytes
        )
        self._state.queue.skipped_runs.end()

    def _lose(self, name: str, now_s: float) -> None:
        host = self._state.hosts.get(name)
        if host is None:
            return
        host.is_lost = True
        for slot in list(host.slots.values()):
            host.note_stop(slot, now_s)  # no child enters it any more
            for run in reversed(list(slot.running.values())):  # children first: a parent's end would stop its children
                run.stopping = (
                    run.stopping if run.stopping in FINAL else StopReason.HOST_LOST
                )  # a loss that does not count against the run
                ended = AttemptEnded(now_s=now_s, id=run.id, epoch=run.epoch, cause=ExitCause.LOST)
                lifecycle.ended(self._state, ended)
        del self._state.hosts[name]
