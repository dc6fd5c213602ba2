import asyncio
import subprocess
import sys

import pytest

from headrace.workers import local_warden
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import DeathKind
from tests.workers import entries
from tests.workers.tasks import run_in, run_task
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
import headrace.workers.pool, headrace.workers.command, headrace.workers.worker, headrace.workers.warden.warden
import headrace.workers.warden.standby
from headrace.workers.limit_mechanisms import enforcement_layers
from headrace.errors import OptionError
print(enforcement_layers())
try:
    headrace.workers.pool.WorkerPool()
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
    monkeypatch.setattr(local_warden, "_PROGRAM", WITHOUT_PROC + local_warden._PROGRAM)
    told: list[int] = []
    options = PoolOptions(forks=False, hang_s=0.5)
    async with WorkerPool(options, on_reading=lambda worker, used_bytes: told.append(used_bytes)) as pool:
        assert dict(pool.layers)["watchdog"] == "active, through psutil"
        assert (await run_in(pool, entries.echo, b"anew", LIMIT)).payload == b"anew"
        other = asyncio.ensure_future(run_in(pool, entries.wait, b"1", LIMIT))
        for entry in (entries.take_in_children, entries.take_bytearrays, entries.take_shared):
            death = await run_in(pool, entry, b"", LIMIT)
            assert death.kind is DeathKind.OUT_OF_MEMORY
            assert LIMIT < death.used_bytes <= death.peak_bytes
        assert max(told) > LIMIT * 8 // 10
        assert (await run_in(pool, entries.end_at_once, b"", LIMIT)).code == 7
        assert (await run_in(pool, entries.abort, b"", LIMIT)).signal == 6
        assert (await run_in(pool, entries.stop_itself, b"", LIMIT)).kind is DeathKind.STOPPED
        assert (await other).payload == b"waited"


async def test_without_proc_what_a_worker_started_ends_with_it_and_a_limit_is_not_taken_back_below_use(monkeypatch):
    pytest.importorskip("psutil")
    monkeypatch.setattr(local_warden, "_PROGRAM", WITHOUT_PROC + local_warden._PROGRAM)
    async with WorkerPool(PoolOptions(forks=False)) as pool:
        worker, said = await pool.worker(LIMIT), list[bytes]()
        await run_task(worker, entries.leave_a_child, b"", said.append)
        await run_task(worker, entries.keep, str(30 * MB).encode())
        assert 30 * MB < await worker.set_limit(MB) < LIMIT
        worker.kill()
        await worker.ended
        assert gone_within([worker.pid, int(said[0])], 2) == []
