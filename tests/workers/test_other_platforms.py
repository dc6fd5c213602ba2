import asyncio
import os
import signal
import subprocess
import sys

import pytest

from headrace.execute import worker_pool
from headrace.execute.cgroups import MemoryGroups
from headrace.execute.function_names import refer_to
from headrace.execute.worker_pool import PoolOptions, WorkerPool
from headrace.execute.worker_protocol import DeathKind, Task
from tests.workers import entries
from tests.workers.trees import MB, gone_within

LIMIT = 100 * MB
WITHOUT_PROC = "import psutil, asyncio, ctypes, sys; sys.platform = 'darwin'; "
WITHOUT = """
import sys
for name in ("fcntl", "resource", "uvloop", "pwd", "grp"):
    sys.modules[name] = None
import os
for name in ("fork", "setsid", "killpg", "getpriority", "register_at_fork"):
    delattr(os, name)
import headrace.execute.worker_pool, headrace.execute.command, headrace.execute.worker, headrace.execute.warden
import headrace.execute.warden_heir
from headrace.execute.enforcement import enforcement_layers
from headrace.errors import OptionError
print(enforcement_layers())
try:
    headrace.execute.worker_pool.WorkerPool()
except OptionError as error:
    print(error)
"""


INLINE = """
import sys
import psutil  # the one for Linux has a right to /proc, and needs some of what is taken away below
for name in ("fcntl", "resource", "uvloop", "pwd", "grp"):
    sys.modules[name] = None
import asyncio, ctypes, multiprocessing, os, pathlib, shutil, socket, ssl, subprocess, tempfile
for name in ("fork", "setsid", "killpg", "getpriority", "register_at_fork"):
    delattr(os, name)
sys.platform = "darwin"

def no_proc(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
        if not sys._getframe(1).f_globals["__name__"].startswith("psutil"):
            raise FileNotFoundError(arguments[0])

sys.addaudithook(no_proc)
from headrace import Agent, AgentList, Engine, Model, QuestionFreeText, Survey

async def research(ctx, topic):
    found = await ctx.step("look", str.upper, topic)
    await ctx.checkpoint({"found": found})
    return (await ctx.step("again", str.lower, found)) + found

async def main(directory):
    job = Survey([QuestionFreeText(question_name="q", question_text="How?")]).by(
        AgentList(Agent(name=f"p{i}") for i in range(20))).by(Model("test", canned_response="so"))
    print("alone", len(await job.run_async(directory / "alone.run", memory="+300MB")))
    async with Engine(directory / "agents.run", memory="+300MB", isolation="inline") as engine:
        run = await engine.submit(research, "tides")
        await engine.run(job, directory / "tenant.run")
        print("agent", await run.result())

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


def test_surveys_and_agent_runs_go_inline_where_there_is_neither_proc_nor_process_limit(tmp_path):
    pytest.importorskip("psutil")
    done = subprocess.run(
        [sys.executable, "-c", INLINE, tmp_path], check=False, capture_output=True, text=True, timeout=60
    )
    assert "alone 20" in done.stdout, done.stderr
    assert "agent tidesTIDES" in done.stdout, done.stderr


def test_everything_imports_where_there_are_no_process_limits():
    done = subprocess.run([sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True, timeout=60)
    assert "inline only" in done.stdout, done.stderr
    assert "Run inline." in done.stdout


async def test_without_proc_workers_are_started_anew_and_watched_by_psutil(monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(worker_pool, "_PROGRAM", WITHOUT_PROC + worker_pool._PROGRAM)
    told: list[int] = []
    options = PoolOptions(forks=False, hang_s=0.5)
    async with WorkerPool(options, on_reading=lambda worker, used_bytes: told.append(used_bytes)) as pool:
        assert dict(pool.layers)["watchdog"] == "active, through psutil"
        assert (await pool.run(entries.echo, b"anew", LIMIT)).payload == b"anew"
        other = asyncio.ensure_future(pool.run(entries.wait, b"1", LIMIT))
        for entry in (entries.take_in_children, entries.take_bytearrays, entries.take_shared):
            death = await pool.run(entry, b"", LIMIT)
            assert death.kind is DeathKind.OUT_OF_MEMORY
            assert LIMIT < death.used_bytes <= death.peak_bytes
        assert max(told) > LIMIT * 8 // 10
        assert (await pool.run(entries.end_at_once, b"", LIMIT)).code == 7
        assert (await pool.run(entries.abort, b"", LIMIT)).signal == 6
        assert (await pool.run(entries.stop_itself, b"", LIMIT)).kind is DeathKind.HUNG
        assert (await other).payload == b"waited"


async def test_without_proc_what_a_worker_started_ends_with_it_and_a_limit_is_not_taken_back_below_use(monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(worker_pool, "_PROGRAM", WITHOUT_PROC + worker_pool._PROGRAM)
    async with WorkerPool(PoolOptions(forks=False)) as pool:
        worker, said = await pool.worker(LIMIT), list[bytes]()
        await worker.run(Task(1, 1, refer_to(entries.leave_a_child)), said.append)
        await worker.run(Task(2, 1, refer_to(entries.keep), str(30 * MB).encode()))
        assert 30 * MB < await worker.set_limit(MB) < LIMIT
        worker.kill()
        await worker.ended
        assert gone_within([worker.pid, int(said[0])], 2) == []


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


def test_a_group_that_cannot_be_used_is_left_and_one_that_is_taken_away_harms_nothing(delegated):
    groups = MemoryGroups(delegated / "cgroup/service")
    assert groups.enclose(1, 4711, 100)
    (leaf,) = (delegated / "cgroup/service").glob("headrace-*-1")
    assert not groups.enclose(1, 4712, 100)  # of an earlier process with our number, say
    assert (leaf / "cgroup.procs").read_text() == "4711"
    for file in leaf.iterdir():
        file.unlink()  # a real group's files go with it
    groups.remove(1)
    assert not leaf.exists()
    assert not groups.set_limit(1, 200)
    assert not groups.met_its_limit(1)
    groups.remove(1)


async def test_each_worker_gets_a_group_of_its_own_which_ends_with_it(delegated, monkeypatch):
    parent = delegated / "cgroup/service"
    pretence = f"""import pathlib, shutil, sys; sys.path.append(sys.argv[1])
from headrace.execute.cgroups import MemoryGroups
MemoryGroups.found = classmethod(lambda cls: cls(pathlib.Path({str(parent)!r})))
pathlib.Path.rmdir = shutil.rmtree  # a real group's files are no obstacle
"""
    monkeypatch.setattr(worker_pool, "_PROGRAM", pretence + worker_pool._PROGRAM)
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        (leaf,) = parent.glob(f"headrace-{pool.warden_pid}-*")
        assert (leaf / "cgroup.procs").read_text() == str(worker.pid)
        lent = int((leaf / "memory.max").read_text())
        assert LIMIT < lent < LIMIT + 64 * MB  # above what it was forked with
        await worker.set_limit(2 * LIMIT)
        assert int((leaf / "memory.max").read_text()) == lent + LIMIT
        (leaf / "memory.events").write_text("oom_kill 1\n")  # as the kernel would say it
        os.kill(worker.pid, signal.SIGKILL)
        death = await worker.ended
        assert (death.kind, death.reason) == (DeathKind.OUT_OF_MEMORY, "its cgroup met memory.max")
        assert not leaf.exists()
