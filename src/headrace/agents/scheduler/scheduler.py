"""`Scheduler`: a pure state machine that takes events and returns commands. Covers: which module handles which event.

The same events in the same order give the same commands: time comes with the events, and nothing here waits, reads or
draws random numbers. `events` has the tables of both sides; the package's docstring names the modules that decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from headrace.agents.scheduler import host_changes, lifecycle
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
    HostLeaving,
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
from headrace.agents.scheduler.hosts.reservations import KindSize
from headrace.agents.scheduler.placing import dispatch
from headrace.agents.scheduler.relief import make_memory, take_reading
from headrace.agents.scheduler.scheduler_state import SchedulerState
from headrace.agents.scheduler.snapshot import Snapshot, snapshot_of
from headrace.agents.scheduler.waiting_slots import wait_began, wait_over
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

    def reading(self, host: str) -> MemoryReading | None:
        """The host's last memory reading, None where there is no such host."""
        known = self._state.hosts.get(host)
        return known.reading if known else None

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
                host_changes.join(state, event)
            case HostLeaving():
                host_changes.begin_leaving(state, event.host)
            case HostLost():
                host_changes.lose(state, event.host, event.now_s)
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
        """When the next `Tick` is due: for a heartbeat, a timeout, a probe or a host that may be silent."""
        state = self._state
        times = (
            state.heartbeats.next_tick_s(),
            state.next_deadline_s(),
            state.circuits.next_tick_s(),
            state.silences.next_tick_s(),
        )
        return min((at_s for at_s in times if at_s is not None), default=None)

    def snapshot(self, now_s: float | None = None) -> Snapshot:
        """Without the time, it does not tell why the first in line waits, which is to be computed."""
        return snapshot_of(self._state, now_s)

    def _read(self, event: MemoryMeasured) -> None:
        """Runs come first: surveys get the memory that is left, or give back what the next run needs."""
        state, host = self._state, self._state.hosts.get(event.host)
        if host is not None and host_changes.is_believed(state, host, event):
            host.is_read_anew = True
            host.touch()
            take_reading(state, host, event)
            dispatch(state, event.now_s)
            if grants := host.regrant():
                host.touch()
                state.commands += grants

    def _tick(self, now_s: float) -> None:
        state = self._state
        host_changes.lose_silent_hosts(state, now_s)
        for run in state.overdue(now_s):
            lifecycle.stop_for_good(state, run, StopReason.TIMED_OUT, now_s)
        if not state.is_closing:
            state.commands += state.heartbeats.tick(now_s, self.reading)

    def _survey_event(self, event: SurveyOpened | SurveyUsage | SurveyClosed) -> None:
        surveys = self._state.surveys
        if (before := surveys.get(event.survey)) and not isinstance(event, SurveyUsage):
            before.surveys.close(event.survey)
            before.touch()
            del surveys[event.survey]
        match event:
            case SurveyOpened():
                if host := self._state.hosts.get(event.host):
                    surveys[event.survey] = host
                    host.surveys.open(event)
                    host.touch()
            case SurveyUsage():
                if before:
                    before.surveys.used(event)
                    before.touch()
            case SurveyClosed():
                pass

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
