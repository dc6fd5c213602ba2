"""A clock that measures waits: it begins at the wall clock's time and then goes on evenly.

Setting the wall clock, by hand or by a time service, changes nothing here; time in which the machine is suspended
counts. A deadline on disk is a time of this clock, and `ClockNote` is what a file keeps so that the clock goes on after
a restart: within one boot exactly, after a reboot by the wall clock and how far the two were apart.
Does not cover: times shown to people (time.time), or executed seconds (time.monotonic, which stops while suspended).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SET_BY_S = 1.0  # less is a time service at work, or our own turn taking its time


# Linux stops CLOCK_MONOTONIC while it is suspended; macOS has no CLOCK_BOOTTIME and lets CLOCK_MONOTONIC go on.
_ELAPSED: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def wall_s() -> float:
    return time.time()


def elapsed_s() -> float:
    """Seconds since some moment, suspended ones included; the same in every process of this host."""
    return time.monotonic() if _ELAPSED is None else time.clock_gettime(_ELAPSED)


class ClockNote(msgspec.Struct, frozen=True, kw_only=True):
    """`zero_s` is the clock's time at the boot's zero, `ahead_s` how far it was ahead of the wall clock."""

    boot: str
    zero_s: float
    ahead_s: float


class SteadyClock:
    """`zero_s` is its time at the zero of `elapsed`."""

    def __init__(self, zero_s: float, elapsed: Callable[[], float] = elapsed_s) -> None:
        self.zero_s = zero_s
        self._elapsed = elapsed

    @classmethod
    def from_wall(cls) -> Self:
        return cls.since(time.time())

    @classmethod
    def since(cls, now_s: float) -> Self:
        """A clock that shows this time now: how one on another host goes on with the engine's."""
        return cls(now_s - elapsed_s())

    def now(self) -> float:
        return self.zero_s + self._elapsed()


class LastingClock(SteadyClock):
    """One whose times are on disk. Begun from the file's last note, None where the file has none."""

    def __init__(
        self,
        noted: ClockNote | None,
        *,
        wall: Callable[[], float] = wall_s,
        elapsed: Callable[[], float] = elapsed_s,
        boot: str | None = None,
    ) -> None:
        self._wall = wall
        self._boot = boot_id() if boot is None else boot
        is_same_boot = noted is not None and bool(self._boot) and noted.boot == self._boot
        ahead_s = noted.ahead_s if noted is not None else 0.0
        super().__init__(noted.zero_s if noted and is_same_boot else self._wall() + ahead_s - elapsed(), elapsed)
        self._ahead_s = ahead_s

    def note(self) -> ClockNote:
        self._ahead_s = self.now() - self._wall()
        return ClockNote(boot=self._boot, zero_s=self.zero_s, ahead_s=self._ahead_s)

    def set_by_s(self) -> float:
        """By how much the wall clock was set since the last note; 0 where it was not."""
        set_s = self._ahead_s - (self.now() - self._wall())
        return set_s if abs(set_s) > _SET_BY_S else 0.0


@functools.cache
def boot_id() -> str:
    """Differs with every start of the machine; empty where the platform has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
