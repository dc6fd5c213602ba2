"""Every way in which a task can take memory, as fast as it can: far more than its limit, and never without an end.

Each takes a port and a payload, as tasks of a worker do.
"""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

_MB = 1 << 20
_MOST_MEGABYTES = 600  # should no limit hold, the machine does not fall with it
_held: list[Any] = []


def bytearrays(port: Any, payload: bytes) -> None:
    for _ in range(_MOST_MEGABYTES):
        _held.append(bytearray(_MB))  # noqa: PERF401 - one at a time


def small_objects(port: Any, payload: bytes) -> None:
    for number in range(_MOST_MEGABYTES):
        _held.append([(number, i) for i in range(15_000)])  # noqa: PERF401


def numpy_arrays(port: Any, payload: bytes) -> None:
    for _ in range(_MOST_MEGABYTES // 4):
        _held.append(np.ones(_MB // 2))  # noqa: PERF401


def threads(port: Any, payload: bytes) -> None:
    failed: list[MemoryError] = []

    def take() -> None:
        try:
            numpy_arrays(port, payload)
        except MemoryError as error:
            failed.append(error)

    together = [threading.Thread(target=take) for _ in range(4)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    raise failed[0]


def private_mapping(port: Any, payload: bytes) -> None:
    for _ in range(_MOST_MEGABYTES // 10):
        _held.append(_filled(mmap.mmap(-1, 10 * _MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))  # noqa: PERF401


def shared_mapping(port: Any, payload: bytes) -> None:
    """Reserved at once, and filled by one call that gives nobody a chance."""
    _held.append(_filled(mmap.mmap(-1, _MOST_MEGABYTES * _MB)))


def memfd_written(port: Any, payload: bytes) -> None:
    descriptor, chunk = os.memfd_create("tide"), bytes(16 * _MB)
    for _ in range(_MOST_MEGABYTES // 16):
        os.write(descriptor, chunk)


def memfd_mapped(port: Any, payload: bytes) -> None:
    descriptor = os.memfd_create("tide")
    os.ftruncate(descriptor, _MOST_MEGABYTES * _MB)
    _held.append(_filled(mmap.mmap(descriptor, _MOST_MEGABYTES * _MB)))


def small_files(port: Any, payload: bytes) -> None:
    """Each is written and closed: nothing leads from it to its writer."""
    directory, chunk = Path(payload.decode()), bytes(65_536)
    for number in range(_MOST_MEGABYTES * 16):
        (directory / str(number)).write_bytes(chunk)


def forked_children(port: Any, payload: bytes) -> None:
    for _ in range(_MOST_MEGABYTES // 30):
        if not os.fork():
            held = bytearray(b"x") * (30 * _MB)
            time.sleep(30)
            os._exit(held[0] and 0)
    time.sleep(30)


def started_children(port: Any, payload: bytes) -> None:
    program = "held = bytearray(b'x') * (30 << 20); import time; time.sleep(30)"
    _held.extend(subprocess.Popen([sys.executable, "-S", "-c", program]) for _ in range(_MOST_MEGABYTES // 30))
    time.sleep(30)


def memfds_mapped_and_closed(port: Any, payload: bytes) -> None:
    library = ctypes.CDLL(None)  # Python's own mapping would keep a copy of the descriptor
    for _ in range(_MOST_MEGABYTES // 16):
        descriptor = _written_memfd()
        library.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        os.close(descriptor)


def memfds_in_flight(port: Any, payload: bytes) -> None:
    ends = socket.socketpair()
    _held.append(ends)
    for _ in range(_MOST_MEGABYTES // 16):
        descriptor = _written_memfd()
        socket.send_fds(ends[0], [b"x"], [descriptor])
        os.close(descriptor)


def sysv_segments(port: Any, payload: bytes) -> None:
    library = ctypes.CDLL(None)
    library.shmat.restype = ctypes.c_void_p
    library.shmdt.argtypes = [ctypes.c_void_p]
    for _ in range(_MOST_MEGABYTES // 16):
        area = library.shmat(library.shmget(0, 16 * _MB, 0o1600), None, 0)
        ctypes.memset(area, 1, 16 * _MB)
        library.shmdt(area)


def pipes(port: Any, payload: bytes) -> None:
    """1 MB each, where this user may have so much."""
    for _ in range(min(_MOST_MEGABYTES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 20)):
        _, writer = os.pipe()
        with suppress(OSError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _MB)
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(_MB))
    time.sleep(1)


def warden_stopped(port: Any, payload: bytes) -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    shared_mapping(port, payload)


def _written_memfd() -> int:
    descriptor = os.memfd_create("tide")
    os.write(descriptor, bytes(16 * _MB))
    return descriptor


def _filled(area: mmap.mmap) -> mmap.mmap:
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(area)), 1, len(area))
    return area


ALL = (
    bytearrays,
    small_objects,
    numpy_arrays,
    threads,
    private_mapping,
    shared_mapping,
    memfd_written,
    memfd_mapped,
    small_files,
    forked_children,
    started_children,
)
# What no process shows, or what is taken while nothing watches: of one worker at a time.
UNSEEN = (memfds_mapped_and_closed, memfds_in_flight, sysv_segments, pipes, warden_stopped)
