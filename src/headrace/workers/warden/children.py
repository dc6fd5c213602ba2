"""How the warden makes a child process, ends it and learns of its end: a worker by fork, a program by fork and exec.

Covers: what is imported before any fork, what a child does about itself before it runs foreign code, signals to a tree,
and waiting for exits. Does not cover: limits that are set from outside (warden.watchdog), or the reports that follow
(warden.warden).
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from headrace.memory.measure.cgroups import join
from headrace.memory.measure.measured_tree import MeasuredTree
from headrace.memory.measure.os_limits import (
    ON_LINUX,
    adopt_orphans,
    ahead_of_workers,
    all_descriptors,
    die_with_parent,
    first_to_go,
    limit_descriptors,
    limit_files,
    ordinary_signals,
)
from headrace.workers.progress_page import WorkerCounters
from headrace.workers.warden.control import Control
from headrace.workers.wire import Setup, SpawnProgram

_CANNOT_START = 127
_NEEDED_BY_ALL = ("headrace.workers.worker", "headrace.workers.watched_loop")


class InheritedSettings(NamedTuple):
    """The niceness and the descriptor limit that the warden was started with; each child gets them back."""

    niceness: int
    descriptors: int

    @classmethod
    def replaced(cls) -> InheritedSettings:
        """Give the warden a higher priority and all the descriptors it may have; return what it had before."""
        return cls(ahead_of_workers(), all_descriptors())


class ExitStatus(NamedTuple):
    """How a child process ended: `code` where it exited, `signal` where one killed it; the other is None."""

    pid: int
    code: int | None
    signal: int | None


def preload(setup: Setup) -> dict[str, str]:
    """Import what workers need, and return why a module could not be imported.

    The garbage collector leaves all of it alone from then on: a page that it touches in a worker is copied.
    """
    sys.path[:] = setup.sys_path
    sys.argv[:] = setup.argv
    failed: dict[str, str] = {}
    for name in (*_NEEDED_BY_ALL, *setup.preload):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - the worker that needs it meets it again, and says so
            failed[name] = f"{type(error).__name__}: {error}"
    gc.collect()
    gc.freeze()
    return failed


def fork_child(group: Path | None) -> int:
    """Fork; the child leads a session and a process group of its own, inside the cgroup `group`."""
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        os.setsid()
        die_with_parent(parent)
        if group is not None:
            join(group)
        adopt_orphans()  # a daemon that forks twice stays in the tree of the worker that started it
    return pid


class InForkedWorker(BaseException):
    """Raised in a forked worker: it unwinds the stack that the child inherited from the warden."""

    def __init__(
        self,
        channel: int,
        counters: WorkerCounters,
        setup: Setup,
        settings: InheritedSettings,
        inherited: list[int],
        control: Control,
    ) -> None:
        super().__init__()
        self._channel = channel
        self._counters = counters
        self._setup = setup
        self._settings = settings
        self._inherited = inherited
        self._control = control

    def run(self) -> NoReturn:
        """Be the worker until its channel closes, and exit."""
        from headrace.workers.worker import work

        code = 1
        try:
            ordinary_signals()
            self._control.close()
            for descriptor in self._inherited:
                os.close(descriptor)
            _limit_itself(self._setup, self._settings)
            _reseed_numpy()
            if not self._setup.forks:
                _exec_worker(self._channel, self._setup)
            code = work(self._channel, self._counters)
        except ConnectionError:
            code = 0  # the controller is gone: no process is left that would read an error
        except BaseException:  # noqa: BLE001 - printed like any uncaught error; the exit code reports the rest
            sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
        finally:
            try:
                _flush_streams()
            finally:  # also where a task has replaced a stream by an object of its own
                os._exit(code)  # not the warden's exit handlers


def exec_program(
    order: SpawnProgram, streams: tuple[int, int, int], setup: Setup, settings: InheritedSettings
) -> NoReturn:
    """Become the program that was ordered, in a forked child; exit with 127 where it cannot be started."""
    try:
        ordinary_signals()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        _limit_itself(setup, settings)
        _enter(order.directory)
        os.execvpe(order.argv[0], order.argv, order.environment or {})
    except (OSError, ValueError) as error:
        os.write(2, f"{order.argv[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(_CANNOT_START)


def kill_tree(watched: MeasuredTree, number: int) -> None:
    """Send a signal to a child's process group and to each process of its tree, which may have left the group."""
    with suppress(OSError):
        os.killpg(watched.pid, number)
    for pid in watched.tree.living():
        send_signal(pid, number)


def send_signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def next_exit() -> ExitStatus | None:
    """Return a child that has ended. On Linux it is not reaped yet, so that no other process can get its pid."""
    try:
        if not ON_LINUX:
            pid, status = os.waitpid(-1, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status)
            return ExitStatus(pid, code if code >= 0 else None, -code if code < 0 else None) if pid else None
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    is_exit = ended.si_code == os.CLD_EXITED
    return ExitStatus(ended.si_pid, ended.si_status if is_exit else None, None if is_exit else ended.si_status)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise OSError(f"it cannot be started in {directory}: {error.strerror}") from None


def _limit_itself(setup: Setup, settings: InheritedSettings) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, settings.niceness)
    limit_descriptors(settings.descriptors)
    limit_files(setup.largest_file_bytes)
    first_to_go()


def _exec_worker(channel: int, setup: Setup) -> NoReturn:
    """Start the worker as a new program, where forking a process that has loaded much is not safe: macOS."""
    os.set_inheritable(channel, True)
    program = "import sys; sys.path[:] = sys.argv[2:]; from headrace.workers.worker import work; work(int(sys.argv[1]))"
    os.execv(sys.executable, [sys.executable, "-P", "-c", program, str(channel), *setup.sys_path])


def _reseed_numpy() -> None:
    """numpy's global generator would give every worker the same numbers; Python's reseeds itself."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed()


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
