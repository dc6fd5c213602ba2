import asyncio
import ctypes
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.memory.measure.sysv_segments import listed_segments
from headrace.workers import handle, local_warden
from headrace.workers.functions import refer_to
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.warden import standby
from headrace.workers.wire import Death, DeathKind, TaskDone
from tests.workers import entries
from tests.workers.tasks import run_in, run_task
from tests.workers.trees import MB, children_of, gone_within, highest_until, is_alive, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LIMIT = 80 * MB
CONTROLLER = Path(__file__).parents[1] / "controller.py"


@pytest.mark.parametrize("helped", ["", "with a fork that holds its sockets"])
def test_a_killed_controller_leaves_no_orphan(helped):
    with subprocess.Popen([sys.executable, CONTROLLER, helped], stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        told = controller.stdout.readline().split()
        pids = [pid for pid in children_of(controller.pid) if str(pid).encode() not in told[1:]]
        assert len(pids) == 6  # the warden and its standby, two workers, and a child of each
        os.kill(controller.pid, signal.SIGKILL)
        assert gone_within(pids, 1.0) == []
        for bystander in told[1:]:
            os.kill(int(bystander), signal.SIGKILL)


def test_a_controller_killed_together_with_its_warden_leaves_no_orphan():
    with subprocess.Popen([sys.executable, CONTROLLER, ""], stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        controller.stdout.readline()
        standby_pid, warden, *workers_and_children = children_of(controller.pid)
        os.kill(controller.pid, signal.SIGSTOP)  # it sees nothing of the warden's end
        os.kill(warden, signal.SIGKILL)
        os.kill(controller.pid, signal.SIGKILL)
        assert len(workers_and_children) == 4
        assert gone_within([standby_pid, warden, *workers_and_children], 2.0) == []


async def test_a_killed_heir_is_missed_and_everything_ends():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.wait))
        warden = pool.warden_pid
        standby_pid = int(Path(f"/proc/{warden}/stat").read_text().rpartition(")")[2].split()[1])
        assert standby_pid != os.getpid()
        os.kill(standby_pid, signal.SIGKILL)
        assert (await asyncio.wait_for(running, 10)).kind in {DeathKind.WARDEN_ENDED, DeathKind.SIGNALLED}
        assert gone_within([warden, worker.pid], 2) == []


# What the warden's program does between its fork and its loop, where it imports for a while.
STANDBY_KILLED = """import os, signal, time; standby = os.getppid(); os.kill(standby, signal.SIGKILL)
while os.getppid() == standby: time.sleep(0.001)
from headrace.workers.warden.warden import main"""


async def test_a_standby_that_is_killed_while_its_warden_starts_is_missed(monkeypatch):
    program = local_warden._PROGRAM
    monkeypatch.setattr(
        local_warden, "_PROGRAM", program.replace("from headrace.workers.warden.warden import main", STANDBY_KILLED)
    )
    pool = WorkerPool()
    with pytest.raises(HeadraceError, match="has ended at its start"):
        await pool.start()
    monkeypatch.setattr(local_warden, "_PROGRAM", program)
    async with pool:  # and the next one starts
        assert (await pool.worker(LIMIT)).pid


# The same for the standby's own start, before it forks.
CONTROLLER_KILLED = """import os, signal, sys, time; print(os.getpid(), flush=True)
controller = os.getppid(); os.kill(controller, signal.SIGKILL)
while os.getppid() == controller: time.sleep(0.001)
"""


def test_a_controller_that_is_killed_while_its_standby_starts_is_missed():
    """Its socket alone does not tell: another process may hold it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        started = f"""import os, subprocess, sys; from headrace.workers import local_warden
subprocess.Popen([sys.executable, "-P", "-c", {CONTROLLER_KILLED!r} + local_warden._PROGRAM, local_warden._ROOT,
    "{theirs.fileno()}", str(os.getpid())], pass_fds=[{theirs.fileno()}]); os.read(0, 1)"""
        with subprocess.Popen(
            [sys.executable, "-c", started],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs.fileno()],
        ) as controller:  # fmt: skip
            assert controller.stdout is not None
            standby_pid = int(controller.stdout.readline())
            assert controller.wait() == -signal.SIGKILL
        assert gone_within([standby_pid], 10) == []


async def test_a_warden_that_is_stopped_when_its_pool_closes_is_ended(monkeypatch):
    monkeypatch.setattr("headrace.workers.local_warden._END_WITHIN_S", 0.3)
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.wait))
        warden = pool.warden_pid
        os.kill(warden, signal.SIGSTOP)
    assert gone_within([warden, worker.pid], 2) == []
    assert (await running).kind is DeathKind.WARDEN_ENDED


async def test_a_daemon_of_a_worker_ends_with_a_killed_warden():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        said: list[bytes] = []
        await run_task(worker, entries.leave_a_daemon, b"", said.append)
        os.kill(pool.warden_pid, signal.SIGKILL)
        assert gone_within([worker.pid, int(said[0])], 2) == []


async def test_the_segments_of_workers_end_with_a_killed_warden_and_no_others():
    library = ctypes.CDLL(None)
    ours = [library.shmget(0, 4096, 0o1600)]
    try:
        async with WorkerPool() as pool:
            worker = await pool.worker(LIMIT)
            made = int((await run_task(worker, entries.leave_a_small_segment)).payload)
            ours.append(library.shmget(0, 4096, 0o1600))
            assert {made, *ours} <= {segment.id for segment in listed_segments()}
            os.kill(pool.warden_pid, signal.SIGKILL)
            assert await soon(lambda: made not in {segment.id for segment in listed_segments()})
            assert {*ours} <= {segment.id for segment in listed_segments()}
    finally:
        for segment in ours:
            library.shmctl(segment, 0, None)


async def test_a_killed_warden_is_told_and_its_workers_end():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        said: list[bytes] = []
        await run_task(worker, entries.leave_a_child, b"", said.append)
        running = asyncio.ensure_future(run_task(worker, entries.wait))
        await asyncio.sleep(0.05)
        os.kill(pool.warden_pid, signal.SIGKILL)
        death = await asyncio.wait_for(running, 10)
        assert isinstance(death, Death)
        assert death.kind is DeathKind.WARDEN_ENDED
        assert "warden" in death.reason
        assert gone_within([worker.pid, int(said[0])], 2) == []
        assert isinstance(await run_in(pool, entries.echo, b"a new warden", LIMIT), TaskDone)


async def test_closing_ends_a_busy_worker():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.wait))
        await asyncio.sleep(0.05)
    assert (await running).kind is DeathKind.WARDEN_ENDED
    assert not is_alive(worker.pid)


async def test_a_cancelled_task_ends_its_worker():
    async with WorkerPool() as pool:
        running = asyncio.ensure_future(run_in(pool, entries.wait, b"", LIMIT))
        assert await soon(lambda: len(children_of(pool.warden_pid)) == 1)
        (pid,) = children_of(pool.warden_pid)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gone_within([pid], 2) == []


async def test_a_warden_that_a_worker_stops_goes_on_at_once_and_that_is_told(caplog):
    async with WorkerPool(PoolOptions(preload=("tests.workers.entries",))) as pool:
        ending = await asyncio.wait_for(run_in(pool, entries.stop_the_warden, b"", LIMIT), 20)
        assert isinstance(ending, TaskDone)
        assert await soon(lambda: pool.halts == 1)
        assert "was stopped by a signal" in caplog.text


@pytest.mark.parametrize("stops", [b"1", b"100"])
async def test_a_worker_that_stops_its_warden_gets_no_further_than_its_limit(stops):
    async with WorkerPool(PoolOptions(preload=("tests.workers.entries",))) as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.stop_the_warden_and_take, stops))
        highest = await asyncio.wait_for(highest_until(running, worker.pid), 20)
        assert running.result().kind in {DeathKind.OUT_OF_MEMORY, DeathKind.WARDEN_ENDED, DeathKind.LOST}
        assert highest <= 2 * LIMIT
        assert isinstance(await asyncio.wait_for(run_in(pool, entries.echo, b"on", LIMIT), 20), TaskDone)


def stop_standby_of(warden: int) -> None:
    os.kill(int(Path(f"/proc/{warden}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGSTOP)


async def test_a_warden_and_a_standby_that_are_both_stopped_go_on():
    async with WorkerPool(PoolOptions(preload=("tests.workers.entries",))) as pool:
        warden = pool.warden_pid
        stop_standby_of(warden)
        os.kill(warden, signal.SIGSTOP)
        assert isinstance(await asyncio.wait_for(run_in(pool, entries.echo, b"on", LIMIT), 20), TaskDone)


async def test_a_death_that_the_warden_sees_late_keeps_its_cause(monkeypatch: pytest.MonkeyPatch):
    """The controller gives the worker up meanwhile and orders a kill, which comes with the news of the death."""
    monkeypatch.setattr(handle, "_DEATH_FOLLOWS_S", 0.05)
    async with WorkerPool(PoolOptions(preload=("tests.workers.entries",))) as pool:
        worker = await pool.worker(LIMIT)
        worker.start(refer_to(entries.wait))
        assert (await worker.receive()).payload == b"waiting"
        stop_standby_of(pool.warden_pid)
        os.kill(pool.warden_pid, signal.SIGSTOP)
        os.kill(worker.pid, signal.SIGSEGV)
        death = await asyncio.wait_for(worker.receive(), 20)  # both are continued within a second
        assert (death.kind, death.signal) == (DeathKind.SIGNALLED, signal.SIGSEGV)


async def test_a_standby_that_is_stopped_is_continued_by_the_warden():
    async with WorkerPool() as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.wait))
        warden = pool.warden_pid
        stop_standby_of(warden)
        assert await soon(lambda: pool.halts == 1)  # the warden has continued it
        os.kill(warden, signal.SIGKILL)
        assert (await asyncio.wait_for(running, 10)).kind is DeathKind.WARDEN_ENDED


def looks(check: standby.LivenessCheck, first_s: float, seconds: float) -> float:
    """Look as the standby does, so often; the time afterwards."""
    for step in range(round(seconds / 0.2)):
        check.look(first_s + 0.2 * step)
    return first_s + seconds


def test_a_warden_that_does_not_turn_is_ended_by_its_standby(monkeypatch):
    killed = []
    monkeypatch.setattr(standby.os, "kill", lambda *arguments: killed.append(arguments))
    page = standby.LivenessPage(os.getpid())
    check = standby.LivenessCheck(17, page, 0.0)
    now = looks(check, 0.0, 60)
    assert killed == []  # it has not begun to turn
    page.count_turn()
    now = looks(check, now, 4)
    check.look(now + 3600)  # the host was suspended, and the standby with it
    page.count_turn()
    now = looks(check, now + 3600, 4)
    assert killed == []
    looks(check, now, 1.6)
    assert set(killed) == {(17, signal.SIGKILL)}
