"""A model world for the scheduler: runs, memory, time, executors that obey. Covers: what happens. Does not cover: what
must never happen (tests.agents.scheduler.rules), or which histories are tried (tests.agents.scheduler.histories).

It keeps books of its own, from the events it sends and the commands it gets, and never looks inside the scheduler.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from headrace.agents.scheduler.events import (
    AttemptEnded,
    AttemptStarted,
    Cancelled,
    Closing,
    DropHost,
    EffectEnded,
    EffectStarting,
    EndRun,
    GrantPermits,
    HeartbeatAdded,
    HeartbeatEnded,
    HeartbeatRemoved,
    HostJoined,
    HostLeaving,
    HostLost,
    KillHeartbeat,
    KillRun,
    MemoryMeasured,
    MemoryWanted,
    Notice,
    ParkRun,
    PreemptRun,
    PriorityRaised,
    RecordNotice,
    RecordShortage,
    RejectRun,
    ReserveLess,
    ResumeRun,
    SchedulerCommand,
    SchedulerEvent,
    SetPriority,
    SkipRun,
    StartHeartbeat,
    StartRun,
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
from headrace.agents.scheduler.scheduler import Scheduler
from headrace.exit_causes import ExitCause
from headrace.limits import BreakerLimits, MemoryLimits, QueueLimits
from headrace.memory.governor import Pressure
from headrace.priority import Priority
from tests.agents.scheduler.broken import check

BUDGET = 1000
LIMITS = MemoryLimits(budget_bytes=BUDGET, min_run_s=4.0, gives_up_after_s=40.0)
SILENT_AFTER_S = 4.0
WAIT_MARGIN = 10
QUEUE = QueueLimits(
    queue_depth=6,
    aging_s=3.0,
    slot_memory_bytes=400,
    least_run_bytes=20,
    passed_over_s=3.0,
    wait_margin_bytes=WAIT_MARGIN,
)
BREAKER = BreakerLimits(cool_down_s=4.0, longest_cool_down_s=16.0)
PERMIT_BYTES = 5
KEPT_BACK = 5
WANTED = 40
KINDS = ("a", "b", "c")
_MAKES_WAY = (StopReason.PRESSURE, StopReason.MAKES_ROOM, StopReason.OTHERS_NEED_IT, StopReason.PROMISED_BEFORE)
_FOR_MEMORY = (StopReason.PRESSURE, StopReason.EMERGENCY, StopReason.OTHERS_NEED_IT)
_COMES_BACK = (ExitCause.PREEMPTED, ExitCause.LOST, ExitCause.OUT_OF_MEMORY)
_SHOWS_NEED = (ExitCause.DONE, ExitCause.FAILED, ExitCause.OUT_OF_MEMORY, ExitCause.PARKED)
UNBROKEN = "c"  # the kind that has no breaker


@dataclass(slots=True, eq=False)
class Slot:
    host: str
    priority: Priority
    number: int
    started_s: float
    reserved: int
    is_alone: bool
    root: "Run"
    was_joined: bool = False
    members: dict[int, "Run"] = field(default_factory=dict)
    stop_sent_s: float | None = None
    is_waiting: bool = False
    resuming: dict[int, "Run"] = field(default_factory=dict)  # of its runs, those that want to compute again
    wait_over_s: float = 0.0
    read_bytes: int = 0  # at the last reading
    grown: int = 0  # what may be reserved for it since a lower one stopped for it
    is_short: bool = False  # after its last wait it went on with less than it was promised
    is_second_try: bool = False  # of a run in it that ran out of memory
    is_patient: bool = False
    keeps_until_s: float = 0.0

    @property
    def charge(self) -> int:
        """What it counts for in the budget at least: what was read of it while it waits, else what it was promised."""
        return min(self.read_bytes, self.reserved) if self.is_waiting else self.reserved

    @property
    def leader(self) -> "Run":
        return self.root if self.root.id in self.members else next(iter(self.members.values()), self.root)


@dataclass(slots=True, eq=False)
class Run:
    id: int
    kind: str
    priority: Priority
    declared: int | None
    submitted_s: float
    arrival: int
    parent: "Run | None" = None
    limit_s: float | None = None
    is_live: bool = True
    epoch: int = 0
    slot: Slot | None = None
    stop: PreemptRun | KillRun | None = None
    memory: int = 0
    has_progress: bool = False
    effects: int = 0
    preemptions: int = 0
    preempts_sent: int = 0
    deaths: int = 0  # after it used all that it was owed
    others_had_it: int = 0  # how often it ran out of memory before it used what it was owed
    short_deaths: int = 0  # of those, after it had to go on with less than it was promised
    needs: int = 0  # as much at least as it had when it ran out of memory, or twice that where others had the rest
    kills: int = 0  # for the same, when memory was nearly exhausted
    losses: int = 0  # of its worker, not of all workers with the warden
    warden_ends: int = 0  # in a row, while it computed and had journaled nothing
    ends_warden: bool = False  # it did so again, alone
    began_s: float = 0.0
    pushed_out_by: StopReason | None = None
    out_since_s: float = 0.0
    last_slot: Slot | None = None
    home: Slot | None = None
    parked: ParkRun | None = None
    retries_oom: bool = True
    is_child: bool = False  # when it was submitted; its parent may have ended since
    topmost: int = 0  # the run that was submitted by itself, of which it is a child
    origin: "Run | None" = None  # the parent that it was submitted with, until that leaves
    is_shortage_told: bool = False
    fitted_s: float = 0.0  # when a host could last hold it, beside nothing else
    skipped_in: int = -1  # the latest episode of pressure in which it was told that it is passed over
    is_isolated: bool = False
    waits_for: "Run | None" = None  # an isolated child
    queued_s: float = 0.0  # where its age counts from, at the earliest
    latest_queued_s: float = 0.0  # the same at the latest: whether age gave it a turn cannot always be told from here

    @property
    def is_waiting(self) -> bool:
        """In line: not while children of its last attempt still run."""
        return self.is_live and self.slot is None and not (self.last_slot and self.last_slot.members)


@dataclass(slots=True, eq=False)
class HostModel:
    """`size` is its whole budget; of a silent one nothing is heard."""

    name: str
    slot_count: int
    size: int
    budget: int
    read_budget: int  # at the last reading
    room_alone: int  # what one run could have beside nothing else, by the last reading
    heard_s: float
    is_leaving: bool = False
    is_silent: bool = False
    base: int = 50
    used: int = 0
    pressure: Pressure = Pressure.NORMAL
    changed_s: float = -1000.0
    zero: int = 0
    highest_base: int = 50
    lendable: int | None = None  # to all workers, as of the last reading; None where none is held to a limit
    most_for_one: int = 0
    has_unread_exit: bool = False  # of a slot that was told to stop, since the last reading
    idle_since_s: float | None = None  # since when slots wait, and none computes or could
    floor: int = 0
    slots: dict[int, Slot] = field(default_factory=dict)


class World:
    def __init__(self, slots: int, hosts: int) -> None:
        self.scheduler = Scheduler(QUEUE, BREAKER)
        self.now_s = 0.0
        self.runs: dict[int, Run] = {}  # live ones
        self.ended: list[Run] = []
        self.sent: list[SchedulerCommand] = []  # every command, in order
        self.parked: list[Run] = []
        self.hosts: dict[str, HostModel] = {}
        self.takers: list[HostModel] = []  # the hosts that take starts
        self.best_room = self.largest = 0  # of all hosts that there were
        self.heartbeats: dict[str, int] = {}  # running: name, epoch
        self.stopping_heartbeats: set[str] = set()  # of those, the ones told to stop
        self.heartbeat_hosts: dict[str, str] = {}
        self.granted: dict[str, int] = {}  # surveys: permits
        self.in_use: dict[str, int] = {}
        self.open_kinds: set[str] = set()
        self.known_kinds: set[str] = set()
        self.is_closing = False
        self.episodes = 0  # of pressure everywhere, so far
        self.ids = self.numbers = self.arrivals = 0
        for number in range(hosts):
            self.join(f"host{number}", slots, BUDGET * (10 - number % 3 * 3) // 10)

    # What the world does.

    def join(self, name: str, slots: int, size: int = BUDGET) -> None:
        """One that joins again has lost what it had."""
        if name in self.hosts:
            self._lose_all_of(name)
        self.hosts[name] = HostModel(name, slots, size, size, size, size, self.now_s)
        if slots:
            self.takers.append(self.hosts[name])
            self.largest = max(self.largest, size)
        self.episodes += 1
        self.tell(
            HostJoined(
                now_s=self.now_s,
                host=name,
                slots=slots,
                limits=replace(LIMITS, budget_bytes=size),
                kept_back_bytes=KEPT_BACK,
                silent_after_s=SILENT_AFTER_S,
            )
        )
        self.read(self.hosts[name])

    def leave(self, host: HostModel) -> None:
        if host in self.takers:
            self.takers.remove(host)
        host.is_leaving = True
        self.tell(HostLeaving(now_s=self.now_s, host=host.name))

    def is_heard(self, run: "Run") -> bool:
        """Whether the run is in a slot of a host that is not silent."""
        return run.slot is not None and not self.hosts[run.slot.host].is_silent

    def lose(self, name: str) -> None:
        self._lose_all_of(name)
        self.tell(HostLost(now_s=self.now_s, host=name))

    def _lose_all_of(self, name: str) -> None:
        host = self.hosts.pop(name)
        if host in self.takers:
            self.takers.remove(host)
        for slot in list(host.slots.values()):
            for run in list(slot.members.values()):
                run.stop = None  # whatever it was told, this is no preemption
                self.stopped(run)
        self.granted.pop(name, None)
        self.in_use.pop(name, None)

    def submit(self, priority: Priority, kind: str, declared: int | None, parent: Run | None, limit_s: float | None):
        self.ids += 1
        if parent is not None:
            priority = parent.slot.priority if parent.slot else parent.priority
        retries_oom = self.ids % 5 > 0
        run = Run(self.ids, kind, priority, declared, self.now_s, 0, parent, limit_s, retries_oom=retries_oom)
        self.submit_run(run)

    def submit_isolated(self, parent: Run, kind: str, declared: int | None) -> None:
        """A child with a slot of its own; its parent waits for it."""
        self.ids += 1
        child = Run(self.ids, kind, parent.priority, declared, self.now_s, 0, parent, is_isolated=True)
        parent.waits_for = child
        self.submit_run(child)
        if parent.slot:
            self.begin_wait(parent.slot)

    def begin_wait(self, slot: Slot) -> None:
        if not slot.is_waiting and slot.members:
            slot.is_waiting = True
            run = next(iter(slot.members.values()))
            self.tell(WaitBegan(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def end_wait(self, run: Run) -> None:
        """What it waited for is there."""
        slot = run.slot
        if slot is None or not slot.is_waiting or run.id in slot.resuming or self.is_waited_for(run.waits_for):
            return
        slot.wait_over_s = slot.wait_over_s or self.now_s
        slot.resuming[run.id] = run
        self.tell(WaitOver(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def is_waited_for(self, run: Run | None) -> bool:
        return run is not None and (run.is_live or run in self.parked)

    def submit_run(self, run: Run) -> None:
        self.arrivals += 1
        run.submitted_s, run.arrival, run.is_live, run.home = self.now_s, self.arrivals, True, None
        run.queued_s, run.latest_queued_s, run.last_slot = self.now_s, self.now_s, None
        run.out_since_s, run.fitted_s, run.needs, run.warden_ends = self.now_s, self.now_s, 0, 0
        run.is_shortage_told = False
        if run.parent and not run.parent.is_live:
            run.parent = None
        if run.is_isolated and run.parent:
            run.priority, run.queued_s = run.parent.priority, run.parent.queued_s - 0.001
            run.latest_queued_s = run.parent.latest_queued_s - 0.001
        run.is_child, run.origin = run.parent is not None, run.parent
        run.topmost = run.parent.topmost if run.parent else run.id
        self.runs[run.id] = run
        was, run.parked = run.parked, None
        self.tell(
            Submitted(
                now_s=self.now_s,
                id=run.id,
                kind=run.kind,
                priority=run.priority,
                memory_bytes=run.declared,
                limit_s=run.limit_s,
                parent=run.parent.id if run.parent else None,
                epoch=run.epoch,
                preemptions=was.preemptions if was else 0,
                deaths=was.deaths if was else 0,
                executed_s=was.executed_s if was else 0.0,
                is_isolated=run.is_isolated,
                retries_oom=run.retries_oom,
                breaker=None if run.kind == UNBROKEN else "engine",
            )
        )
        if not run.is_live and was and not run.parked:  # refused, but it is still on disk
            run.parked = was
            self.ended.remove(run)
            self.parked.append(run)

    def step(self, run: Run) -> None:
        run.has_progress = True
        if run.effects:
            self.end_effect(run)
        self.tell(StepJournaled(now_s=self.now_s, id=run.id, epoch=run.epoch))
        if run.slot and isinstance(run.stop, PreemptRun) and not run.effects:
            self.end(run, ExitCause.PREEMPTED)

    def end_effect(self, run: Run) -> None:
        run.effects -= 1
        self.tell(EffectEnded(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def effect(self, run: Run) -> None:
        run.effects += 1
        self.tell(EffectStarting(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def end(
        self, run: Run, cause: ExitCause, limit: int = 0, *, with_warden: bool = False, is_endpoints: bool = False
    ) -> None:
        """`limit` is what its worker was held to, where it ran out of memory there; `is_endpoints`: a model failed."""
        peak, epoch, told = run.memory, run.epoch, limit
        if run.slot:
            limit = min(limit, self.hosts[run.slot.host].size)  # no worker has more
        makes_way = run.stop is not None and run.stop.why in _MAKES_WAY
        is_own = not makes_way and self._used_its_share(run, limit)
        run.needs = max(run.needs, self._shown_need(run, cause, limit, is_own=is_own))
        run.deaths += is_own and cause is ExitCause.OUT_OF_MEMORY
        run.others_had_it += not is_own and not makes_way and cause is ExitCause.OUT_OF_MEMORY
        run.kills += is_own and run.stop is not None and run.stop.why is StopReason.EMERGENCY
        if run.slot and run.slot.is_short and not makes_way and not is_own:
            run.short_deaths += cause is ExitCause.OUT_OF_MEMORY
        run.losses += cause is ExitCause.LOST and run.stop is None and not with_warden
        if run.slot and with_warden and run.stop is None and not run.slot.is_waiting:
            self._note_warden_end(run, run.slot)
        slot = run.slot
        if slot and run is slot.root and cause in _SHOWS_NEED:
            self.known_kinds.add(run.kind)
        self.stopped(run, comes_back=cause in _COMES_BACK)
        self.tell(
            AttemptEnded(
                now_s=self.now_s,
                id=run.id,
                epoch=epoch,
                cause=cause,
                peak_bytes=peak,
                limit_bytes=told,
                is_own=not with_warden,
                is_endpoints=is_endpoints,
            )
        )

    def _note_warden_end(self, run: Run, slot: Slot) -> None:
        has_progress = any(member.has_progress for member in slot.members.values())
        run.warden_ends = 0 if has_progress else run.warden_ends + 1
        is_shown = slot.is_alone and not slot.was_joined
        run.ends_warden = is_shown and run.warden_ends > QUEUE.most_losses

    def end_warden(self, host: HostModel) -> None:
        """All workers end with it; of each slot, the parent's end is told first, as executors do."""
        for slot in list(host.slots.values()):
            for run in list(slot.members.values()):
                if run.slot is slot:
                    self.end(run, ExitCause.LOST, with_warden=True)

    def want_memory(self, run: Run, *, is_urgent: bool) -> None:
        slot, before = run.slot, len(self.sent)
        self.tell(MemoryWanted(now_s=self.now_s, id=run.id, epoch=run.epoch, is_urgent=is_urgent))
        if slot and any(isinstance(command, PreemptRun) for command in self.sent[before:]):
            slot.grown = max(slot.grown, min(2 * slot.read_bytes, QUEUE.slot_memory_bytes))

    def owed(self, slot: Slot) -> int:
        """What its runs may use before their death is their own."""
        least, most = QUEUE.least_run_bytes, int(self.hosts[slot.host].most_for_one * 0.9)
        if slot.is_second_try and self.hosts[slot.host].lendable is not None:
            return max(least, int(slot.reserved * 0.9))
        if slot.root.declared is not None and not slot.is_second_try:
            return max(least, slot.reserved)
        return max(least, min(slot.reserved if slot.is_second_try else QUEUE.slot_memory_bytes, most))

    def _used_its_share(self, run: Run, limit: int) -> bool:
        """Whether it had all that it was owed; of hosts without limits nobody knows."""
        slot = run.slot
        if slot is None or self.hosts[slot.host].lendable is None:
            return slot is not None
        return (limit or max(run.memory, slot.read_bytes)) >= self.owed(slot)

    def _shown_need(self, run: Run, cause: ExitCause, limit: int, *, is_own: bool) -> int:
        """What the end of an attempt says about what the run needs, where it ran out of memory or was killed for it."""
        slot, why = run.slot, run.stop.why if run.stop else None
        if slot is None or why in _MAKES_WAY:
            return 0
        if cause is ExitCause.OUT_OF_MEMORY:
            return int(limit * 0.9) if is_own else max(int(limit * 0.9), min(2 * limit, self.owed(slot)))
        is_killed_alone = why is StopReason.EMERGENCY and len(self.hosts[slot.host].slots) == 1
        is_short = is_killed_alone and not is_own and cause in (ExitCause.PREEMPTED, ExitCause.LOST)
        return min(2 * max(run.memory, slot.read_bytes), self.owed(slot)) if is_short else 0

    def stopped(self, run: Run, *, comes_back: bool = True) -> None:
        slot, run.slot = run.slot, None
        run.last_slot = slot if slot and slot.root is run else None
        may_return = slot is not None and slot.root is not run and not slot.is_waiting and not run.deaths
        run.home = slot if may_return else None
        run.pushed_out_by = run.stop.why if run.stop else None
        run.out_since_s = run.fitted_s = self.now_s
        if run.stop is not None and run.stop.why in _FOR_MEMORY:
            run.preemptions += 1
        if comes_back and slot and run.stop is not None and run.stop.why is StopReason.MAKES_ROOM:
            ran_s = self.now_s - slot.started_s
            self._age_from(run, run.queued_s + ran_s, run.latest_queued_s + ran_s)
        run.stop, run.memory, run.effects, run.has_progress = None, 0, 0, False
        run.waits_for = None
        if slot is not None:
            del slot.members[run.id]
            slot.resuming.pop(run.id, None)
            if not slot.members and slot.host in self.hosts:
                del self.hosts[slot.host].slots[slot.number]
                self.hosts[slot.host].has_unread_exit |= slot.stop_sent_s is not None

    def raise_priority(self, run: Run, priority: Priority) -> None:
        self.tell(PriorityRaised(now_s=self.now_s, id=run.id, priority=priority))

    def with_children(self, run: Run) -> list[Run]:
        """The run and those that it waits for, and so on."""
        found = [run]
        for each in found:
            found += [other for other in self.runs.values() if other.origin is each and other not in found]
        return found

    def cancel(self, run: Run) -> None:
        self.tell(Cancelled(now_s=self.now_s, id=run.id))

    def wait(self, seconds: float) -> None:
        """Time passes: what was killed is gone, what was preempted reaches a step, memory is read, clocks tick."""
        self.now_s += seconds
        for run in list(self.runs.values()):
            if self.is_heard(run) and isinstance(run.stop, KillRun):
                self.end(run, ExitCause.LOST if run.id % 2 else ExitCause.PREEMPTED)
        for host in list(self.hosts.values()):
            self.read(host)
        self.tell(Tick(now_s=self.now_s))

    def read(self, host: HostModel, unknown: tuple[tuple[int, int], ...] = ()) -> None:
        """`unknown` are runs that are not there, of which the host tells something too."""
        if host.is_silent:
            return
        host.heard_s = self.now_s
        by_run = tuple((run.id, run.memory) for f in host.slots.values() for run in f.members.values())
        for slot in host.slots.values():
            slot.read_bytes = sum(run.memory for run in slot.members.values())
        survey = self.in_use.get(host.name, 0) * PERMIT_BYTES
        host.used = host.base + sum(memory for _, memory in by_run) + survey
        host.has_unread_exit = False
        host.highest_base, host.read_budget = max(host.highest_base, host.base), host.budget
        tells = by_run if host.slot_count % 2 else ()  # some executors cannot tell runs apart, nor hold them to limits
        if host.slot_count % 2:
            self._measure_what_is_lendable(host, survey)
        self._measure_what_one_could_have(host, survey)
        for run in self.runs.values():
            if run.is_waiting and not self.is_too_large(run, may_be=True):
                run.fitted_s = self.now_s
        self.tell(
            MemoryMeasured(
                now_s=self.now_s,
                host=host.name,
                used_bytes=host.used,
                budget_bytes=host.budget,
                by_run=unknown + tells if tells else (),
                lendable_bytes=host.lendable,
            )
        )

    def read_what_cannot_be(self, host: HostModel, which: int) -> None:
        run = next(iter(self.runs), 1)
        used, budget, by_run = ((-1, None, ()), (500, 0, ()), (500, -BUDGET, ()), (500, None, ((run, -9),)))[which % 4]
        self.lie(
            MemoryMeasured(now_s=self.now_s, host=host.name, used_bytes=used, budget_bytes=budget, by_run=by_run),
            "what cannot be a reading is not believed",
        )

    def read_late(self, host: HostModel) -> None:
        before_s = host.heard_s - 0.01
        late = MemoryMeasured(now_s=before_s, host=host.name, used_bytes=host.size)
        self.lie(late, "a reading that is older than the last one changes nothing")

    def read_of_nobody(self) -> None:
        gone = MemoryMeasured(now_s=self.now_s, host="gone", used_bytes=BUDGET)
        self.lie(gone, "what a host says that is not there changes nothing")

    def lie(self, event: SchedulerEvent, rule: str) -> None:
        """Nothing may come of it but a notice."""
        before = self.scheduler.snapshot()
        for command in self.scheduler.handle(event):
            self.sent.append(command)
            is_notice = isinstance(command, RecordNotice) and command.notice is Notice.IMPOSSIBLE_READING
            check(is_notice, rule)
        check(self.scheduler.snapshot() == before, rule)

    def end_effect_that_never_began(self, run: Run) -> None:
        self.tell(EffectEnded(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def _measure_what_is_lendable(self, host: HostModel, survey: int) -> None:
        line = host.zero + int((host.budget - host.zero) * LIMITS.emergency_at)
        host.lendable = line - host.base - survey
        host.most_for_one = line - host.base - KEPT_BACK

    def _measure_what_one_could_have(self, host: HostModel, survey: int) -> None:
        if host.lendable is not None:
            host.room_alone = min(host.budget - host.base, host.most_for_one)
        else:  # what runs use is not measured apart: the floor is seen when none is there
            own = host.used - survey
            host.floor = min(own, host.floor) if host.slots else own
            host.room_alone = host.budget - host.floor
        if host in self.takers:
            self.best_room = max(self.best_room, host.room_alone)

    def is_too_large(self, run: Run, margin: int = 0, *, may_be: bool = False) -> bool:
        """Whether it fits nowhere, even beside nothing else; or may be so, where that cannot be told from here."""
        held = [each for each in self.runs.values() if each is not run and not each.slot and run in upwards(each)]
        if run.pushed_out_by is StopReason.FOR_ISOLATED_CHILD and self._waits_with_a_child(run, held):
            return True
        needs = max(run.declared or QUEUE.least_run_bytes, QUEUE.least_run_bytes)
        if self._died(run, held):
            needs = max(needs, run.needs, *(each.needs for each in held))
        if may_be and self._died(run, held) and any(each.preemptions or each.kills for each in (run, *held)):
            needs = max(needs, 2 * QUEUE.slot_memory_bytes)  # it may have been killed with as much as it was owed
        return all(needs > host.room_alone - margin for host in self.takers)

    def _waits_with_a_child(self, run: Run, held: list[Run]) -> bool:
        children = [each for each in self.runs.values() if each.is_isolated and each.parent in (run, *held)]
        return any(child.is_waiting and self.is_too_large(child, may_be=True) for child in children)

    def _died(self, run: Run, held: list[Run]) -> bool:
        return any(each.deaths or each.kills for each in (run, *held))

    def open_survey(self, host: str, priority: Priority) -> None:
        self.granted[host] = self.in_use[host] = 0
        self.tell(
            SurveyOpened(
                now_s=self.now_s, survey=host, host=host, wanted=WANTED, priority=priority, permit_bytes=PERMIT_BYTES
            )
        )

    def use_survey(self, host: str, share: float) -> None:
        """It moves towards using a share of its permits; revoked ones are given back as interviews end."""
        self.in_use[host] = int(self.granted[host] * share)
        self.tell(SurveyUsage(now_s=self.now_s, survey=host, in_use=self.in_use[host], permit_bytes=PERMIT_BYTES))

    def close_survey(self, host: str) -> None:
        del self.granted[host], self.in_use[host]
        self.tell(SurveyClosed(now_s=self.now_s, survey=host))

    def add_heartbeat(self, name: str, host: str, jitter: float) -> None:
        self.heartbeat_hosts[name] = host
        self.tell(HeartbeatAdded(now_s=self.now_s, name=name, host=host, every_s=2.0, limit_s=3.0, jitter=jitter))

    def remove_heartbeat(self, name: str) -> None:
        self.tell(HeartbeatRemoved(now_s=self.now_s, name=name))

    def end_heartbeat(self, name: str) -> None:
        self.stopping_heartbeats.discard(name)
        self.tell(HeartbeatEnded(now_s=self.now_s, name=name, epoch=self.heartbeats.pop(name)))

    def close(self) -> None:
        self.is_closing = True
        self.tell(Closing(now_s=self.now_s))

    # What the world is told to do.

    def tell(self, event: SchedulerEvent) -> None:
        self.check_event(event)
        for command in self.scheduler.handle(event):
            self.sent.append(command)
            self.check_command(command, event)
            self.obey(command)
        self.check_world(event)

    def check_event(self, event: SchedulerEvent) -> None:
        """For rules to fill in, before the scheduler gets the event."""

    def check_command(self, command: SchedulerCommand, event: SchedulerEvent) -> None:
        """For rules to fill in, before the command is obeyed."""

    def check_world(self, event: SchedulerEvent) -> None:
        """For rules to fill in, after all of them are."""

    def obey(self, command: SchedulerCommand) -> None:
        match command:
            case StartRun():
                self._start(command)
            case PreemptRun() | KillRun():
                run = self.runs[command.id]
                run.stop = command
                run.preempts_sent += isinstance(command, PreemptRun) and command.why is StopReason.PRESSURE
                if run.slot and (
                    run.slot.root is run or command.why not in (StopReason.CANCELLED, StopReason.TIMED_OUT)
                ):
                    run.slot.stop_sent_s = self.now_s
                    run.slot.is_patient = isinstance(command, PreemptRun) and command.is_patient
            case ResumeRun():
                slot = self.runs[command.id].slot
                slot.is_short = command.is_short if slot.is_waiting else slot.is_short
                slot.is_waiting, slot.wait_over_s = False, 0.0
                slot.resuming.pop(command.id, None)
            case SkipRun():
                self.runs[command.id].skipped_in = self.episodes
            case RecordShortage():
                self.runs[command.id].is_shortage_told = True
            case EndRun() | RejectRun():
                run = self.runs.pop(command.id)
                self._leave(run)
                self.ended.append(run)
            case ParkRun():
                run = self.runs.pop(command.id)
                self._leave(run)
                run.parked = command
                run.preemptions, run.deaths = command.preemptions, command.deaths
                self.parked.append(run)
            case ReserveLess():
                self.runs[command.id].slot.reserved = command.memory_bytes
            case SetPriority():
                run = self.runs[command.id]
                run.priority = command.priority
                if run.slot and run.slot.root is run:
                    run.slot.priority = run.priority
            case GrantPermits():
                self.granted[command.survey] = command.permits
            case StartHeartbeat():
                self.heartbeats[command.name] = command.epoch
            case KillHeartbeat():
                self.stopping_heartbeats.add(command.name)  # it ends when the history says so, or when time passes
            case DropHost():
                self._lose_all_of(command.host)
            case RecordNotice(notice=Notice.LEVEL | Notice.NEW_ZERO):
                host = self.hosts[command.subject]
                host.pressure, host.changed_s = command.reading.pressure, self.now_s
                host.zero = command.reading.zero_bytes
                self.episodes += host.pressure is Pressure.NORMAL
            case RecordNotice(notice=Notice.MEASURED):
                self.known_kinds.add(command.subject)
            case RecordNotice(notice=Notice.CIRCUIT_OPENED):
                self.open_kinds.add(command.subject)
            case RecordNotice(notice=Notice.CIRCUIT_CLOSED):
                self.open_kinds.discard(command.subject)
            case _:
                pass

    def _leave(self, run: Run) -> None:
        """What it leaves behind has no parent any more, or its parent's."""
        run.is_live = False
        for child in self.runs.values():
            if child.parent is run:
                child.parent = None if run.is_isolated or child.is_isolated else run.parent
            if child.origin is run:
                child.origin = None

    def _start(self, command: StartRun) -> None:
        run = self.runs[command.id]
        run.waits_for = None
        run.epoch, run.began_s = command.epoch, self.now_s
        run.slot = self.slot_for(run) or self._new_slot(run, command)
        if run.slot.root is run and not run.slot.members:
            self._note_turn(run, run.slot)
        run.slot.members[run.id] = run
        run.slot.is_second_try |= command.deaths > 0
        run.slot.is_waiting = False  # a child that starts there computes
        self.scheduler.handle(AttemptStarted(now_s=self.now_s, id=run.id, epoch=run.epoch))

    def _note_turn(self, run: Run, slot: Slot) -> None:
        """Its age may have given it a turn before higher ones, which uses it up."""
        in_line = [
            other for other in self.runs.values() if other.is_waiting and (other.parent is None or other.is_isolated)
        ]
        higher = [other for other in in_line if other.priority > run.priority]
        if not higher:
            return
        is_calm = all(host.pressure is Pressure.NORMAL for host in self.takers)
        is_plain = all(other.kind not in self.open_kinds and other.pushed_out_by is None for other in higher)
        is_plain = is_plain and not any(self.is_too_large(other) for other in higher)
        if is_calm and is_plain and all(place(other) > latest_place(run) for other in higher):
            slot.keeps_until_s = self.now_s + LIMITS.min_run_s
        self._age_from(run, self.now_s if slot.keeps_until_s else run.queued_s, self.now_s)

    def _age_from(self, run: Run, earliest_s: float, latest_s: float) -> None:
        """The parent that waits for an isolated child stays behind it."""
        run.queued_s, run.latest_queued_s = earliest_s, latest_s
        if run.is_isolated and run.parent:
            parent = run.parent
            self._age_from(parent, _behind(parent.queued_s, earliest_s), _behind(parent.latest_queued_s, latest_s))

    def slot_for(self, run: Run) -> Slot | None:
        """A child joins its parent's, or that of its parent's parent; what was lost, the one it left."""
        if run.is_isolated:
            return None
        if run.home and run.home.members and run.home.stop_sent_s is None:
            return run.home
        ancestor = run.parent
        while ancestor is not None and ancestor.slot is None:
            ancestor = None if ancestor.is_isolated else ancestor.parent
        return ancestor.slot if ancestor else None

    def _new_slot(self, run: Run, command: StartRun) -> Slot:
        self.numbers += 1
        slot = Slot(command.host, run.priority, self.numbers, self.now_s, command.memory_bytes, command.is_alone, run)
        for other in self.hosts[command.host].slots.values():
            other.was_joined = True
        self.hosts[command.host].slots[self.numbers] = slot
        return slot


def upwards(run: Run) -> Iterator[Run]:
    """The run, its parent, and so on, as far as they share a worker."""
    yield run
    while run.parent is not None and not run.is_isolated:
        run = run.parent
        yield run


def _behind(parent_s: float, child_s: float) -> float:
    return parent_s if parent_s > child_s else child_s + 0.001


def place(run: Run) -> tuple[bool, float, int]:
    """Its place in line, at the earliest."""
    return _place(run, run.queued_s)


def latest_place(run: Run) -> tuple[bool, float, int]:
    return _place(run, run.latest_queued_s)


def _place(run: Run, queued_s: float) -> tuple[bool, float, int]:
    behind_s = (Priority.HIGH - run.priority) * QUEUE.aging_s
    return run.priority is not Priority.CRITICAL, queued_s + behind_s, run.arrival
