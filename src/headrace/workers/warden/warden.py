"""The warden: one small process with one thread that forks workers, watches their trees, kills, reaps and reports.

    controller ══ orders, reports ══ warden ── fork ── worker ── its children
         ╚══════════ tasks, messages ══════════════════╝

Covers: the loop and its timing; the end of everything when the controller is gone. Imports as little as it can, since
each worker inherits it. Does not cover: how a child is made (workers.warden.children) and ended
(workers.warden.reaping), what condemns one (workers.warden.watch), what a worker does (workers.worker).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headrace.memory.measure.cgroups import MemoryGroups
from headrace.memory.measure.os_limits import ON_LINUX, adopt_orphans, limit_data, small_stacks
from headrace.memory.measure.shared_files import SharedFiles
from headrace.memory.measure.socket_buffers import BufferedMemory
from headrace.memory.measure.tree import new_tree
from headrace.workers.progress_page import Place, ProgressPage
from headrace.workers.warden.children import Birth, Ordinary, bear, become_program, preloaded
from headrace.workers.warden.control import Control
from headrace.workers.warden.reaping import kill_tree, next_ended, send_signal
from headrace.workers.warden.standby import Pulse, continue_heir
from headrace.workers.warden.stuck import LoopWatch
from headrace.workers.warden.watch import REST_S, Verdict, Watch
from headrace.workers.wire import (
    Death,
    DeathKind,
    Fork,
    Halted,
    Kill,
    LimitSet,
    Reading,
    Readings,
    Ready,
    SetLimit,
    Setup,
    Spawn,
    Started,
)

_HEIR_EVERY_S = 0.5
_IDLE_POLL_S = 0.5  # how soon a parent is missed while the socket is open
_END_WITHIN_S = 0.9
# Of a program: its own libraries and the stacks of its threads. The watchdog counts what is really used.
_PROGRAM_RESERVES_BYTES = 256 << 20


class Warden:
    def __init__(self, control: Control, setup: Setup, pulse: Pulse) -> None:
        self._control = control
        self._pulse = pulse
        self._heir_stops = self._told_stops = 0
        self._heir_looked_at = 0.0
        self._setup = setup
        self._parent = os.getppid()
        self._ordinary = Ordinary.left()
        self._groups = MemoryGroups.found() if ON_LINUX else None
        if self._groups is not None:
            self._groups.sweep()
        self._page = ProgressPage()
        self._files = SharedFiles() if ON_LINUX else None
        self._buffers = BufferedMemory() if ON_LINUX else None
        self._told_abandoned_bytes = 0
        self._watches: dict[int, Watch] = {}  # by pid
        self._places: dict[int, Place] = {}  # by pid
        self._loops: dict[int, LoopWatch] = {}  # by pid
        self._next_look = self._looked_at = self._stirred_at = 0.0
        self._bell, self._ringer = os.pipe()
        os.set_blocking(self._ringer, False)
        for number in (signal.SIGCHLD, signal.SIGURG):
            signal.signal(number, _noticed)
        signal.set_wakeup_fd(self._ringer, warn_on_full_buffer=False)
        self._children = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY) if ON_LINUX else -1

    def serve(self) -> None:
        """Until the controller is gone. In a newly forked child it is left by `Birth`."""
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        was_behind = False
        while self._control.is_open and os.getppid() == self._parent:
            if was_behind != self._control.is_behind:
                was_behind = self._control.is_behind
                poll.modify(self._control, select.POLLIN | (select.POLLOUT if was_behind else 0))
            self._pulse.turn()
            self._look_at_heir()
            events = poll.poll(self._patience_s() * 1000)
            for descriptor, event in events:
                if descriptor == self._bell:
                    self._hear_bell()
                    continue
                if event & select.POLLOUT:
                    self._control.flush()
                if event & ~select.POLLOUT:
                    self._obey()
            if events:  # a child's end rings the bell
                self._reap()
            if time.monotonic() >= self._next_look:
                self._look()
        self._end_everything()

    def _look_at_heir(self) -> None:
        """Warden and standby continue each other: a worker can send SIGSTOP to both."""
        now = time.monotonic()
        if ON_LINUX and now - self._heir_looked_at >= _HEIR_EVERY_S:
            self._heir_looked_at = now
            self._heir_stops += continue_heir(self._parent)
        if (stops := self._pulse.stops + self._heir_stops) != self._told_stops:
            self._told_stops = stops
            self._control.tell(Halted(stops))

    def descriptors(self) -> list[int]:
        """What a child must close: with a sibling's kept open, its end would not be seen."""
        watched = [descriptor for watch in self._watches.values() for descriptor in watch.descriptors()]
        own = [self._bell, self._ringer, *([self._children] if self._children >= 0 else [])]
        return [*own, *watched]

    def _hear_bell(self) -> None:
        """A child has ended, or a task has begun while the warden slept: from here on it is watched like any other. Not
        looked at now, since the task would wait for that where there is no free core.
        """
        os.read(self._bell, 4096)
        self._page.is_asleep = False
        self._next_look = min(self._next_look, time.monotonic() + self._setup.poll_s)

    def _patience_s(self) -> float:
        if not self._watches:
            return _IDLE_POLL_S
        return max(0.0, self._next_look - time.monotonic())

    def _obey(self) -> None:
        for order in self._control.orders(socket.MSG_DONTWAIT):
            match order:
                case Fork():
                    self._fork(order, *self._control.claim(1))
                case Spawn():
                    self._spawn(order, *self._control.claim(3))
                case SetLimit():
                    self._set_limit(order)
                case Kill():
                    self._kill_as_asked(order)
                case Setup():
                    pass  # only the first message is one

    def _fork(self, order: Fork, channel: int) -> None:
        group = self._group_for(order)
        try:
            place = self._page.take()
            pid = bear(group)
        except (OSError, IndexError) as error:
            self._never_born(order.worker, error)
            os.close(channel)
            return
        if not pid:
            raise Birth(channel, place, self._setup, self._ordinary, self.descriptors(), self._control)
        os.close(channel)
        self._places[pid] = place
        if self._setup.stuck_after_s is not None:
            self._loops[pid] = LoopWatch(order.worker, pid, place)
        self._watch(pid, order, has_base=self._setup.forks)

    def _spawn(self, order: Spawn, stdin: int, stdout: int, stderr: int) -> None:
        try:
            becomes, is_about_to = os.pipe()
        except OSError as error:
            self._never_born(order.worker, error)
            _close(stdin, stdout, stderr)
            return
        group = self._group_for(order)
        try:
            pid = bear(group)
        except OSError as error:
            self._never_born(order.worker, error)
            _close(stdin, stdout, stderr, becomes, is_about_to)
            return
        if not pid:
            become_program(order, (stdin, stdout, stderr), self._setup, self._ordinary)
        _close(stdin, is_about_to)
        os.set_blocking(becomes, False)
        watch = self._watch(pid, order, has_base=False)
        if watch is None:
            _close(stdout, stderr, becomes)
            return
        watch.outputs, watch.largest_output_bytes = (stdout, stderr), order.largest_output_bytes
        watch.becomes = becomes

    def _group_for(self, order: Fork | Spawn) -> Path | None:
        return None if self._groups is None else self._groups.make(order.worker, order.limit_bytes)

    def _watch(self, pid: int, order: Fork | Spawn, *, has_base: bool) -> Watch | None:
        worker, limit_bytes = order.worker, order.limit_bytes
        try:
            tree = new_tree(pid, has_base=has_base)
        except OSError as error:  # no descriptors left: what cannot be watched must not run
            send_signal(pid, signal.SIGKILL)
            self._never_born(worker, error)
            return None
        watch = Watch(worker=worker, pid=pid, tree=tree, limit_bytes=limit_bytes, hang_s=self._setup.hang_s)
        self._watches[pid] = watch
        watch.quiet_since = time.monotonic()
        self._look_soon()
        self._apply(watch, limit_bytes, [pid])
        self._control.tell(Started(worker, pid, tree.base_bytes))
        return watch

    def _never_born(self, worker: int, error: Exception) -> None:
        if self._groups is not None:
            self._groups.remove(worker)
        self._control.tell(Death(worker, DeathKind.LOST, reason=f"no process could be made: {error}"))

    def _set_limit(self, order: SetLimit) -> None:
        for watch in self._watches.values():
            if watch.worker == order.worker:
                if order.limit_bytes < watch.limit_bytes:
                    self._take_back(watch, order.limit_bytes)
                else:
                    self._apply(watch, order.limit_bytes, watch.tree.living())
                self._control.tell(LimitSet(order.worker, watch.limit_bytes))
        self._look_soon()

    def _apply(self, watch: Watch, limit_bytes: int, pids: Iterable[int]) -> None:
        """Its children have inherited the hard limit that was, and are among `pids` where they are lent more, too."""
        watch.limit_bytes = limit_bytes
        if self._groups is not None:
            self._groups.set_limit(watch.worker, limit_bytes + watch.tree.base_bytes)
        for pid in pids:
            limit_data(pid, (watch.tree.base_data_bytes or _PROGRAM_RESERVES_BYTES) + limit_bytes)

    def _take_back(self, watch: Watch, limit_bytes: int) -> None:
        """Never below what it needs. Set between two looks: after the second it cannot have grown beyond the answer,
        and before the first nothing that it holds is refused to it.
        """
        before_bytes = watch.limit_bytes
        for _ in range(2):
            limit_bytes = min(before_bytes, max(limit_bytes, watch.needed_bytes()))
            self._apply(watch, limit_bytes, [watch.pid])

    def _kill_as_asked(self, order: Kill) -> None:
        for watch in self._watches.values():
            if watch.worker == order.worker:
                if order.reason and watch.verdict is None:
                    watch.verdict = Verdict(order.kind, order.reason, watch.used_bytes)
                kill_tree(watch, order.signal)

    def _look(self) -> None:
        now = time.monotonic()
        has_slept = self._page.is_asleep  # then all are looked at together, and it may sleep as long again
        due = [watch for watch in self._watches.values() if has_slept or not self._may_rest(watch, now)]
        if due or now - self._looked_at >= REST_S:
            self._looked_at = now
            self._look_at(due, now)
        self._look_at_loops(now)
        self._next_look = now + self._pause_s(now)

    def _pause_s(self, now: float) -> float:
        """Long, once no worker has had a task for a while; whoever begins one then wakes the warden."""
        if any(watch.is_hot for watch in self._watches.values()):
            self._page.is_asleep = False
            return self._setup.hot_poll_s
        # Said before the counters are read once more: a task that they do not show yet will ring.
        self._page.is_asleep = now - self._stirred_at >= REST_S
        if not all(self._may_rest(watch, now) for watch in self._watches.values()):
            self._stirred_at = now
            self._page.is_asleep = False
        return REST_S if self._page.is_asleep else self._setup.poll_s

    def _may_rest(self, watch: Watch, now: float) -> bool:
        place = self._places.get(watch.pid)
        return place is not None and watch.may_rest(now, place.steps, place.is_busy)

    def _look_at(self, watches: list[Watch], now: float) -> None:
        """`watches` are those that may have changed."""
        if self._files is not None:
            self._files.charge(self._watches.values())
        for watch in watches:
            if self._buffers is not None:
                self._buffers.charge(watch, now, is_hot=watch.is_hot)
            place = self._places.get(watch.pid)
            condemned = watch.look(now, place.steps if place else 0, place.is_busy if place else False)
            if condemned or (watch.verdict is not None and watch.verdict.kind is DeathKind.OUT_OF_MEMORY):
                kill_tree(watch, signal.SIGKILL)  # again each time: it may have been forking meanwhile
        self._end_strays()
        self._tell_readings(now)

    def _look_at_loops(self, now: float) -> None:
        stuck_after_s = self._setup.stuck_after_s
        for loop in self._loops.values():
            if stuck_after_s is not None and (stuck := loop.look(now, stuck_after_s)) is not None:
                self._control.tell(stuck)

    def _look_soon(self) -> None:
        self._next_look = self._looked_at = 0.0

    def _tell_readings(self, now: float) -> None:
        if self._control.is_behind:
            return
        news = [watch for watch in self._watches.values() if watch.has_news(now)]
        for watch in news:
            watch.told_bytes, watch.told_at = watch.used_bytes, now
        if news or self._told_abandoned_bytes != self._abandoned_bytes:
            self._told_abandoned_bytes = self._abandoned_bytes
            readings = [Reading(watch.worker, watch.used_bytes, watch.steps) for watch in news]
            self._control.tell(Readings(readings, self._abandoned_bytes))

    @property
    def _abandoned_bytes(self) -> int:
        return self._files.abandoned_bytes if self._files is not None else 0

    def _end_strays(self) -> None:
        """Orphans go to the worker they descend from; those of a worker that has ended come here, and end."""
        listed = os.pread(self._children, 1 << 16, 0) if self._children >= 0 else b""
        if listed.count(b" ") != len(self._watches):  # each number has a space behind it
            for pid in {int(pid) for pid in listed.split()}.difference(self._watches):
                send_signal(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while (ended := next_ended()) is not None:
            pid, code, killed_by = ended
            watch = self._watches.pop(pid, None)
            if watch is not None:
                kill_tree(watch, signal.SIGKILL)  # what it leaves ends with it; its group's number is still taken
                if self._files is not None:
                    self._files.abandon(watch, self._watches.values())
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            if watch is not None:
                self._report(watch, code, killed_by)

    def _report(self, watch: Watch, code: int | None, killed_by: int | None) -> None:
        by_kernel = False
        if self._groups is not None:
            by_kernel = self._groups.met_its_limit(watch.worker)
            self._groups.remove(watch.worker)
        watch.close()
        self._loops.pop(watch.pid, None)
        place = self._places.pop(watch.pid, None)
        if place is not None:
            self._page.give_back(place)
        death = watch.death(code, killed_by, by_kernel=by_kernel)
        death.abandoned_bytes = self._told_abandoned_bytes = self._abandoned_bytes
        self._control.tell(death)
        self._look_soon()  # its children may have become strays

    def _end_everything(self) -> None:
        give_up_at = time.monotonic() + _END_WITHIN_S
        while time.monotonic() < give_up_at:
            for watch in self._watches.values():
                kill_tree(watch, signal.SIGKILL)
            self._reap()
            self._end_strays()
            has_ended = not self._watches and (self._children < 0 or not os.pread(self._children, 64, 0))
            if has_ended and (self._groups is None or self._groups.all_removed()):
                return
            time.sleep(0.001)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _noticed(number: int, frame: object) -> None:
    """The wakeup descriptor does the work; without a handler the signal would be ignored."""


def main(descriptor: int, pulse: Pulse) -> None:
    control = Control(socket.socket(fileno=descriptor))
    setup = next(iter(control.orders()), None)
    if not isinstance(setup, Setup):
        return
    adopt_orphans()
    small_stacks()
    not_preloaded = preloaded(setup)
    warden = Warden(control, setup, pulse)
    from headrace.workers.enforcement import enforcement_layers

    control.tell(Ready(os.getpid(), not_preloaded, enforcement_layers()))
    born = _served(warden)
    if born is not None:
        born.live()


def _served(warden: Warden) -> Birth | None:
    """What it returns lives outside the handler: else every error of a worker would tell of its birth."""
    try:
        warden.serve()
    except Birth as born:
        return born.with_traceback(None)
    return None
