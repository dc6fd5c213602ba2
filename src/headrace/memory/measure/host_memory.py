"""Reads how much memory the host and the container have. Covers: /proc/meminfo, limits of cgroups v1 and v2.

Does not cover: what of it a run may use (memory.budget), or limits for workers (measure.cgroups).
"""

from __future__ import annotations

from pathlib import Path

from headrace.memory.measure.cgroups import own_groups
from headrace.memory.measure.process import contents

_UNLIMITED_BYTES = 1 << 60
_V1 = Path("/sys/fs/cgroup/memory")
_MOST_STAT_BYTES = 1 << 16


def available_bytes() -> int:
    """Read how much the container or host has left, whichever is less."""
    return max(0, min(host_bytes()[1], *(limit - used for limit, used in _container_limits()), _UNLIMITED_BYTES))


def total_bytes() -> int:
    """Read how much the container or host has in all, whichever is less."""
    return min(host_bytes()[0], *(limit for limit, _ in _container_limits()), _UNLIMITED_BYTES)


def host_bytes() -> tuple[int, int]:
    """Read how much the host has in all, and how much is free."""
    lines = contents("/proc/meminfo").splitlines()
    if not lines:
        from headrace.memory.measure.portable import portable_host_bytes

        return portable_host_bytes()
    fields = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(b":") for line in lines)}
    return fields.get(b"MemTotal", _UNLIMITED_BYTES), fields.get(b"MemAvailable", _UNLIMITED_BYTES)


def container_bytes() -> tuple[int, int] | None:
    """Read how much the container may use, and how much is in use; None where it has no limit of its own."""
    return min(_container_limits(), default=None, key=lambda group: group[0] - group[1])


def _container_limits() -> list[tuple[int, int]]:
    """(limit, used) of each memory cgroup that has a limit; bounded by the depth of the hierarchy."""
    files = [(group, "memory.max", "memory.current") for group in own_groups()]
    files.append((_V1, "memory.limit_in_bytes", "memory.usage_in_bytes"))
    found: list[tuple[int, int]] = []
    for group, limit_file, used_file in files:
        try:
            limit, used = int(contents(str(group / limit_file))), int(contents(str(group / used_file)))
        except ValueError:
            continue  # not there, or "max"
        if limit < _UNLIMITED_BYTES:
            found.append((limit, used - _reclaimable_bytes(group)))
    return found


def _reclaimable_bytes(group: Path) -> int:
    """File cache that a cgroup counts as used and the kernel gives back when asked."""
    lines = contents(str(group / "memory.stat"), _MOST_STAT_BYTES).splitlines()
    stat = dict(line.split(b" ", 1) for line in lines)
    return int(stat.get(b"total_inactive_file", stat.get(b"inactive_file", b"0")))
