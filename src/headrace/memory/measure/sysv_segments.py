"""SysV shared memory of the whole host, as the kernel lists it: it stays when the last process that used it has ended.

Does not cover: whose it is (memory.measure.hidden_shared_memory, workers.warden.standby).
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import NamedTuple

_SEGMENTS = "/proc/sysvipc/shm"
_IPC_RMID = 0
_MOST_LISTED_BYTES = 16 << 20


class Segment(NamedTuple):
    id: int
    maker: int
    last_user: int
    attached: int
    resident_bytes: int


def listed_segments() -> list[Segment]:
    """The segments of the whole host, which bounds their number; none where the kernel has no SysV memory."""
    try:
        with open(_SEGMENTS, "rb") as listed:  # noqa: PTH123 - pathlib is more than this needs
            lines = listed.read(_MOST_LISTED_BYTES).splitlines()
    except OSError:
        return []
    if len(lines) < 2:
        return []
    names = [name.decode() for name in lines[0].split()]
    found: list[Segment] = []
    for line in lines[1:]:
        row = dict(zip(names, line.split(), strict=False))
        with suppress(KeyError, ValueError):
            numbers = (int(row[name]) for name in ("shmid", "cpid", "lpid", "nattch", "rss"))
            found.append(Segment(*numbers))
    return found


def remove_segment(segment: int) -> bool:
    return ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None) == 0
