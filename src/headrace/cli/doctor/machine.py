"""What this host offers: memory, limits that hold, room for run files. Covers: looking, and trying in a child process.

Nothing is left behind, and nothing outside the run files' own directory and the temporary one is touched.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from headrace.cli.doctor.diagnosis import Diagnosis, Health
from headrace.memory.budget import memory_limits
from headrace.memory.measure.cgroups import MemoryGroups
from headrace.memory.measure.host_memory import container_bytes, host_bytes
from headrace.memory.measure.own_tree import tree_bytes
from headrace.store.home import home
from headrace.store.run_file.removal import disk_bytes
from headrace.units import format_bytes
from headrace.workers.limit_mechanisms import ACTIVE, GROUP, HARD_LIMIT, UNPROVEN, enforcement_layers

_LIKELY_ENOUGH_BYTES = 1_000_000_000
_TRIAL_S = 20
# 512 MB under a limit of 256 MB: a limit that holds makes this a MemoryError.
_TRIAL = """
import resource
resource.setrlimit(resource.RLIMIT_DATA, (256_000_000, 256_000_000))
try:
    bytearray(512_000_000)
except MemoryError:
    print("held")
"""
# 128 MB of shared memory, which RLIMIT_DATA does not count, in a group that may have 64 MB.
_GROUP_TRIAL_BYTES = 64_000_000
_GROUP_TRIAL = """
import mmap, sys
with open(sys.argv[1], "w") as group:
    group.write("0")
mmap.mmap(-1, 128_000_000).write(bytes(128_000_000))
"""


def memory() -> Iterator[Diagnosis]:
    total, free = host_bytes()
    found = f"{format_bytes(total)}, {format_bytes(free)} free"
    yield Diagnosis(name="host", state=Health.OK, found=found)
    if (limit := container_bytes()) is None:
        yield Diagnosis(name="container", state=Health.NONE, found="no limit of its own")
    else:
        found = f"limit {format_bytes(limit[0])}, {format_bytes(limit[1])} in use"
        yield Diagnosis(name="container", state=Health.OK, found=found)
    budget = memory_limits(None).budget_bytes - tree_bytes()
    yield Diagnosis(name="default budget", state=Health.OK, found=f"{format_bytes(budget)} on top of what is in use")


def limits() -> Iterator[Diagnosis]:
    for name, state in enforcement_layers():
        yield _tried(name) if name in _TRIALS and state == ACTIVE else _layer(name, state)
    yield _file_locks()
    yield _unix_sockets()


def run_files() -> Iterator[Diagnosis]:
    place = home() / "runs"
    files = list(place.glob("*.run"))  # as many as a person keeps
    size = format_bytes(sum(map(disk_bytes, files)))
    yield Diagnosis(name="place", state=Health.OK, found=str(place))
    yield Diagnosis(name="kept", state=Health.OK if files else Health.NONE, found=f"{len(files):,}, taking {size}")
    ground = _ground(place)
    is_writable = ground.is_dir() and os.access(ground, os.W_OK)
    fix = "" if is_writable else "Set HEADRACE_HOME to a directory of yours, or give each run a path."
    found = "yes" if is_writable else f"{ground} is not"
    yield Diagnosis(name="writable", state=Health.OK if is_writable else Health.CARE, found=found, fix=fix)
    free = shutil.disk_usage(ground).free
    state = Health.OK if free >= _LIKELY_ENOUGH_BYTES else Health.CARE
    yield Diagnosis(name="disk", state=state, found=f"{format_bytes(free)} free")


def _layer(name: str, state: str) -> Diagnosis:
    """The finding for a layer of enforcement, in that layer's own words."""
    if UNPROVEN in state:
        return Diagnosis(name=name, state=Health.UNPROVEN, found=state.removeprefix(f"{UNPROVEN}: "))
    return Diagnosis(name=name, state=Health.OK if state.startswith(ACTIVE) else Health.NONE, found=state)


def _tried(name: str) -> Diagnosis:
    """Tries a limit in a child process: some kernels and sandboxes accept a limit and do not enforce it."""
    try:
        is_held = _TRIALS[name]()
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnosis(name=name, state=Health.UNPROVEN, found=f"{ACTIVE}; trying it failed: {error}")
    if is_held:
        return Diagnosis(name=name, state=Health.OK, found=f"{ACTIVE}; tried in a child process, and it holds")
    return Diagnosis(name=name, state=Health.CARE, found="does not hold here: the other layers limit a worker")


def _hard_limit_holds() -> bool:
    return _ended(_TRIAL).stdout.strip() == b"held"


def _group_holds() -> bool:
    groups = MemoryGroups.found()
    leaf = groups.make(0, _GROUP_TRIAL_BYTES) if groups is not None else None
    if groups is None or leaf is None:
        raise OSError("no group could be made")
    try:
        _ended(_GROUP_TRIAL, str(leaf / "cgroup.procs"))
        return groups.met_its_limit(0)
    finally:
        groups.remove(0)


def _ended(program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-S", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, timeout=_TRIAL_S, check=False)


_TRIALS = {HARD_LIMIT: _hard_limit_holds, GROUP: _group_holds}


def _file_locks() -> Diagnosis:
    """Tries a file lock where run files lie: network file systems differ."""
    try:
        import fcntl
    except ImportError:
        found = "not on this system: do not write one run file from two processes"
        return Diagnosis(name="file locks", state=Health.CARE, found=found)
    place = home() / "runs"
    try:
        with tempfile.NamedTemporaryFile(dir=place if os.access(place, os.W_OK) else None) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with Path(file.name).open() as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Diagnosis(name="file locks", state=Health.OK, found="one writer a run file")
    except OSError as error:
        return Diagnosis(name="file locks", state=Health.CARE, found=f"flock fails: {error.strerror}")
    return Diagnosis(name="file locks", state=Health.CARE, found="flock does not hold on this file system")


def _unix_sockets() -> Diagnosis:
    if not hasattr(socket, "AF_UNIX"):
        return Diagnosis(name="Unix sockets", state=Health.NONE, found="not on this system: work runs inline only")
    try:
        for end in socket.socketpair(socket.AF_UNIX):
            end.close()
    except OSError as error:
        return Diagnosis(name="Unix sockets", state=Health.CARE, found=f"cannot be made: {error.strerror}")
    return Diagnosis(name="Unix sockets", state=Health.OK, found="yes")


def _ground(place: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    return next(path for path in (place.absolute(), *place.absolute().parents) if path.exists())
