"""The kernel's own limit on a worker's tree: in plain files, and on the real thing where it is delegated."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from headrace.memory.measure.cgroups import MemoryGroups, join
from headrace.workers import local_warden
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import DeathKind
from tests.workers import entries
from tests.workers.tasks import run_task
from tests.workers.trees import MB, gone_within, soon

LIMIT = 100 * MB
REAL = MemoryGroups.found()
where_delegated = pytest.mark.skipif(REAL is None, reason="no delegated cgroup v2 with a memory controller here")


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
    leaf = groups.make(3, 100)
    assert leaf is not None
    join(leaf)
    told = {file.name: file.read_text() for file in leaf.iterdir()}
    assert told == {"memory.max": "100", "memory.oom.group": "1", "memory.swap.max": "0", "cgroup.procs": "0"}
    (leaf / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert groups.met_its_limit(3)


def test_without_the_memory_controller_no_group_is_used(delegated):
    (delegated / "cgroup/service/cgroup.subtree_control").write_text("cpu\n")
    assert MemoryGroups.found(delegated / "mounts", delegated / "own") is None


def test_a_group_of_somebody_else_is_left_alone_and_one_that_is_taken_away_harms_nothing(delegated):
    parent = delegated / "cgroup/service"
    groups, other = MemoryGroups(parent), MemoryGroups(parent)
    leaf = groups.make(1, 100)
    assert leaf is not None
    assert other.make(1, 200) is None  # of a process with our number in another namespace, say
    other.set_limit(1, 200)
    other.remove(1)
    assert (leaf / "memory.max").read_text() == "100"
    assert not (leaf / "cgroup.kill").exists()
    shutil.rmtree(leaf)
    groups.set_limit(1, 200)
    assert not groups.met_its_limit(1)
    groups.remove(1)
    assert groups.all_removed()


def test_a_group_whose_processes_are_still_ending_is_removed_later(delegated):
    groups = MemoryGroups(delegated / "cgroup/service")
    leaf = groups.make(1, 100)
    assert leaf is not None
    groups.remove(1)
    assert (leaf / "cgroup.kill").read_text() == "1"
    assert not groups.all_removed()  # files keep a directory as processes keep a group
    for file in leaf.iterdir():
        file.unlink()
    assert groups.make(2, 100) is not None
    assert not leaf.exists()


def test_what_killed_wardens_left_is_swept_and_what_is_in_use_stays(delegated):
    parent = delegated / "cgroup/service"
    ended, alive, other = (parent / name for name in ("headrace-4194305-1", f"headrace-{os.getpid()}-1", "main"))
    ended.mkdir()
    alive.mkdir()
    MemoryGroups(parent).sweep()
    assert (ended.exists(), alive.exists(), other.exists()) == (False, True, True)


async def test_each_worker_gets_a_group_of_its_own_which_ends_with_it(delegated, monkeypatch):
    parent = delegated / "cgroup/service"
    pretence = f"""import pathlib, shutil, sys; sys.path.append(sys.argv[1])
from headrace.memory.measure.cgroups import MemoryGroups
MemoryGroups.found = classmethod(lambda cls: cls(pathlib.Path({str(parent)!r})))
pathlib.Path.rmdir = lambda leaf: shutil.rmtree(leaf)  # a real group's files are no obstacle
"""
    monkeypatch.setattr(local_warden, "_PROGRAM", pretence + local_warden._PROGRAM)
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        (leaf,) = parent.glob(f"headrace-{pool.warden_pid}-*")
        assert await soon((leaf / "cgroup.procs").exists)  # the worker has joined
        lent = int((leaf / "memory.max").read_text())
        assert LIMIT < lent < LIMIT + 64 * MB  # above what it was forked with
        await worker.set_limit(2 * LIMIT)
        assert int((leaf / "memory.max").read_text()) == lent + LIMIT
        (leaf / "memory.events").write_text("oom_kill 1\n")  # as the kernel would say it
        os.kill(worker.pid, signal.SIGKILL)
        death = await worker.ended
        assert (death.kind, death.reason) == (DeathKind.OUT_OF_MEMORY, "its cgroup met memory.max")
        assert not leaf.exists()


def real_leaves(warden: int) -> list[Path]:
    return [] if REAL is None else list(REAL._parent.glob(f"headrace-{warden}-*"))


@where_delegated
async def test_the_kernel_kills_a_tree_that_the_watchdog_is_too_slow_for():
    async with WorkerPool(PoolOptions(poll_s=60, hot_poll_s=60)) as pool:
        worker = await pool.worker(LIMIT)
        (leaf,) = real_leaves(pool.warden_pid)
        assert await soon(lambda: (leaf / "cgroup.procs").read_text().split() == [str(worker.pid)])
        death = await run_task(worker, entries.take_shared)
        assert (death.kind, death.reason) == (DeathKind.OUT_OF_MEMORY, "its cgroup met memory.max")
        assert await soon(lambda: real_leaves(pool.warden_pid) == [])


@where_delegated
async def test_a_worker_s_children_end_with_its_group_and_nothing_is_left_of_it():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.take_in_children))
        (leaf,) = real_leaves(pool.warden_pid)
        inside = leaf / "cgroup.procs"
        assert await soon(lambda: len(inside.read_text().split()) > 2, 20)
        pids = [int(pid) for pid in inside.read_text().split()]
        worker.kill()
        await running
        assert gone_within(pids, 2) == []
        warden = pool.warden_pid
    assert real_leaves(warden) == []


@where_delegated
async def test_a_killed_warden_s_groups_are_removed_by_the_next():
    async with WorkerPool() as pool:
        worker, warden = await pool.worker(LIMIT), pool.warden_pid
        os.kill(warden, signal.SIGKILL)
        await worker.ended
        assert gone_within([worker.pid, warden], 2) == []
        assert real_leaves(warden) != []
    async with WorkerPool():
        assert real_leaves(warden) == []
