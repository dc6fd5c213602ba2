"""The standby: the warden's parent process. It keeps the warden running, and ends what a killed warden leaves behind.

    controller ── standby ── warden ── worker ── its children

Covers: a warden that is killed from outside, also together with the controller. Its workers die with it (parent-death
signal); the workers' own children do not, and become children of the standby, which is the nearest ancestor that asks
for orphans: it kills them. A warden that is stopped (SIGSTOP: a worker may send that to its parent) is continued at
once, because meanwhile no worker is held to its limit; a warden that is stopped again and again, or whose loop does
not turn, is killed, and with it its workers. The standby also kills a warden whose controller is gone while another
process holds the socket open. What all of them leave on disk goes with them, where a variable names its directory, and
so do the SysV segments of those that it has seen end. Does not cover: the ordinary end of all processes
(warden.warden), and all three killed in one moment.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from contextlib import suppress

from headrace.memory.measure.os_limits import ON_LINUX, adopt_orphans
from headrace.memory.measure.sysv_segments import listed_segments, remove_segment

# Names a directory of plain files that workers use, and that goes with the last of their processes.
FOLDER_VARIABLE = "HEADRACE_WORKERS_FOLDER"
_LOOK_EVERY_S = 0.2
_END_WITHIN_S = 2.0
_MOST_STOPS = 3  # within the time below
_STOPS_WITHIN_S = 1.0
_TURNS_WITHIN_S = 5.0  # it turns twice a second at the least
_TURNS, _STOPS = range(2)


class LivenessPage:
    """Memory that warden and standby share: how often the warden's loop has turned, and how often it was stopped.

    `parent` is the process that the warden ends with: its standby, or the controller where there is none.
    """

    def __init__(self, parent: int) -> None:
        self.parent = parent
        self._page = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")

    @property
    def turns(self) -> int:
        return self._page[_TURNS]

    @property
    def stops(self) -> int:
        return self._page[_STOPS]

    def count_turn(self) -> None:
        self._page[_TURNS] += 1

    def count_stop(self) -> None:
        self._page[_STOPS] += 1


def fork_warden(control: int, controller: int) -> LivenessPage:
    """Fork, and return in the child, which becomes the warden; this process becomes the standby and never returns.

    Linux only: elsewhere this process is the warden and has no standby.

    Each parent's pid comes from the parent: asked for here, the parent may have been killed already, and nobody would
    ever miss it.
    """
    if not ON_LINUX:
        return LivenessPage(controller)
    page = LivenessPage(os.getpid())
    others = {segment.id for segment in listed_segments()}  # made before any worker
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    warden = os.fork()
    if warden:
        os.close(control)  # with it held here, the controller would not see the warden's end
        _stand_by(warden, controller, LivenessCheck(warden, page, time.monotonic()))
        _remove_segments(_end_children(), others)
        remove_folder()
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    return page


class LivenessCheck:
    """Decides from its stops and its turns whether the warden is continued or killed. Times are handed in."""

    def __init__(self, warden: int, page: LivenessPage, now: float) -> None:
        self._warden = warden
        self._page = page
        self._stopped_at: list[float] = []  # bounded by the most stops
        self._turns: int = 0
        self._still_s = 0.0
        self._looked_at = now

    def stopped(self, now: float) -> None:
        """Continue the warden after a SIGSTOP, or kill it where that happens too often."""
        self._page.count_stop()
        self._stopped_at = [at for at in self._stopped_at if now - at < _STOPS_WITHIN_S] + [now]
        is_too_often = len(self._stopped_at) > _MOST_STOPS
        os.kill(self._warden, signal.SIGKILL if is_too_often else signal.SIGCONT)

    def look(self, now: float) -> None:
        """Kill a warden that has not turned for 5 s.

        Time in which the standby itself had no turn, on a busy or suspended host, does not count.
        """
        turns = self._page.turns
        self._still_s += min(now - self._looked_at, 2 * _LOOK_EVERY_S)
        self._looked_at = now
        if turns != self._turns or not turns:  # before its first turn it may be importing for a long time
            self._turns, self._still_s = turns, 0.0
        elif self._still_s > _TURNS_WITHIN_S:
            os.kill(self._warden, signal.SIGKILL)


def _stand_by(warden: int, controller: int, check: LivenessCheck) -> None:
    """Wait until the warden has ended."""
    while True:
        pid, status = os.waitpid(warden, os.WNOHANG | os.WUNTRACED)
        if pid == warden and not os.WIFSTOPPED(status):
            return
        if pid == warden:
            check.stopped(time.monotonic())
        if os.getppid() != controller:
            os.kill(warden, signal.SIGKILL)
        check.look(time.monotonic())
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_EVERY_S)


def continue_if_stopped(standby: int) -> bool:
    """Send SIGCONT to a standby that a signal has stopped; return whether it was."""
    try:
        with open(f"/proc/{standby}/stat", "rb") as file:  # noqa: PTH123 - pathlib is more than this needs
            is_stopped = file.read(512).rpartition(b")")[2].split()[0] == b"T"
        if is_stopped:
            os.kill(standby, signal.SIGCONT)
    except (OSError, IndexError):
        return False  # it has ended, and the warden is about to
    return is_stopped


def _end_children() -> set[int]:
    """Kill all children, again and again: each one that ends leaves its own children here. Return those that ended."""
    give_up_at, ended = time.monotonic() + _END_WITHIN_S, set[int]()
    while (pids := _children()) and time.monotonic() < give_up_at:
        for pid in pids:
            with suppress(PermissionError):  # it has become another user's
                os.kill(pid, signal.SIGKILL)  # not yet waited for: the pid cannot be another's
        with suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                ended.add(pid)
        time.sleep(0.001)
    return ended


def _remove_segments(pids: set[int], others: set[int]) -> None:
    """Remove SysV segments that these processes have made, or used last, unless somebody uses one."""
    for segment in listed_segments() if pids else []:
        is_theirs = segment.id not in others and not pids.isdisjoint((segment.maker, segment.last_user))
        if is_theirs and not segment.attached:
            remove_segment(segment.id)


def remove_folder() -> None:
    """Remove the directory that is for these processes alone. Warden and standby both do: whoever kills the directory's
    owner, as Ray does with a lost node's actors, may kill one of them too.
    """
    if (folder := os.environ.get(FOLDER_VARIABLE)) is None:
        return
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):
                os.unlink(entry)  # noqa: PTH108 - pathlib is more than this needs
        os.rmdir(folder)  # noqa: PTH106 - the same


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as listed:  # noqa: PTH123 - pathlib is more than this needs
        return [int(pid) for pid in listed.read().split()]
