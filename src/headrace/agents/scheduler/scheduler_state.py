"""`SchedulerState`: all data of the scheduler in one object, and look-ups in it. Does not cover: decisions."""

from __future__ import annotations

import heapq

from msgspec.structs import replace

from headrace.agents.scheduler.circuits import Circuits
from headrace.agents.scheduler.events import KillRun, NeedsRoom, PreemptRun, SchedulerCommand, StopReason
from headrace.agents.scheduler.heartbeats import Heartbeats
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.hosts.host_index import HostIndex
from headrace.agents.scheduler.hosts.needs import must_be_alone
from headrace.agents.scheduler.hosts.reservations import Reservations
from headrace.agents.scheduler.hosts.silences import Silences
from headrace.agents.scheduler.run_queue import RunQueue
from headrace.agents.scheduler.scheduled_runs import RUNNING, ScheduledRun, Slot
from headrace.limits import BreakerLimits, QueueLimits
from headrace.priority import CRITICAL, Priority

_FORGET = 0.9
_DEAD_ALLOWED = 64
FINAL = (StopReason.CANCELLED, StopReason.TIMED_OUT, StopReason.PARENT_LOST)


class SchedulerState:
    def __init__(self, limits: QueueLimits, breaker_limits: BreakerLimits | None) -> None:
        self.limits = limits
        self.index = HostIndex()
        self.hosts = self.index.by_name
        self.silences = Silences()
        self.surveys: dict[str, Host] = {}  # where each is
        self.runs: dict[int, ScheduledRun] = {}  # waiting, held and running; bounded by the queue's depth and the slots
        self.queue = RunQueue(limits.aging_s)
        self.circuits = Circuits(breaker_limits)
        self.reservations = Reservations()
        self.heartbeats = Heartbeats(limits)
        self.commands: list[SchedulerCommand] = []
        self.is_closing = False
        self.arrivals = 0
        self.starts = 0
        self.moves_left = 0  # see `placing`
        self._deadlines: list[tuple[float, int, int]] = []
        self._run_s = 0.0

    def running(self, id: int, epoch: int) -> ScheduledRun | None:
        """The run, if it runs as this attempt; None for an event of an older attempt."""
        run = self.runs.get(id)
        return run if run is not None and run.phase is RUNNING and run.epoch == epoch else None

    def knows(self, run: ScheduledRun) -> bool:
        """Whether the run has not ended; another of its id may have been submitted since."""
        return self.runs.get(run.id) is run

    def enqueue(self, run: ScheduledRun) -> None:
        """Put a run in line. One that ran out of memory, or has to be alone, waits aside: it needs more than others
        leave. A CRITICAL one makes room for itself.
        """
        run.is_aside = run.priority is not CRITICAL and (run.has_died or self._must_be_alone(run))
        self.queue.add(run)

    def _must_be_alone(self, run: ScheduledRun) -> bool:
        if not run.preemptions and not run.warden_ends:
            return False
        most_preemptions = self.index.most_preemptions
        return most_preemptions is not None and must_be_alone(self.limits, run, most_preemptions)

    def expected_wait_s(self, level: Priority) -> float:
        """Estimate the wait: the runs before it, by the time that runs took lately, by the number of slots."""
        before = sum(self.queue.count(other) for other in Priority if other >= level)
        return before * self._run_s / max(1, self.index.slot_count)

    def note_run(self, executed_s: float) -> None:
        self._run_s = executed_s if not self._run_s else self._run_s * _FORGET + executed_s * (1 - _FORGET)

    def set_deadline(self, run: ScheduledRun, at_s: float) -> None:
        heapq.heappush(self._deadlines, (at_s, run.id, run.epoch))
        if len(self._deadlines) > 2 * len(self.runs) + _DEAD_ALLOWED:  # most belong to runs that ended in time
            self._deadlines = [entry for entry in self._deadlines if self.running(*entry[1:])]
            heapq.heapify(self._deadlines)

    def next_deadline_s(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def overdue(self, now_s: float) -> list[ScheduledRun]:
        """Remove the deadlines that have passed, and return the runs that are still in those attempts."""
        found: list[ScheduledRun] = []
        while self._deadlines and self._deadlines[0][0] <= now_s:
            if run := self.running(*heapq.heappop(self._deadlines)[1:]):
                found.append(run)
        return found

    def stop_slot(
        self,
        slot: Slot,
        what: type[PreemptRun | KillRun],
        why: StopReason,
        now_s: float,
        *,
        is_patient: bool = False,
        for_whom: NeedsRoom | None = None,
    ) -> None:
        """Stop all runs in a slot. A child that stops with its parent comes back with it."""
        self.hosts[slot.host].note_stop(slot, now_s)
        slot.is_patient = is_patient
        slot.was_killed = slot.was_killed or what is KillRun
        for run in list(slot.running.values()):
            has_parent = run is not slot.root and self.knows(slot.root)
            self.stop(run, what, StopReason.WITH_PARENT if has_parent and why not in FINAL else why, for_whom)

    def stop(
        self,
        run: ScheduledRun,
        what: type[PreemptRun | KillRun],
        why: StopReason,
        for_whom: NeedsRoom | None = None,
    ) -> None:
        """Stop one run. A reason that ends it for good is never replaced by one after which it comes back."""
        if run.stopping in FINAL:
            return
        assert run.slot is not None
        run.stopping = why
        host = self.hosts[run.slot.host]
        if host.is_lost:
            return
        command = what(id=run.id, epoch=run.epoch, host=host.name, why=why, reading=host.reading, for_whom=for_whom)
        if run.slot.is_patient and isinstance(command, PreemptRun):
            command = replace(command, is_patient=True)
        self.commands.append(command)
