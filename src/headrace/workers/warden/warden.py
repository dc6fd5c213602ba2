"""The warden's loop: waits for orders and for children that end, and has the watchdog look in between.

    controller ══ orders, reports ══ warden ── fork ── worker ── its children
         ╚══════════ tasks, messages ══════════════════╝

Covers: the loop, carrying out orders, reaping, and the end of everything when the controller is gone. Imports as little
as it can, since each worker inherits it. Does not cover: how a child is made (warden.children), when trees are read and
killed (warden.watchdog), what a worker does (workers.worker).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress

from headrace.memory.measure.os_limits import ON_LINUX, adopt_orphans, small_stacks
from headrace.workers.progress_page import WorkerCounters
from headrace.workers.warden.children import (
    InForkedWorker,
    InheritedSettings,
    exec_program,
    fork_child,
    next_exit,
    preload,
    send_signal,
)
from headrace.workers.warden.control import Control
from headrace.workers.warden.standby import LivenessPage, continue_if_stopped, remove_folder
from headrace.workers.warden.watch import Watch
from headrace.workers.warden.watchdog import Watchdog
from headrace.workers.wire import (
    Death,
    DeathKind,
    ForkWorker,
    Halted,
    KillWorker,
    Ready,
    SetLimit,
    Setup,
    SpawnProgram,
    WorkerStarted,
)

_CHECK_STANDBY_EVERY_S = 0.5
_END_WITHIN_S = 0.9


class Warden:
    def __init__(self, control: Control, setup: Setup, liveness: LivenessPage) -> None:
        self._control = control
        self._setup = setup
        self._liveness = liveness
        self._standby_stops = self._reported_stops = 0
        self._standby_checked_at = 0.0
        self._parent = liveness.parent
        self._settings = InheritedSettings.replaced()
        self._watchdog = Watchdog(control, setup)
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        for number in (signal.SIGCHLD, signal.SIGURG):
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)

    @property
    def has_parent(self) -> bool:
        return os.getppid() == self._parent

    def serve(self) -> None:
        """Run until the controller is gone. A newly forked worker leaves this by `InForkedWorker`."""
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        was_behind = False
        while self._control.is_open and self.has_parent:
            if was_behind != self._control.is_behind:
                was_behind = self._control.is_behind
                poll.modify(self._control, select.POLLIN | (select.POLLOUT if was_behind else 0))
            self._liveness.count_turn()
            self._check_standby()
            events = poll.poll(self._watchdog.patience_s() * 1000)
            for descriptor, event in events:
                if descriptor == self._wake_reader:
                    os.read(self._wake_reader, 4096)
                    self._watchdog.wake()
                    continue
                if event & select.POLLOUT:
                    self._control.flush()
                if event & ~select.POLLOUT:
                    self._reap()  # a kill ordered for a worker that has ended must not become the cause of its end
                    self._carry_out_orders()
            if events:  # SIGCHLD writes to the wake pipe
                self._reap()
            self._watchdog.look_if_due()
        self._end_everything()
        remove_folder()

    def _check_standby(self) -> None:
        """Continue a standby that is stopped, as it does with the warden: a worker can send SIGSTOP to both."""
        now = time.monotonic()
        if ON_LINUX and now - self._standby_checked_at >= _CHECK_STANDBY_EVERY_S:
            self._standby_checked_at = now
            self._standby_stops += continue_if_stopped(self._parent)
        if (stops := self._liveness.stops + self._standby_stops) != self._reported_stops:
            self._reported_stops = stops
            self._control.send(Halted(stops))

    def _carry_out_orders(self) -> None:
        for order in self._control.orders(socket.MSG_DONTWAIT):
            match order:
                case ForkWorker():
                    self._fork(order, *self._control.claim(1))
                case SpawnProgram():
                    self._spawn(order, *self._control.claim(3))
                case SetLimit():
                    self._watchdog.set_limit(order)
                case KillWorker():
                    self._watchdog.kill(order)
                case Setup():
                    pass  # only the first message is one

    def _fork(self, order: ForkWorker, channel: int) -> None:
        group, counters = self._watchdog.group_for(order), None
        try:
            counters = self._watchdog.page.take()
            pid = fork_child(group)
        except (OSError, IndexError) as error:
            if counters is not None:
                self._watchdog.page.give_back(counters)
            self._report_not_started(order.worker, error)
            os.close(channel)
            return
        if not pid:
            inherited = [self._wake_reader, self._wake_writer, *self._watchdog.descriptors()]
            raise InForkedWorker(channel, counters, self._setup, self._settings, inherited, self._control)
        os.close(channel)
        self._watch(pid, order, counters, has_base=self._setup.forks)

    def _spawn(self, order: SpawnProgram, stdin: int, stdout: int, stderr: int) -> None:
        try:
            exec_pipe, held_by_child = os.pipe()
        except OSError as error:
            self._report_not_started(order.worker, error)
            _close(stdin, stdout, stderr)
            return
        group = self._watchdog.group_for(order)
        try:
            pid = fork_child(group)
        except OSError as error:
            self._report_not_started(order.worker, error)
            _close(stdin, stdout, stderr, exec_pipe, held_by_child)
            return
        if not pid:
            exec_program(order, (stdin, stdout, stderr), self._setup, self._settings)
        _close(stdin, held_by_child)
        os.set_blocking(exec_pipe, False)
        watch = self._watch(pid, order, None, has_base=False)
        if watch is None:
            _close(stdout, stderr, exec_pipe)
            return
        watch.outputs, watch.largest_output_bytes = (stdout, stderr), order.largest_output_bytes
        watch.exec_pipe = exec_pipe

    def _watch(
        self, pid: int, order: ForkWorker | SpawnProgram, counters: WorkerCounters | None, *, has_base: bool
    ) -> Watch | None:
        """Hand a child to the watchdog; kill it where it cannot be watched."""
        try:
            watch = self._watchdog.add(pid, order, counters, has_base=has_base)
        except OSError as error:
            send_signal(pid, signal.SIGKILL)
            self._report_not_started(order.worker, error)
            return None
        self._control.send(WorkerStarted(order.worker, pid, watch.tree.base_bytes))
        return watch

    def _report_not_started(self, worker: int, error: Exception) -> None:
        self._watchdog.give_up_group(worker)
        self._control.send(Death(worker, DeathKind.LOST, reason=f"no process could be made: {error}"))

    def _reap(self) -> None:
        while (ended := next_exit()) is not None:
            death = self._watchdog.remove(ended)
            with suppress(ChildProcessError):
                os.waitpid(ended.pid, 0)
            if death is not None:
                self._watchdog.give_up_group(death.worker)
                self._control.send(death)

    def _end_everything(self) -> None:
        give_up_at = time.monotonic() + _END_WITHIN_S
        while time.monotonic() < give_up_at:
            self._watchdog.kill_all()
            self._reap()
            if self._watchdog.all_ended():
                return
            time.sleep(0.001)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _ignore(number: int, frame: object) -> None:
    """The wakeup descriptor does the work; without a handler the signal would be ignored."""


def main(descriptor: int, liveness: LivenessPage) -> None:
    """Be the warden at this end of the controller's socket, or, after a fork, a worker."""
    control = Control(socket.socket(fileno=descriptor))
    setup = next(iter(control.orders()), None)
    if not isinstance(setup, Setup):
        return
    adopt_orphans()
    small_stacks()
    not_preloaded = preload(setup)
    warden = Warden(control, setup, liveness)
    from headrace.workers.limit_mechanisms import enforcement_layers

    if warden.has_parent:  # else it was killed meanwhile, and what follows ends at once
        control.send(Ready(os.getpid(), not_preloaded, enforcement_layers()))
    worker = _served(warden)
    if worker is not None:
        worker.run()


def _served(warden: Warden) -> InForkedWorker | None:
    """Serve; in a forked worker return its start outside the handler: else each error's context would show the fork."""
    try:
        warden.serve()
    except InForkedWorker as worker:
        return worker.with_traceback(None)
    return None
