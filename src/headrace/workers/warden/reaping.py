"""How the children of the warden end: signals to them, and which of them has ended.

Does not cover: why one is ended (workers.warden.watch), or what follows from its end (workers.warden.warden).
"""

from __future__ import annotations

import os
from contextlib import suppress

from headrace.memory.measure.os_limits import ON_LINUX
from headrace.workers.warden.watch import Watch


def kill_tree(watch: Watch, number: int) -> None:
    with suppress(OSError):
        os.killpg(watch.pid, number)
    for pid in watch.tree.living():
        send_signal(pid, number)


def send_signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def next_ended() -> tuple[int, int | None, int | None] | None:
    """(pid, exit code, signal) of a child that has ended; on Linux not yet reaped, so that its number stays taken."""
    try:
        if not ON_LINUX:
            pid, status = os.waitpid(-1, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status)
            return (pid, code if code >= 0 else None, -code if code < 0 else None) if pid else None
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    is_exit = ended.si_code == os.CLD_EXITED
    return ended.si_pid, ended.si_status if is_exit else None, None if is_exit else ended.si_status
