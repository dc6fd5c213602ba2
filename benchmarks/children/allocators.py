"""Every way in which a task can take memory, as fast as it can: far more than its limit, and never without an end.

Each takes a port and a payload, as tasks of a worker do.
"""

import ctypes
import mmap
import os
import subprocess
import sys
import threading
import time
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
