"""The warden of a pool on this host: its process, its socket, and its end.

    WorkerPool ── orders ──► WardenPlace: this host (LocalWarden), or a node of a cluster (cluster.remote_warden)
               ◄─ reports ──

Covers: starting warden and standby, continuing one that was stopped, descriptors, and reaping. Does not cover: what is
ordered and reported (workers.pool, workers.wire), or the warden itself (workers.warden).
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from headrace.errors import HeadraceError
from headrace.memory.measure.os_limits import ENVIRONMENT, ON_LINUX
from headrace.workers.channel import Channel
from headrace.workers.located_program import located
from headrace.workers.warden.standby import continue_if_stopped
from headrace.workers.wire import ForkWorker, FromWarden, KillWorker, SetLimit, Setup, SpawnProgram

_ROOT = str(Path(__file__).parents[2])
# The standby is left behind first: it stays as small as it is by then.
_PROGRAM = """import sys; sys.path.append(sys.argv[1])
from headrace.workers.warden.standby import fork_warden; liveness = fork_warden(*map(int, sys.argv[2:]))
from headrace.workers.warden.warden import main; main(int(sys.argv[2]), liveness)"""
_END_WITHIN_S = 3.0
_LOOK_AGAIN_S = 0.005
_GUARD_EVERY_S = 1.0

OnMessage: TypeAlias = Callable[[Any], None]
OnEnd: TypeAlias = Callable[[str], None]


class MessageChannel(Protocol):
    """The controller's end of a channel to a worker (workers.channel), on whatever host the worker is."""

    @property
    def is_open(self) -> bool: ...

    def send(self, message: msgspec.Struct) -> None: ...

    def read_all(self) -> None:
        """Hand over everything that the worker wrote before it ended."""
        ...

    def pause(self, is_paused: bool) -> None: ...

    def close(self) -> None: ...


Connect: TypeAlias = Callable[[Any, OnMessage, OnEnd], MessageChannel]
"""Makes a worker's channel: the type of its messages, who gets each, and who hears that no more can come."""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class WardenLost(HeadraceError):
    """The host of a warden is gone, and no worker can be had there any more."""


class WardenPlace(Protocol):
    """Where a pool's warden is. `pid` is the warden's, None where it is not on this host. `lost` is why that host is
    gone for good, None while it is there.
    """

    lost: str | None

    @property
    def pid(self) -> int | None: ...

    @property
    def is_open(self) -> bool: ...

    async def start(self, setup: Setup, on_report: OnMessage, on_end: OnEnd) -> None: ...

    def order(self, order: SetLimit | KillWorker) -> None: ...

    def fork(self, order: ForkWorker) -> Connect: ...

    def spawn(self, order: SpawnProgram, streams: Sequence[int]) -> None:
        """Start a program; raises InvalidInput where it is known here that there is none."""
        ...

    def started(self, pid: int) -> None:
        """The warden is ready, and this is its process."""
        ...

    def end_orphans(self, pids: Iterable[int]) -> None:
        """End what these workers started, after their warden has ended."""
        ...

    async def end(self) -> None:
        """End the warden, and with it all workers and their children."""
        ...


class LocalWarden:
    """A warden as a child of this process. `environment` is what it and its workers have beside ours."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._pid: int | None = None
        self.lost: str | None = None  # never: this process would be gone too
        self._environment = environment or {}
        self._control: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The warden's process; while another is being started, that of the one before."""
        return self._pid if self._process is not None else None

    @property
    def is_open(self) -> bool:
        return self._control is not None and self._control.is_open

    async def start(self, setup: Setup, on_report: OnMessage, on_end: OnEnd) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _started(theirs, self._environment)
            except BaseException:
                ours.close()
                raise
        self._control = Channel(ours, FromWarden, on_report, on_end)
        self._control.send(setup)

    def started(self, pid: int) -> None:
        self._pid = pid
        if self._process is not None:
            self._guard_standby(self._process)

    def order(self, order: SetLimit | KillWorker) -> None:
        if self._control is not None:
            self._control.send(order)

    def fork(self, order: ForkWorker) -> Connect:
        return partial(Channel, self.fork_with_socket(order))

    def fork_with_socket(self, order: ForkWorker) -> socket.socket:
        """Have a worker forked; its channel, which the caller closes."""
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            self._control.send(order, [theirs.fileno()])
        return ours

    def spawn(self, order: SpawnProgram, streams: Sequence[int]) -> None:
        assert self._control is not None
        self._control.send(located(order), streams)

    def end_orphans(self, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    async def end(self) -> None:
        if self._control is not None:
            self._control.close()
        process, self._process = self._process, None
        if process is not None:
            await _reaped(process, self._pid)

    def _guard_standby(self, process: subprocess.Popen[bytes]) -> None:
        """Warden and standby continue each other, and both may be stopped: the standby goes on first."""
        if ON_LINUX and self._process is process:
            continue_if_stopped(process.pid)
            asyncio.get_running_loop().call_later(_GUARD_EVERY_S, self._guard_standby, process)


def _started(connection: socket.socket, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, _ROOT, str(connection.fileno()), str(os.getpid())],
        stdin=subprocess.DEVNULL,
        pass_fds=[connection.fileno()],
        env={**os.environ, **environment, **ENVIRONMENT},
        start_new_session=True,  # Ctrl-C is for the controller, which decides what becomes of work in flight
    )


async def _reaped(process: subprocess.Popen[bytes], warden: int | None) -> None:
    """`process` is the warden, or its standby, which ends what a killed warden leaves: that one is killed last."""
    not_yet = [warden or process.pid, process.pid]
    give_up_at = time.monotonic() + _END_WITHIN_S
    while process.poll() is None:
        if not_yet and time.monotonic() > give_up_at:  # somebody has stopped it
            with suppress(OSError):
                os.kill(not_yet.pop(0), signal.SIGKILL)
            give_up_at += _END_WITHIN_S
        await asyncio.sleep(_LOOK_AGAIN_S)
