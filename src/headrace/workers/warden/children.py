"""How the warden makes a child: a worker by fork, a program by fork and exec.

Covers: what is loaded before any fork, and what a child does about itself before it runs anyone's code. Does not cover:
limits that are set from outside, and watching (workers.warden.warden).
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from headrace.memory.measure.cgroups import join
from headrace.memory.measure.os_limits import (
    adopt_orphans,
    ahead_of_workers,
    all_descriptors,
    die_with_parent,
    first_to_go,
    limit_descriptors,
    limit_files,
    ordinary_signals,
)
from headrace.workers.progress_page import Place
from headrace.workers.warden.control import Control
from headrace.workers.wire import Setup, Spawn

_CANNOT_START = 127
_NEEDED_BY_ALL = ("headrace.workers.worker", "headrace.workers.watched_loop")


class Ordinary(NamedTuple):
    """What the warden had before it took more: a child gets it back."""

    niceness: int
    descriptors: int

    @classmethod
    def left(cls) -> Ordinary:
        return cls(ahead_of_workers(), all_descriptors())


def preloaded(setup: Setup) -> dict[str, str]:
    """Import what workers need, and keep the garbage collector from touching it: pages it touches are copied."""
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


def bear(group: Path | None) -> int:
    """Fork; the child leads a session and a process group of its own, inside `group`."""
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        os.setsid()
        die_with_parent(parent)
        if group is not None:
            join(group)
        adopt_orphans()  # a daemon that forks twice stays in the tree of whoever started it
    return pid


class Birth(BaseException):
    """Raised in a new worker: it leaves the warden's stack, and with it all that the warden was doing."""

    def __init__(
        self, channel: int, place: Place, setup: Setup, ordinary: Ordinary, inherited: list[int], control: Control
    ) -> None:
        super().__init__()
        self._channel = channel
        self._place = place
        self._setup = setup
        self._ordinary = ordinary
        self._inherited = inherited
        self._control = control

    def live(self) -> NoReturn:
        from headrace.workers.worker import work

        code = 1
        try:
            ordinary_signals()
            self._control.close()
            for descriptor in self._inherited:
                os.close(descriptor)
            _settle(self._setup, self._ordinary)
            _new_chances()
            if not self._setup.forks:
                _start_anew(self._channel, self._setup)
            code = work(self._channel, self._place)
        except ConnectionError:
            code = 0  # the controller is gone, and with it whoever would want to know more
        except BaseException:  # noqa: BLE001 - said where errors are said; the exit code tells the rest
            sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
        finally:
            try:
                _say_what_is_left()
            finally:  # also where a task has put something else in the place of a stream
                os._exit(code)  # not the warden's exit handlers


def become_program(order: Spawn, streams: tuple[int, int, int], setup: Setup, ordinary: Ordinary) -> NoReturn:
    try:
        ordinary_signals()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        _settle(setup, ordinary)
        _enter(order.directory)
        os.execvpe(order.argv[0], order.argv, order.environment)
    except (OSError, ValueError) as error:
        os.write(2, f"{order.argv[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(_CANNOT_START)


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise OSError(f"it cannot be started in {directory}: {error.strerror}") from None


def _settle(setup: Setup, ordinary: Ordinary) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, ordinary.niceness)
    limit_descriptors(ordinary.descriptors)
    limit_files(setup.largest_file_bytes)
    first_to_go()


def _start_anew(channel: int, setup: Setup) -> NoReturn:
    """Where forking a process that has loaded much is not safe: macOS."""
    os.set_inheritable(channel, True)
    program = "import sys; sys.path[:] = sys.argv[2:]; from headrace.workers.worker import work; work(int(sys.argv[1]))"
    os.execv(sys.executable, [sys.executable, "-P", "-c", program, str(channel), *setup.sys_path])


def _new_chances() -> None:
    """numpy's global generator would give every worker the same numbers; Python's reseeds itself."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed()


def _say_what_is_left() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
