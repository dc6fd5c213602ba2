"""What must never happen, checked on every command and after every event of a model world
(tests.agents.scheduler.world).
"""

from typing import assert_never

from headrace.agents.scheduler.events import (
    AttemptEnded,
    DropHost,
    EndRun,
    GrantPermits,
    KillHeartbeat,
    KillRun,
    MemoryMeasured,
    MemoryWanted,
    Notice,
    ParkRun,
    PreemptRun,
    PriorityRaised,
    Reclaim,
    RecordNotice,
    RecordShortage,
    Refusal,
    RejectRun,
    ReserveLess,
    ResumeRun,
    SchedulerCommand,
    SchedulerEvent,
    SetPriority,
    SkipHeartbeat,
    SkipRun,
    StartHeartbeat,
    StartRun,
    StopReason,
    Submitted,
    Tick,
)
from headrace.exit_causes import ExitCause
from headrace.memory.governor import Pressure
from headrace.priority import Priority
from tests.agents.scheduler.broken import Broken, check
from tests.agents.scheduler.circuit_rules import CircuitRules
from tests.agents.scheduler.world import (
    BUDGET,
    KEPT_BACK,
    LIMITS,
    PERMIT_BYTES,
    QUEUE,
    SILENT_AFTER_S,
    WAIT_MARGIN,
    HostModel,
    Run,
    Slot,
    World,
    latest_place,
    place,
    upwards,
)

_LOWEST_STARTED = (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL)
_FOR_MEMORY = (StopReason.PRESSURE, StopReason.MAKES_ROOM)
_PUSHES_OUT = (StopReason.PRESSURE, StopReason.EMERGENCY)


class CheckedWorld(World):
    def __init__(self, slots: int, hosts: int) -> None:
        self._circuits = CircuitRules(self)
        self._ended_with_parents: set[int] = set()
        super().__init__(slots, hosts)

    def check_event(self, event: SchedulerEvent) -> None:
        self._circuits.before(event)

    def check_command(self, command: SchedulerCommand, event: SchedulerEvent) -> None:
        self._circuits.check_command(command, event)
        match command:
            case StartRun():
                self._check_start(command)
            case PreemptRun() | KillRun():
                self._check_stop(command, event)
            case ResumeRun():
                self._check_resume(command)
            case SkipRun():
                self._check_skip(command)
            case EndRun():
                self._check_settled(command)
            case ParkRun():
                check(command.id in self.runs, "what is parked has not ended")
            case RecordShortage():
                run = self.runs.get(command.id)
                check(
                    run and run.is_waiting and self.is_too_large(run, may_be=True),
                    "a shortage is told of what fits nowhere now",
                )
                check(not run.is_shortage_told, "a shortage is told once")
            case RejectRun():
                if command.refusal is Refusal.BUDGET_TOO_SMALL:
                    self._check_could_never_fit(self.runs[command.id])
                check(isinstance(event, Submitted) and event.id == command.id, "only a submission is refused")
            case ReserveLess():
                slot = self.runs[command.id].slot
                check(slot and slot.root.declared is None, "what is declared stays reserved")
                is_measured = self.hosts[slot.host].lendable is not None  # by itself
                in_use = slot.read_bytes if is_measured else 0
                check(in_use <= command.memory_bytes < slot.reserved, "what is in use stays reserved")
            case SetPriority():
                run = self.runs.get(command.id)
                check(run and run.priority < command.priority, "a priority is raised, never lowered")
            case GrantPermits():
                self._check_grant(command)
            case StartHeartbeat():
                check(command.name not in self.heartbeats, "never two heartbeats of one name at once")
                beating = len(self.heartbeats) - len(self.stopping_heartbeats)
                check(beating < QUEUE.heartbeats_at_once, "heartbeats stay in their lane")
                host = self.hosts.get(self.heartbeat_hosts[command.name])
                check(host and host.pressure is Pressure.NORMAL, "heartbeats are skipped above the first level")
            case KillHeartbeat():
                check(self.heartbeats.get(command.name) == command.epoch, "no command for a heartbeat that has ended")
            case DropHost():
                host = self.hosts.get(command.host)
                check(host is not None and self._is_past(host), "only a host that fell silent is dropped")
            case RecordNotice():
                self._check_note(command)
            case SkipHeartbeat() | Reclaim():
                pass
            case _:
                assert_never(command)

    def check_world(self, event: SchedulerEvent) -> None:
        self._circuits.after()
        if isinstance(event, Tick):
            check(not any(self._is_past(host) for host in self.hosts.values()), "a host that fell silent is dropped")
        check(len(self.scheduler) == len(self.runs), "everything submitted ends once or is visibly waiting")
        if isinstance(event, PriorityRaised) and (raised := self.runs.get(event.id)):
            lower = [run for run in self.with_children(raised) if run.priority < event.priority]
            check(not lower, "who is submitted again with a higher priority has it, and its children have")
        if isinstance(event, MemoryMeasured) and not self.is_closing:
            slots = [slot for host in self.hosts.values() for slot in host.slots.values()]
            awaiting = sum(len(slot.members) for slot in slots if slot.is_waiting)
            counted = self.scheduler.snapshot().awaiting_count
            check(counted == awaiting, "a slot computes only where one of its runs does")
            self._check_nobody_is_passed_over_in_silence()
            self._check_lower_work_makes_room()
            self._check_nobody_waits_for_what_is_free()
            self._check_nobody_waits_for_who_cannot_start_there(self.hosts.get(event.host))
        for host in self.hosts.values():
            self._note_idle(host, is_read=isinstance(event, MemoryMeasured))

    def _is_past(self, host: HostModel) -> bool:
        return host.heard_s + SILENT_AFTER_S <= self.now_s

    def _check_start(self, command: StartRun) -> None:
        run, host = self.runs.get(command.id), self.hosts.get(command.host)
        if run is None or host is None:
            raise Broken("no command for work that has ended, or for a host that is gone")
        check(run.slot is None, "what runs is not started again")
        check(command.epoch == run.epoch + 1, "each start has the next epoch")
        check(not self.is_closing, "nothing starts while closing")
        check(run.id not in self._ended_with_parents, "what is lost takes the runs in its worker along")
        check(not run.ends_warden, "what ends the warden alone, again and again, is not started again")
        check(command.deaths <= run.deaths + run.kills, "only what used all that it was owed is set aside")
        check(not run.deaths or run.retries_oom, "what more memory does not help is not tried again")
        pushed_out = run.preemptions + run.others_had_it - run.short_deaths
        check(command.preemptions <= pushed_out, "what had to go on with less is not counted as preempted for that")
        slot = self.slot_for(run)
        check(slot or not host.is_leaving, "a host that is leaving takes no new runs")
        if slot is not None and slot.is_waiting:
            check(_computing(host) < host.slot_count, "never above the slots")
        if slot is None:
            self._check_room(run, host, command)
            self._check_alone(run, host, command)
            self._check_promise(run, host, command)
            self._check_order(run, host)

    def _check_room(self, run: Run, host: HostModel, command: StartRun) -> None:
        slots = host.slots.values()
        check(_computing(host) < host.slot_count, "never above the slots")
        reserved = sum(slot.charge for slot in slots)
        check(reserved + command.memory_bytes <= host.budget, "admitted reservations never above the budget")
        check(host.used + command.memory_bytes <= host.budget, "what is in use counts too")
        check(command.memory_bytes >= (run.declared or 0), "what is declared is reserved")
        if host.lendable is not None:
            lent = reserved + command.memory_bytes + KEPT_BACK * (_computing(host) + 1)
            check(lent <= host.lendable, "what a start was promised can be lent to it")
        check(run.priority >= _LOWEST_STARTED[host.pressure], "pressure keeps its levels out")
        was_pushed_out = run.preemptions and not run.deaths
        if (
            was_pushed_out
            and run.pushed_out_by is StopReason.PRESSURE
            and slots
            and run.priority is not Priority.CRITICAL
        ):
            check(host.pressure < Pressure.PREEMPTING, "what pressure pushed out comes back when it has fallen")

    def _check_resume(self, command: ResumeRun) -> None:
        run = self.runs.get(command.id)
        if run is None or run.slot is None or run.epoch != command.epoch:
            raise Broken("no command for work that has ended or was replaced")
        slot, host = run.slot, self.hosts[run.slot.host]
        check(run.id in slot.resuming, "only what waited goes on, and once")
        if slot.is_waiting:  # else it is one of two runs of a slot that goes on
            check(_computing(host) < host.slot_count, "never above the slots")
            others = sum(other.charge for other in host.slots.values() if other is not slot)
            has_memory = others + slot.reserved <= host.budget
            check(has_memory or not _computing(host), "what waited goes on beside others only with its memory")
            check(has_memory or command.is_short, "what waited goes on with its memory, or is known to be short of it")
            if command.is_short and host.lendable is not None and slot.root.declared is not None:
                behind = [other for other in host.slots.values() if self._may_stop_for_promise(other, slot)]
                is_enough = self._could_be_had(host, slot, behind)
                check(not is_enough, "what was promised is there after a wait, where those behind only wait")

    def _may_stop_for_promise(self, slot: Slot, before: Slot) -> bool:
        only_waits = slot.is_waiting and not slot.resuming and slot.stop_sent_s is None
        may_stop = only_waits and slot.priority is not Priority.CRITICAL and _goes_before(slot, before)
        return may_stop and not self._is_ready(slot) and not any(member.effects for member in slot.members.values())

    def _is_ready(self, slot: Slot) -> bool:
        """Whether one of its runs could go on, or a child start there."""
        starting = [run for run in self.runs.values() if run.slot is None and self.slot_for(run) is slot]
        return bool(slot.resuming or starting)

    def _could_be_had(self, host: HostModel, slot: Slot, leaving: list[Slot]) -> bool:
        """Whether the slot certainly could go on with its promise, if these left."""
        stays = [other for other in host.slots.values() if other is not slot and other not in leaving]
        most = sum(int(max(other.reserved, other.read_bytes) * 1.25) + WAIT_MARGIN for other in (slot, *stays))
        survey = self.in_use.get(host.name, 0) * PERMIT_BYTES + self.granted.get(host.name, 0) * PERMIT_BYTES
        freed = sum(other.charge for other in leaving)
        has_room = host.used - slot.read_bytes - freed + most + survey <= host.budget
        return bool(leaving) and has_room and most + survey + 2 * KEPT_BACK <= host.lendable

    def _check_promised_before(self, slot: Slot) -> None:
        host = self.hosts[slot.host]
        ready = [other for other in host.slots.values() if other is not slot and self._is_ready(other)]
        is_behind = any(self._may_stop_for_promise(slot, other) for other in ready)
        check(is_behind, "only what waits behind it stops for what was promised")
        check(not _computing(host), "nothing stops for what was promised where something computes")

    def _check_alone(self, run: Run, host: HostModel, command: StartRun) -> None:
        slots = host.slots.values()
        check(not (command.is_alone and slots), "what runs alone does")
        is_waited_for = run.parent is not None and run.parent.slot is not None and run.parent.slot.is_waiting
        if run.priority is not Priority.CRITICAL and not is_waited_for:
            check(not any(slot.is_alone for slot in slots), "nothing joins what runs alone, but CRITICAL work")
        is_often_preempted = run.preemptions - run.kills >= LIMITS.most_preemptions
        check(command.is_alone or not is_often_preempted, "after some preemptions it runs alone")
        is_suspected = run.warden_ends >= QUEUE.most_losses
        check(command.is_alone or not is_suspected, "what may be ending the warden is started alone")

    def _check_promise(self, run: Run, host: HostModel, command: StartRun) -> None:
        """It has what it is promised, or all that the host has beside nothing else."""
        there = int(host.read_budget * LIMITS.emergency_at) - host.highest_base - KEPT_BACK - 2 * PERMIT_BYTES
        if run.declared is None and run.kind not in self.known_kinds:
            has_waited = self.now_s - run.submitted_s >= LIMITS.calm_s
            share = int(((there + KEPT_BACK) // host.slot_count - KEPT_BACK) * 0.95)
            promised = min(QUEUE.slot_memory_bytes, share if has_waited else there)
            check(command.memory_bytes >= promised, "of a new kind it is promised a slot's memory")
        if self._has_died(run):
            promised = min(2 * QUEUE.slot_memory_bytes, there)
            check(command.memory_bytes >= promised, "after it ran out of memory it has more")

    def _has_died(self, run: Run) -> bool:
        """It, or a child that starts with it."""
        held = [child for child in self.runs.values() if child.slot is None and run in upwards(child)]
        return any(each.deaths for each in (run, *held))

    def _may_be_aside(self, run: Run) -> bool:
        is_often_preempted = run.preemptions + run.others_had_it >= LIMITS.most_preemptions
        if run.priority is Priority.CRITICAL:
            return False
        is_suspected = run.warden_ends >= QUEUE.most_losses
        return is_often_preempted or is_suspected or bool(run.kills) or self._has_died(run)

    def _is_in_time(self, run: Run) -> bool:
        return self.now_s - run.out_since_s < QUEUE.passed_over_s

    def _check_order(self, run: Run, host: HostModel) -> None:
        for slot in host.slots.values():
            is_ready = slot.is_waiting and slot.resuming and slot.priority >= run.priority
            needs_memory = slot.reserved > slot.read_bytes
            check(not is_ready or needs_memory, "what waited goes on ahead of new starts")
        if len(self.hosts) == 1 and not _computing(host):
            leaving = [slot for slot in host.slots.values() if _is_told(slot, StopReason.PROMISED_BEFORE)]
            is_made = any(self._is_ready(slot) and slot.priority >= run.priority for slot in host.slots.values())
            is_kept = is_made and any(self._is_stopping(slot) for slot in leaving)
            check(not is_kept, "no start takes what is made free for a promise")
        others = [other for other in self.runs.values() if other is not run and self._is_in_line(other)]
        if len(self.takers) > 1:
            before = [other for other in others if latest_place(other) < place(run) and not self._may_be_aside(other)]
            elsewhere = [other for other in self.takers if other is not host]
            stuck = [other for other in before if other.declared and not self._could_be_held(other, elsewhere)]
            if all(other.pressure is Pressure.NORMAL for other in self.takers):
                check(not stuck, "nobody starts on the only host that could hold who has waited longer")
            others = [other for other in others if self._has_a_place_on(other, host)]
        if run.priority is not Priority.CRITICAL:
            waits = any(other.priority is Priority.CRITICAL for other in others)
            check(not waits, "CRITICAL never waits behind others")
        if all(host.pressure is Pressure.NORMAL for host in self.takers):
            before = [other for other in others if latest_place(other) < place(run)]
            aside = [other for other in before if self._may_be_aside(other)]
            passed = [other for other in before if other.kind in self.open_kinds and other not in aside]
            check(not passed, "what has started before is never held by a circuit")
            check(len(aside) == len(before), "nobody passes who has waited longer, age counted")
            ahead = [other for other in others if place(other) < place(run) and self._may_be_aside(other)]
            is_up = aside and all(other.pushed_out_by is None and not self._is_in_time(other) for other in ahead)
            check(not is_up, "who waits aside is not passed for ever")

        for level in (Priority.NORMAL, Priority.HIGH):
            level_runs = [other for other in self.runs.values() if other is not run and other.priority is level]
            pushed_out = [other for other in level_runs if other.pushed_out_by in _PUSHES_OUT]
            first = min((each for each in pushed_out if self._is_in_line(each, may_be=True)), key=place, default=None)
            if first in others and latest_place(first) < place(run) and not self._may_be_aside(first):
                check(not self._was_out_too_long(first), "what was pushed out is not passed for ever")

    def _could_be_held(self, run: Run, hosts: list[HostModel]) -> bool:
        return any((run.declared or QUEUE.least_run_bytes) <= host.room_alone for host in hosts)

    def _has_a_place_on(self, run: Run, host: HostModel) -> bool:
        """Whether a run that waits certainly could start there."""
        is_plain = not (run.preemptions or run.warden_ends or run.is_child or host.zero or host.is_leaving)
        is_calm = host.pressure is Pressure.NORMAL and not any(slot.is_waiting for slot in host.slots.values())
        return is_plain and is_calm and self._will_fit(run, host, [])

    def _check_nobody_waits_for_who_cannot_start_there(self, host: HostModel | None) -> None:
        """Where those ahead of a run need more than a host has, they do not keep the run from it."""
        if host is None or len(self.hosts) < 2 or self.granted:
            return
        in_line = [run for run in self.runs.values() if run.is_waiting and (run.parent is None or run.is_isolated)]
        is_plain = all(run.declared and not run.epoch and run.kind not in self.open_kinds for run in in_line)
        is_calm = all(other.pressure is Pressure.NORMAL for other in self.takers)
        if len(self.takers) < 2 or not is_plain or not is_calm:
            return
        for run in in_line:
            ahead = [other for other in in_line if other is not run and place(other) < latest_place(run)]
            is_next = ahead and not self._could_be_held(min(ahead, key=lambda each: each.declared), [host])
            waits = is_next and not self.is_too_large(run) and self._has_a_place_on(run, host)
            check(not waits, "nobody waits behind who cannot start on a host that is free")

    def _was_out_too_long(self, run: Run) -> bool:
        is_admitted = any(run.priority >= _LOWEST_STARTED[host.pressure] for host in self.takers)
        return is_admitted and self.now_s - run.out_since_s >= QUEUE.aging_s

    def _is_in_line(self, run: Run, *, may_be: bool = False) -> bool:
        """Certainly; or maybe, where it cannot be told from here whether it is too large."""
        is_held = run.kind in self.open_kinds and not run.epoch and not run.is_child
        is_by_itself = run.parent is None or run.is_isolated
        return run.is_waiting and not is_held and is_by_itself and not self.is_too_large(run, may_be=not may_be)

    def _check_skip(self, command: SkipRun) -> None:
        run = self.runs.get(command.id)
        if run is None or run.slot is not None:
            raise Broken("only what waits is skipped")
        check(
            run.priority is Priority.LOW and command.why is StopReason.PRESSURE, "only LOW is skipped, with its reason"
        )
        check(self._presses_everywhere(), "LOW is skipped under pressure only")
        check(run.skipped_in != self.episodes, "skipped once in each episode")

    def _presses_everywhere(self) -> bool:
        return all(host.pressure is not Pressure.NORMAL for host in self.takers)

    def _check_nobody_is_passed_over_in_silence(self) -> None:
        if not self.takers or not self._presses_everywhere():
            return
        has_slot = any(_computing(host) < host.slot_count for host in self.takers)
        # One of an open kind may be in line as its probe: then LOW waits for its turn behind it.
        may_be_in_line = [
            run for run in self.runs.values() if run.is_waiting and (run.parent is None or run.is_isolated)
        ]
        if has_slot and all(run.priority is Priority.LOW for run in may_be_in_line):
            told = all(run.skipped_in == self.episodes for run in may_be_in_line if self._is_in_line(run))
            check(told, "LOW work that pressure keeps out is told so")

    def _check_stop(self, command: PreemptRun | KillRun, event: SchedulerEvent) -> None:
        run = self.runs.get(command.id)
        if run is None or run.slot is None or run.epoch != command.epoch:
            raise Broken("no command for work that has ended or was replaced")
        if isinstance(event, MemoryMeasured) and command.why in _PUSHES_OUT:
            check(command.host == event.host == run.slot.host, "a reading presses on its own host only")
        if isinstance(event, AttemptEnded) and command.why is StopReason.WITH_PARENT:
            is_cut = isinstance(command, KillRun) and run.effects > 0
            check(not is_cut, "no side effect is cut because a parent has stopped")
        if run.slot.leader is not run or command.reading is None:
            return
        if isinstance(command, PreemptRun) and command.why in _FOR_MEMORY:
            self._check_preempt(run, run.slot, command)
        if command.why is StopReason.FOR_ISOLATED_CHILD:
            is_idle = not _computing(self.hosts[run.slot.host])
            # One that was started again may wait for a child of its last attempt.
            children = [each for each in self.runs.values() if each.is_isolated and each.is_waiting and each.parent]
            is_parent = any(child.parent.slot is run.slot for child in children)
            check(is_idle and is_parent, "a parent stops for its child where nothing computes")
        if command.why is StopReason.PROMISED_BEFORE:
            self._check_promised_before(run.slot)
        if command.why is StopReason.EMERGENCY:
            self._check_kill(run.slot, command)
        if command.why is StopReason.OTHERS_NEED_IT:
            check(isinstance(event, MemoryWanted), "memory is made for who wants it")
            self._check_gives_memory(run.slot, self.runs[event.id].slot, command, event)

    def _check_gives_memory(self, slot: Slot, wants: Slot, command: PreemptRun | KillRun, event: MemoryWanted) -> None:
        check(not any(member.effects for member in slot.members.values()), "never inside a side effect")
        others = [other for other in self.hosts[slot.host].slots.values() if other is not slot]
        stopping = [other for other in others if self._is_stopping(other)]
        check(slot.priority <= wants.priority, "only who goes before is made memory for")
        if isinstance(command, KillRun):
            check(not any(_is_killed(other) for other in stopping), "one at a time")
            lower = [other for other in stopping if not any(member.effects for member in other.members.values())]
            check(not any(_goes_before(other, slot) for other in lower), "the lowest is killed for memory first")
            check(event.is_urgent and slot.priority < wants.priority, "killed for memory only before a higher one dies")
            check(slot.stop_sent_s is not None, "told to stop before it is killed for memory")
            return
        check(all(other.is_patient for other in stopping), "one at a time")
        if slot.priority is wants.priority:
            check(wants.read_bytes < self.owed(wants), "of its equals none stops for who has all that it is owed")
        may_stop = [other for other in others if other.stop_sent_s is None and other.priority < wants.priority]
        lower = [other for other in may_stop if not any(member.effects for member in other.members.values())]
        check(not any(_goes_before(other, slot) for other in lower), "the lowest makes memory first, of it the newest")

    def _check_preempt(self, run: Run, slot: Slot, command: PreemptRun) -> None:
        check(not any(member.effects for member in slot.members.values()), "never inside a side effect")
        check(run.priority is not Priority.CRITICAL, "CRITICAL work is never preempted")
        others = [other for other in self.hosts[slot.host].slots.values() if other is not slot]
        stopping = [other for other in others if self._is_stopping(other)]
        if command.why is StopReason.PRESSURE:
            check(all(other.is_patient and not command.is_patient for other in stopping), "one at a time")
            self._check_preempt_for_memory(run, slot, others, command)
        else:
            leaving = [other for other in stopping if command.is_patient or not other.is_patient]
            self._check_makes_room(slot, command, leaving)
        lower = [other for other in others if _goes_before(other, slot) and self._could_go(other, command)]
        check(not lower, "the lowest priority goes first, and of it the newest")

    def _check_preempt_for_memory(self, run: Run, slot: Slot, others: list[Slot], command: PreemptRun) -> None:
        check(others, "the last one is not preempted")
        check(command.reading and command.reading.pressure >= Pressure.PREEMPTING, "preempted at its level only")
        check(not command.is_patient, "pressure does not wait")
        if any(other.priority > slot.priority for other in others):
            return  # for their sake, whatever it loses
        check(run.has_progress, "only what loses nothing is preempted")
        check(run.preempts_sent < LIMITS.most_preemptions, "at most so many preemptions")
        if run.preemptions > run.kills:  # which may have counted as deaths of its own
            check(self.now_s - run.began_s >= LIMITS.min_run_s, "a minimum run time before being preempted again")

    def _check_makes_room(self, slot: Slot, command: PreemptRun, leaving: list[Slot]) -> None:
        host = self.hosts[slot.host]
        higher = [run for run in self.runs.values() if run.is_waiting and run.priority > slot.priority]
        resuming = [other for other in host.slots.values() if other.resuming and other.priority > slot.priority]
        aside = [run for run in self.runs.values() if run.is_waiting and self._may_be_aside(run)]
        turns = [run for run in aside if run.priority >= slot.priority and not self._is_in_time(run)]
        check(higher or resuming or turns, "only lower work makes room")
        levels = [each.priority for each in (*higher, *resuming, *turns)]
        check(command.is_patient or Priority.CRITICAL in levels, "only CRITICAL work cuts steps short")
        if command.is_patient:
            is_in_line = any(run.priority is Priority.CRITICAL and self._is_in_line(run) for run in higher)
            has_a_choice = len(self.takers) > 1  # it may wait for another host
            check(resuming or not is_in_line or has_a_choice, "CRITICAL work does not wait for steps")
            check(self.now_s >= slot.keeps_until_s, "a turn that age has given is not cut short")
        if slot.is_waiting:
            check(_will_have_a_slot(host, leaving), "what waits makes no room where a slot is lacking")
        is_plain = (
            host.pressure is Pressure.NORMAL and not host.zero and not any(s.resuming for s in host.slots.values())
        )
        if is_plain and len(self.hosts) == 1:
            lacks_memory = _will_have_a_slot(host, [])
            check(not lacks_memory or not host.has_unread_exit, "what has stopped shows in a reading before more stops")
            in_line = [run for run in self.runs.values() if run.is_waiting and (run.parent is None or run.is_isolated)]
            is_enough = leaving and all(self._will_fit(run, host, leaving) for run in in_line)
            check(not is_enough, "no more stop than the next run needs")
        stay = [other for other in host.slots.values() if other.priority >= max(levels) and other.stop_sent_s is None]
        stays = sum(other.charge for other in stay)
        least = min((run.declared or QUEUE.least_run_bytes for run in self.runs.values() if run.is_waiting), default=0)
        check(resuming or turns or least + stays <= host.budget, "nobody stops where that does not help")

    def _will_fit(self, run: Run, host: HostModel, leaving: list[Slot]) -> bool:
        """Whether the run certainly fits once these have left."""
        if run.declared is None or run.epoch or self._has_died(run) or host.name in self.granted:
            return False
        stays = [slot for slot in host.slots.values() if slot not in leaving]
        taken = sum(max(slot.reserved, slot.read_bytes, slot.grown) for slot in stays)
        taken += KEPT_BACK * (_computing(host) + 1)
        has_memory = taken + host.used + run.declared <= host.budget * LIMITS.preempt_at
        return has_memory and _will_have_a_slot(host, leaving) and not any(slot.is_alone for slot in stays)

    def _could_go(self, slot: Slot, command: PreemptRun) -> bool:
        """Whether the slot could have been stopped in place of another that is higher, or older."""
        host = self.hosts[slot.host]
        if any(member.effects for member in slot.members.values()):
            return False
        if slot.stop_sent_s is not None and (command.is_patient or not slot.is_patient):
            return False
        if slot.is_waiting and command.why is StopReason.MAKES_ROOM:
            return False  # it may be a slot that is lacking
        if command.why is StopReason.PRESSURE:
            others = host.slots.values()
            return any(other.priority > slot.priority for other in others) or self._is_preemptible(slot)
        above = [run for run in self.runs.values() if run.is_waiting] + [s for s in host.slots.values() if s.resuming]
        if not any(each.priority > slot.priority for each in above) and not self._is_preemptible(slot):
            return False  # it would make room for an equal
        # A turn that age has given cannot always be told from here: its root has waited, then.
        return not command.is_patient or slot.root.latest_queued_s < slot.started_s

    def _check_lower_work_makes_room(self) -> None:
        """Where only a slot is lacking, and it is certain who is first: this is told, not guessed."""
        in_line = [run for run in self.runs.values() if run.is_waiting and (run.parent is None or run.is_isolated)]
        host = next(iter(self.hosts.values()), None)
        if not in_line or host is None or len(self.hosts) > 1 or host.is_leaving or self.granted:
            return
        first, level = min(in_line, key=place), max(run.priority for run in in_line)
        is_plain = all(
            run.kind not in self.open_kinds
            and run.declared
            and not (run.preemptions or run.warden_ends or run.is_isolated or self._has_died(run))
            for run in in_line
        )
        # Below that line no floor counts as the zero.
        is_calm = host.pressure is Pressure.NORMAL and host.used < LIMITS.shrink_until * host.budget
        if not is_plain or first.declared is None or not is_calm:
            return
        slots = list(host.slots.values())
        is_stopping = any(slot.stop_sent_s is not None or slot.is_alone for slot in slots)
        reserved = sum(slot.reserved for slot in slots)
        fits = reserved + host.used + first.declared <= host.budget * LIMITS.preempt_at
        could_go = [slot for slot in slots if slot.priority < level and slot.root.latest_queued_s < slot.started_s]
        could_go = [
            slot
            for slot in could_go
            if not slot.is_waiting and not any(member.effects for member in slot.members.values())
        ]
        check(not could_go or is_stopping or not fits, "a higher priority does not wait for lower work")

    def _check_nobody_waits_for_what_is_free(self) -> None:
        """The first in line that does not wait aside starts where there is a slot, and memory for it whatever it is."""
        host = next(iter(self.hosts.values()), None)
        in_line = [run for run in self.runs.values() if run.is_waiting and (run.parent is None or run.is_isolated)]
        in_line = [run for run in in_line if not (self._may_be_aside(run) and self._is_in_time(run))]
        in_line = [run for run in in_line if not self.is_too_large(run)]
        if not in_line or host is None or len(self.hosts) > 1 or host.is_leaving or self.granted:
            return
        first = min(in_line, key=place)
        # Where runs are not measured one by one, what a slot was last seen to use may be long ago.
        is_plain = not first.epoch and not first.is_isolated and first.kind not in self.open_kinds
        is_plain = is_plain and host.lendable is not None
        is_calm = host.pressure is Pressure.NORMAL and host.used < LIMITS.shrink_until * host.budget
        slots = host.slots.values()
        if not is_plain or not is_calm or host.zero or any(slot.is_alone or slot.resuming for slot in slots):
            return
        need = first.declared or (BUDGET if first.kind in self.known_kinds else QUEUE.slot_memory_bytes)
        taken = sum(max(slot.reserved, slot.read_bytes, slot.grown) for slot in slots)
        taken += KEPT_BACK * (_computing(host) + 1)
        is_free = taken + host.used + need <= host.budget * LIMITS.preempt_at
        check(not is_free or _computing(host) >= host.slot_count, "nobody waits for memory that is free")

    def _note_idle(self, host: HostModel, *, is_read: bool) -> None:
        """Where nothing has computed for long, a parent is stopped that waits for a child in the queue: for the child;
        or where that fits nowhere, for others in line, or since what it holds may be taken for the floor.
        """
        slots = host.slots.values()
        starting = [run for run in self.runs.values() if run.slot is None and self.slot_for(run) in slots]
        is_idle = slots and all(s.is_waiting and not s.resuming and s.stop_sent_s is None for s in slots)
        if not is_idle or starting or self.is_closing:
            host.idle_since_s = None
        elif is_read and host.idle_since_s is None:
            host.idle_since_s = self.now_s
        elif is_read and self.now_s - host.idle_since_s >= LIMITS.hopeless_after_s:
            awaited = [run for run in self.runs.values() if run.is_isolated and run.is_waiting and run.parent]
            parents = [run.parent for run in awaited if run.parent.slot in slots]
            in_the_way = [run for run in parents if not any(each.effects for each in run.slot.members.values())]
            is_needed = host.lendable is None or any(self._is_in_line(run) for run in self.runs.values())
            check(not in_the_way or not is_needed, "no parent stays in the way of its child or of others")

    def _check_kill(self, slot: Slot, command: KillRun) -> None:
        reading = command.reading
        assert reading is not None
        room = reading.budget_bytes - reading.zero_bytes
        is_high = reading.used_bytes - reading.zero_bytes >= LIMITS.emergency_at * room
        check(is_high or room <= 0, "nothing is killed for memory below the last level")
        others = self.hosts[slot.host].slots.values()
        lower = [other for other in others if _goes_before(other, slot) and other.stop_sent_s is None]
        check(not lower, "the lowest priority is killed first, and of it the newest")

    def _is_stopping(self, slot: Slot) -> bool:
        return slot.stop_sent_s is not None and self.now_s - slot.stop_sent_s < LIMITS.stop_s

    def _is_preemptible(self, slot: Slot) -> bool:
        leader = slot.leader
        return (
            slot.stop_sent_s is None
            and leader.has_progress
            and not (leader.preemptions or leader.others_had_it)
            and not slot.is_alone
            and not any(member.effects for member in slot.members.values())
        )

    def _check_settled(self, command: EndRun) -> None:
        run = self.runs.get(command.id)
        if run is None:
            raise Broken("everything ends exactly once")
        check(run.slot is None, "nothing is settled while it runs")
        if command.cause is ExitCause.LOST and run.last_slot is not None:
            self._ended_with_parents |= {child.id for child in self.runs.values() if _shares_worker(child, run)}
        if command.cause is ExitCause.OUT_OF_MEMORY:
            deaths = run.deaths + run.kills
            check(deaths > 0, "only what used all that it was owed is set aside")
            check(deaths > 1 or not run.retries_oom, "retried once before it is set aside")
        if command.cause is ExitCause.BUDGET_TOO_SMALL:
            self._check_could_not_fit(run)
            check(command.shortage and command.shortage.id == run.id, "what is given up is told what it lacked")
        if command.cause is ExitCause.LOST:
            is_lost = any(
                each.losses > QUEUE.most_losses or each.ends_warden or each.id in self._ended_with_parents
                for each in upwards(run)
            )
            check(is_lost, "only what lost its own worker again and again is lost")

    def _check_could_not_fit(self, run: Run) -> None:
        if self.now_s - run.fitted_s < LIMITS.gives_up_after_s:
            self._check_could_never_fit(run)

    def _check_could_never_fit(self, run: Run) -> None:
        needs = run.declared or QUEUE.least_run_bytes
        check(
            needs > (self.largest if run.epoch else self.best_room),
            "only what could never fit, or not for long, is given up",
        )

    def _check_grant(self, command: GrantPermits) -> None:
        host = self.hosts[command.host]
        if command.permits == 0 and host.pressure < Pressure.PREEMPTING and not host.is_leaving:
            check(any(slot.is_alone for slot in host.slots.values()) or self._is_next_huge(host), "surveys go on")
        reserved = sum(slot.charge for slot in host.slots.values())
        more = command.permits - self.granted[command.survey]
        if more > 0 and command.permits > 1:
            check(reserved + command.permits * PERMIT_BYTES <= host.budget, "permits never above the budget")

    def _is_next_huge(self, host: HostModel) -> bool:
        room = host.budget - host.used - 2 * PERMIT_BYTES
        if host.lendable is not None:
            room = min(room, host.lendable - KEPT_BACK - 2 * PERMIT_BYTES)
        return any(
            max(run.declared or QUEUE.least_run_bytes, run.needs) > room or run.kills for run in self.runs.values()
        )

    def _check_note(self, note: RecordNotice) -> None:
        if note.notice is Notice.LEVEL and note.reading is not None:
            host = self.hosts[note.subject]
            if note.reading.pressure < host.pressure:
                check(self.now_s - host.changed_s >= LIMITS.calm_s, "no level is left faster than hysteresis allows")
        if note.notice is Notice.MEASURED and note.reading is not None:
            slots = [slot for slot in self.hosts[note.reading.host].slots.values() if slot.root.kind == note.subject]
            is_old = any(self.now_s - slot.started_s >= LIMITS.calm_s for slot in slots)
            check(is_old, "what goes on is measured once it is steady")
        if note.notice is Notice.NEW_ZERO:
            check(not self.hosts[note.subject].slots, "only with nothing running the floor becomes the new zero")


def _shares_worker(child: Run, root: Run) -> bool:
    """Whether a child runs in the slot that the root has left, or waits to start with it."""
    if child.slot is not None and child.slot is not root.last_slot:
        return False
    return child is not root and any(each is root for each in upwards(child))


def _computing(host: HostModel) -> int:
    return sum(not slot.is_waiting for slot in host.slots.values())


def _will_have_a_slot(host: HostModel, leaving: list[Slot]) -> bool:
    return _computing(host) - sum(not slot.is_waiting for slot in leaving) < host.slot_count


def _is_killed(slot: Slot) -> bool:
    return any(isinstance(member.stop, KillRun) for member in slot.members.values())


def _is_told(slot: Slot, why: StopReason) -> bool:
    return any(member.stop is not None and member.stop.why is why for member in slot.members.values())


def _goes_before(one: Slot, other: Slot) -> bool:
    return (one.priority, -one.number) < (other.priority, -other.number)
