import subprocess
import sys

import pytest

from headrace.execute import worker_pool
from headrace.execute.cgroups import MemoryGroups
from headrace.execute.worker_pool import PoolOptions, WorkerPool
from headrace.execute.worker_protocol import DeathKind
from tests.workers import entries
from tests.workers.trees import MB

WITHOUT = """
import sys
for name in ("fcntl", "resource", "uvloop", "pwd", "grp"):
    sys.modules[name] = None
import os
for name in ("fork", "setsid", "killpg", "getpriority", "register_at_fork"):
    delattr(os, name)
import headrace.execute.worker_pool, headrace.execute.command, headrace.execute.worker, headrace.execute.warden
from headrace.execute.enforcement import enforcement_layers
from headrace.errors import OptionError
print(enforcement_layers())
try:
    headrace.execute.worker_pool.WorkerPool()
except OptionError as error:
    print(error)
"""


def test_everything_imports_where_there_are_no_process_limits():
    done = subprocess.run([sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True, timeout=60)
    assert "inline only" in done.stdout, done.stderr
    assert "Run inline." in done.stdout


async def test_without_proc_workers_are_started_anew_and_watched_by_psutil(monkeypatch):
    pytest.importorskip("psutil")
    pretence = "import psutil, asyncio, ctypes, sys; sys.platform = 'darwin'; "
    monkeypatch.setattr(worker_pool, "_PROGRAM", pretence + worker_pool._PROGRAM)
    async with WorkerPool(PoolOptions(forks=False)) as pool:
        assert dict(pool.layers)["watchdog"] == "active, through psutil"
        assert (await pool.run(entries.echo, b"anew", 100 * MB)).payload == b"anew"
        death = await pool.run(entries.take_in_children, b"", 100 * MB)
        assert death.kind is DeathKind.OUT_OF_MEMORY
        assert (await pool.run(entries.end_at_once, b"", 100 * MB)).code == 7
        assert (await pool.run(entries.abort, b"", 100 * MB)).signal == 6


@pytest.fixture
def delegated(tmp_path):
    """A hierarchy as a service with a delegated group sees it, in plain files."""
    root = tmp_path / "cgroup"
    own = root / "service" / "main"
    own.mkdir(parents=True)
    (root / "service" / "cgroup.subtree_control").write_text("cpu memory\n")
    (root / "service" / "cgroup.procs").write_text("")
    (own / "cgroup.subtree_control").write_text("\n")
    (tmp_path / "mounts").write_text(f"cgroup2 {root} cgroup2 rw 0 0\n")
    (tmp_path / "own").write_text("0::/service/main\n")
    return tmp_path


def test_a_delegated_group_is_found_beside_our_own_and_divided(delegated):
    groups = MemoryGroups.found(delegated / "mounts", delegated / "own")
    assert groups is not None
    assert groups.enclose(3, 4711, 100)
    (leaf,) = (delegated / "cgroup/service").glob("headrace-*-3")
    told = {file.name: file.read_text() for file in leaf.iterdir()}
    assert told == {"memory.max": "100", "memory.oom.group": "1", "cgroup.procs": "4711"}
    (leaf / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert groups.met_its_limit(3)


def test_without_the_memory_controller_no_group_is_used(delegated):
    (delegated / "cgroup/service/cgroup.subtree_control").write_text("cpu\n")
    assert MemoryGroups.found(delegated / "mounts", delegated / "own") is None
