"""Hosts that join, leave, fall silent or are lost, and whether their readings can be believed.

    what a host does                what follows
    joins                           it takes starts at once; a second time: what it had is lost, and it begins anew.
                                    One without slots holds surveys, and no run ever starts there
    is leaving                      its runs go on and end there; no other starts, surveys pause, claims are given up
    is lost                         its attempts are over, at the cost of a step each: the runs go on elsewhere
    sends no reading for            the same, and DropHost: it may still run what goes on elsewhere
      `silent_after_s`
    reads what cannot be            the reading is dropped, and a notice says so once; only readings end a silence
    comes back after it was lost    by joining only: its readings, and events of its former attempts, are ignored

Whatever a host says, it changes nothing on another host: a reading is believed of its own host only, and an end only
of the attempt that was started there, by its epoch. Does not cover: what a reading leads to (`relief`).
"""

from __future__ import annotations

from headrace.agents.scheduler import lifecycle
from headrace.agents.scheduler.events import (
    AttemptEnded,
    DropHost,
    HostJoined,
    MemoryMeasured,
    Notice,
    RecordNotice,
    StopReason,
)
from headrace.agents.scheduler.hosts.host import Host
from headrace.agents.scheduler.scheduler_state import FINAL, SchedulerState
from headrace.exit_causes import ExitCause


def join(state: SchedulerState, event: HostJoined) -> None:
    lose(state, event.host, event.now_s)
    if event.slots < 0:
        return
    host = Host(
        event.host,
        event.slots,
        event.limits,
        state.limits,
        event.kept_back_bytes,
        event.silent_after_s,
        event.now_s,
    )
    state.index.add(host)
    state.silences.watch(host)
    state.queue.skipped_runs.end()


def begin_leaving(state: SchedulerState, name: str) -> None:
    if host := state.hosts.get(name):
        state.index.begin_leaving(host)
        host.touch()


def lose(state: SchedulerState, name: str, now_s: float) -> None:
    host = state.hosts.get(name)
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
            lifecycle.ended(state, ended)
    for survey in host.surveys.by_id:
        del state.surveys[survey]
    state.index.remove(host)


def lose_silent_hosts(state: SchedulerState, now_s: float) -> None:
    for host in state.silences.take(now_s):
        state.commands.append(DropHost(host=host.name))
        lose(state, host.name, now_s)


def is_believed(state: SchedulerState, host: Host, read: MemoryMeasured) -> bool:
    """Whether a reading is newer than the last one, and possible. Where it is, the host is not silent."""
    if read.now_s < host.heard_s:
        return False
    if _is_possible(read):
        host.heard_s, host.is_disbelieved = read.now_s, False
        return True
    if not host.is_disbelieved:
        host.is_disbelieved = True
        notice = RecordNotice(notice=Notice.IMPOSSIBLE_READING, subject=host.name, reading=host.reading)
        state.commands.append(notice)
    return False


def _is_possible(read: MemoryMeasured) -> bool:
    if read.used_bytes < 0 or (read.budget_bytes is not None and read.budget_bytes < 1):
        return False
    for _, used_bytes in read.by_run:  # noqa: SIM110 - any() takes thrice the time
        if used_bytes < 0:
            return False
    return True
