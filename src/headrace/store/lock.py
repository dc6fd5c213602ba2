"""One writer a file: a lock that the system releases when its holder dies. Covers: taking and releasing it, and who has
it.

The lock is on a side file (`x.run.lock`): SQLite's own locks are POSIX locks, which closing any descriptor of the file
would drop. It is a `flock`, which two threads of one process cannot both have. A forked child closes its copy at once,
so that the lock ends with the process that is named in it. A side file can be deleted by hand: the file itself also
says which process writes it (claim). On a file system without locks, HEADRACE_NO_LOCK=1 goes on without one.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from headrace.errors import HeadraceError, RunFileBusy, RunFileError, Spelled, StorageFull
from headrace.plain_files.side_files import open_side_file
from headrace.store.private import open_file

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None


# Whoever looks who holds a lock has it, shared, for the time of one read; whoever reads a file that a killed writer
# left half written has it until that is rolled back. On a busy machine either may stand still for a while.
_WAIT_FOR_LOOKERS_S, _WAIT_FOR_WRITER_S = 10.0, 1.0
_TRY_AGAIN_AFTER_S = 0.005
_MOST_PID_BYTES = 20
WITHOUT_LOCK = "HEADRACE_NO_LOCK"

_held: WeakSet[WriterLock] = WeakSet()

MEANWHILE = "Results.open() reads the file meanwhile"
_STOP_IT = "Wait for it, or stop it with: headrace stop {}"


class WriterLock:
    """The lock on one file, held from construction to `release`."""

    def __init__(self, run_path: Path, *, meanwhile: str = MEANWHILE) -> None:
        self._meanwhile = meanwhile
        self._run_path = run_path
        self._path = _lock_path(run_path)
        self._descriptor: int | None = self._take()
        _held.add(self)

    def release(self) -> None:
        if self._descriptor is None:
            return
        if fcntl is not None and _is_still_at(self._descriptor, self._path):
            # Unlinked while still held: nobody can take a lock on a name that is about to go.
            self._path.unlink(missing_ok=True)
        self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Close this process's copy of the lock. The lock stays while another process has a copy."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def renew(self) -> None:
        """Make the side file again where it was deleted, so that other processes see the writer."""
        if self._descriptor is None or _is_still_at(self._descriptor, self._path):
            return
        with suppress(HeadraceError):  # another process is at it: the claim in the file refuses it
            taken, former = self._take(), self._descriptor
            self._descriptor = taken
            os.close(former)

    def _take(self) -> int:
        while True:
            descriptor = self._opened()
            try:
                if not _try_lock(descriptor, self._run_path):
                    raise self._busy(descriptor)
                if _is_still_at(descriptor, self._path):
                    self._sign(descriptor)
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the holder gave it back between our open and our lock

    def _opened(self) -> int:
        try:
            descriptor = open_file(self._path)
        except OSError as error:
            if self._path.is_symlink():
                raise self._planted("is a link") from None
            raise RunFileError(
                f"{self._run_path} cannot be written: {error.strerror}.", path=self._run_path, fix="Use another path."
            ) from None
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(descriptor)
            raise self._planted("is not a plain file, or has a second name")
        return descriptor

    def _planted(self, what: str) -> RunFileError:
        return RunFileError(
            f"{self._path} {what}, and nothing is written to it.",
            path=self._run_path,
            fix="Headrace never makes such a lock file: find out who did, then remove it.",
        )

    def _sign(self, descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            raise StorageFull(self._run_path, error.strerror or str(error)) from None

    def _busy(self, descriptor: int) -> RunFileBusy:
        return busy(self._run_path, _named_in(descriptor), self._meanwhile)


def busy(run_path: Path, holder: str | int, meanwhile: str = MEANWHILE) -> RunFileBusy:
    """The error for a file that another process writes."""
    return RunFileBusy(
        f"{run_path} is being written by another run (process {holder}).",
        path=run_path,
        fix=Spelled(f"Wait for it or stop it; {meanwhile}.", command=_STOP_IT.format(run_path)),
    )


def writer_of(run_path: Path) -> str | None:
    """The pid of the process that writes a run file at this moment, "unknown" where it cannot be read; None without
    one.
    """
    if fcntl is None:
        return None
    try:
        descriptor = open_side_file(_lock_path(run_path))
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named_in(descriptor)
    except OSError:
        return None  # no file can be locked here
    finally:
        os.close(descriptor)
    return None


def _lock_path(run_path: Path) -> Path:
    return run_path.with_name(run_path.name + ".lock")


def _named_in(descriptor: int) -> str:
    written = os.pread(descriptor, _MOST_PID_BYTES, 0)
    return written.decode("ascii") if written.isdigit() else "unknown"


def _try_lock(descriptor: int, run_path: Path) -> bool:
    if fcntl is None:
        return True
    waited_s = 0.0  # of waiting, not by the clock: a process that got no time meanwhile has not tried again
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waited_s >= _patience_s(descriptor):
                return False
            time.sleep(_TRY_AGAIN_AFTER_S)
            waited_s += _TRY_AGAIN_AFTER_S
        except OSError as error:
            _go_on_without(run_path, error)
            return True
        else:
            return True


def _patience_s(descriptor: int) -> float:
    """How long to wait for a lock that others have: those who look share it, a writer does not."""
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _WAIT_FOR_WRITER_S
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # two writers that both wait must not wait for each other
    return _WAIT_FOR_LOOKERS_S


def _go_on_without(run_path: Path, error: OSError) -> None:
    """Accept a file system that has no locks, but only where the user has said so."""
    said = f"The file system of {run_path.parent} cannot lock files ({error.strerror})"
    if os.environ.get(WITHOUT_LOCK) != "1":
        raise RunFileError(
            f"{said}, so {run_path} cannot be kept from a second writer.",
            path=run_path,
            fix="Use a path on a local disk and copy the file when the run has ended; or, where no other process uses"
            f" the file, set {WITHOUT_LOCK}=1 to go on without a lock.",
        ) from error
    logging.getLogger("headrace").warning("%s: %s is written without a lock.", said, run_path)


def _is_still_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def _after_fork() -> None:
    for lock in list(_held):
        lock.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
