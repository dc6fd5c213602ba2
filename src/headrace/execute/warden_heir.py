"""The process behind the warden: inherits and ends what a killed warden leaves.

    controller ── heir ── warden ── worker ── its children

Covers: the warden killed from outside, also together with the controller. Its workers die with it; what they started
would go on unseen, and comes here instead, since orphans go to the nearest ancestor that asks for them. Also ends a
warden whose controller is gone while somebody else holds the socket open. Does not cover: the ordinary end of it all
(execute.warden), and all three killed in one moment.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import NoReturn

from headrace.execute.process_limits import ON_LINUX, adopt_orphans

_LOOK_EVERY_S = 0.2
_END_WITHIN_S = 2.0


def leave_heir(control: int) -> None:
    """Returns in a child, which is to be the warden; the process itself stays behind. Linux only: others have none."""
    if not ON_LINUX:
        return
    controller = os.getppid()
    adopt_orphans()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    warden = os.fork()
    if warden:
        os.close(control)  # with it held here, the controller would not see the warden's end
        _wait(warden, controller)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _wait(warden: int, controller: int) -> NoReturn:
    while os.waitpid(warden, os.WNOHANG)[0] != warden:
        if os.getppid() != controller:
            os.kill(warden, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_EVERY_S)
    _end_children()
    os._exit(0)


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
