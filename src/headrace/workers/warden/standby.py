"""The standby: the process behind the warden. It keeps the warden going, and ends what a killed warden leaves.

    controller ── standby ── warden ── worker ── its children

Covers: the warden killed from outside, also together with the controller. Its workers die with it; what they started
would go on unseen, and comes here instead, since orphans go to the nearest ancestor that asks for them. A warden that
is stopped (SIGSTOP: a worker may send that to its parent) is continued at once, since meanwhile nothing is held to its
limit; one that is stopped again and again, or does not turn, is ended, and with it its workers. Also ends a warden
whose controller is gone while another process holds the socket open. Does not cover: the ordinary end of it all
(workers.warden.warden), and all three killed in one moment.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from contextlib import suppress
from typing import NoReturn

from headrace.memory.measure.os_limits import ON_LINUX, adopt_orphans

_LOOK_EVERY_S = 0.2
_END_WITHIN_S = 2.0
_MOST_STOPS = 3  # within the time below
_STOPS_WITHIN_S = 1.0
_TURNS_WITHIN_S = 5.0  # it turns twice a second at the least
_TURNS, _STOPS = range(2)


class Pulse:
    """A page that warden and standby share: how often the one has turned, and was found stopped by the other."""

    def __init__(self) -> None:
        self._page = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")

    @property
    def turns(self) -> int:
        return self._page[_TURNS]

    @property
    def stops(self) -> int:
        return self._page[_STOPS]

    def turn(self) -> None:
        self._page[_TURNS] += 1

    def stopped(self) -> None:
        self._page[_STOPS] += 1


def leave_heir(control: int) -> Pulse:
    """Returns in a child, which is to be the warden; the process itself stays behind. Linux only: others have none."""
    pulse = Pulse()
    if not ON_LINUX:
        return pulse
    controller = os.getppid()
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    warden = os.fork()
    if warden:
        os.close(control)  # with it held here, the controller would not see the warden's end
        _wait(warden, controller, _Guard(warden, pulse))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    return pulse


class _Guard:
    """Whether the warden does its work."""

    def __init__(self, warden: int, pulse: Pulse) -> None:
        self._warden = warden
        self._pulse = pulse
        self._stopped_at: list[float] = []  # bounded by the most stops
        self._turns: int = 0
        self._still_s = 0.0
        self._looked_at = time.monotonic()

    def stopped(self) -> None:
        now = time.monotonic()
        self._pulse.stopped()
        self._stopped_at = [at for at in self._stopped_at if now - at < _STOPS_WITHIN_S] + [now]
        is_too_often = len(self._stopped_at) > _MOST_STOPS
        os.kill(self._warden, signal.SIGKILL if is_too_often else signal.SIGCONT)

    def look(self) -> None:
        """Time in which the standby itself had no turn, on a busy or suspended host, does not count."""
        now, turns = time.monotonic(), self._pulse.turns
        self._still_s += min(now - self._looked_at, 2 * _LOOK_EVERY_S)
        self._looked_at = now
        if turns != self._turns or not turns:  # before its first turn it may be importing for a long time
            self._turns, self._still_s = turns, 0.0
        elif self._still_s > _TURNS_WITHIN_S:
            os.kill(self._warden, signal.SIGKILL)


def _wait(warden: int, controller: int, guard: _Guard) -> NoReturn:
    while True:
        pid, status = os.waitpid(warden, os.WNOHANG | os.WUNTRACED)
        if pid == warden and not os.WIFSTOPPED(status):
            break
        if pid == warden:
            guard.stopped()
        if os.getppid() != controller:
            os.kill(warden, signal.SIGKILL)
        guard.look()
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_EVERY_S)
    _end_children()
    os._exit(0)


def continue_heir(heir: int) -> bool:
    """Whether it was found stopped, and is continued."""
    try:
        with open(f"/proc/{heir}/stat", "rb") as told:  # noqa: PTH123 - pathlib is more than this needs
            is_stopped = told.read(512).rpartition(b")")[2].split()[0] == b"T"
        if is_stopped:
            os.kill(heir, signal.SIGCONT)
    except (OSError, IndexError):
        return False  # it has ended, and the warden is about to
    return is_stopped


def _end_children() -> None:
    """Again and again: each that ends leaves its own children here."""
    give_up_at = time.monotonic() + _END_WITHIN_S
    while (pids := _children()) and time.monotonic() < give_up_at:
        for pid in pids:
            with suppress(PermissionError):  # it has become another user's
                os.kill(pid, signal.SIGKILL)  # not yet waited for: the number cannot be another's
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as listed:  # noqa: PTH123 - pathlib is more than this needs
        return [int(pid) for pid in listed.read().split()]
