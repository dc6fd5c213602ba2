import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from headrace.memory.measure import shared_files
from headrace.memory.measure.process import Process
from headrace.memory.measure.sysv_segments import listed_segments
from headrace.memory.measure.tree import ProcessTree
from headrace.workers.functions import refer_to
from headrace.workers.pool import WorkerPool
from headrace.workers.progress_page import ProgressPage
from headrace.workers.warden.watch import Watch
from headrace.workers.wire import Death, DeathKind, TaskDone, TaskMessage, TaskOutOfMemory
from tests.workers import entries
from tests.workers.tasks import end_workers, run_in, run_task
from tests.workers.trees import MB, highest_until, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LIMIT = 100 * MB
# Beside the limit itself: what the worker was forked with, of which it has copied a part by now.
MOST = max(LIMIT * 11 // 10, LIMIT + 32 * MB)
HOARDER = """
import os, sys, time
held = []
while not os.path.exists(sys.argv[1] + "/begun"):
    time.sleep(0.01)
for _ in range(30):
    held.append(os.memfd_create("others"))
    os.write(held[-1], b"x" * (10 << 20))
open(sys.argv[1] + "/taken", "w").close()
time.sleep(60)
"""


async def ending_and_highest(pool: WorkerPool, entry, payload: bytes = b"", limit: int = LIMIT):
    worker = await pool.worker(limit)
    running = asyncio.ensure_future(run_task(worker, entry, payload))
    highest = await highest_until(running, worker.pid)
    pool.give_back(worker)
    return running.result(), highest


@pytest.mark.parametrize(
    "entry",
    [
        entries.take_bytearrays,
        entries.take_small_objects,
        entries.take_numpy,
        entries.take_in_threads,
        entries.take_private,
    ],
)
async def test_the_hard_limit_is_met_as_a_memory_error(pool, entry):
    ending, highest = await ending_and_highest(pool, entry)
    assert isinstance(ending, TaskOutOfMemory), ending
    assert ending.used_bytes > LIMIT // 2
    assert highest <= MOST


async def test_a_limit_that_is_hit_by_one_huge_array_says_that_little_was_used(pool):
    ending, _ = await ending_and_highest(pool, entries.take_at_once)
    assert isinstance(ending, TaskOutOfMemory), ending
    assert "8.00 GiB" in ending.reason
    assert ending.used_bytes < LIMIT


@pytest.mark.parametrize(
    "entry",
    [
        entries.take_shared,
        entries.take_memfd_mapped,
        entries.take_memfd,
        entries.take_in_children,
        entries.take_in_forks,
        entries.take_by_writing_in_forks,
    ],
)
async def test_what_the_hard_limit_misses_is_seen_by_the_warden(pool, entry):
    ending, highest = await ending_and_highest(pool, entry)
    assert isinstance(ending, Death)
    assert ending.kind is DeathKind.OUT_OF_MEMORY
    assert ending.used_bytes > LIMIT
    assert max(highest, ending.peak_bytes) <= MOST


@pytest.mark.parametrize(
    "entry",
    [
        entries.take_memfds_mapped_and_closed,
        entries.take_memfds_in_flight,
        entries.take_segments,
        entries.take_in_pipes,
        entries.take_in_sockets,
    ],
)
async def test_what_no_process_shows_is_counted_all_the_same(pool, entry):
    ending, _ = await ending_and_highest(pool, entry)
    if isinstance(ending, TaskDone):  # the kernel lets an ordinary user have 64 MB in pipes, over all processes
        assert 0 < int(ending.payload) < LIMIT
        return
    assert isinstance(ending, Death)
    assert ending.kind is DeathKind.OUT_OF_MEMORY
    assert LIMIT < ending.peak_bytes <= 3 * LIMIT  # looking takes longer here, and longer yet beside others


async def test_a_memfd_that_was_seen_open_counts_when_it_is_mapped_and_closed(pool):
    ending, _ = await ending_and_highest(pool, entries.take_memfds_mapped_and_closed, b"30")
    assert isinstance(ending, Death)
    assert ending.kind is DeathKind.OUT_OF_MEMORY


@pytest.mark.parametrize("entry", [entries.take_segments, entries.leave_a_small_segment])
async def test_segments_of_a_worker_end_with_it_and_no_others(pool, entry):
    library, before = ctypes.CDLL(None), {segment.id for segment in listed_segments()}
    ours = library.shmget(0, 4096, 0o1600)
    said: list[bytes] = []
    try:
        ending = await run_in(pool, entry, b"", LIMIT, said.append)
        made = {int(told) for told in [*said, *([ending.payload] if isinstance(ending, TaskDone) else [])]}
        await end_workers(pool)
        assert made
        assert await soon(lambda: not made & {segment.id for segment in listed_segments()})
        assert before | {ours} <= {segment.id for segment in listed_segments()}
    finally:
        library.shmctl(ours, 0, None)


async def test_shared_memory_of_another_worker_counts_for_none_that_hides_a_little(pool, tmp_path):
    hiding = asyncio.ensure_future(run_in(pool, entries.hide_a_little_and_work, bytes(tmp_path), LIMIT))
    sharing = await run_in(pool, entries.share_much, bytes(tmp_path), 4 * LIMIT)
    assert isinstance(sharing, TaskDone)
    assert isinstance(await hiding, TaskDone)


async def test_hidden_memory_of_another_process_counts_for_no_worker(pool, tmp_path):
    """One that hides memory itself, too: what it has can be no more than its CPU time can have filled."""
    bystander = subprocess.Popen([sys.executable, "-c", HOARDER, str(tmp_path)])
    try:
        ending = await run_in(pool, entries.hide_a_little, bytes(tmp_path), LIMIT)
        assert isinstance(ending, TaskDone)
    finally:
        bystander.kill()
        bystander.wait()


async def test_files_in_shared_memory_count_for_the_worker_that_writes_them(pool):
    directory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        other = asyncio.ensure_future(run_in(pool, entries.wait, b"1", LIMIT))
        ending, _ = await ending_and_highest(pool, entries.take_in_small_files, bytes(directory))
        assert isinstance(ending, Death)
        assert ending.kind is DeathKind.OUT_OF_MEMORY
        # Not much less, either: a file system that is mounted in two places holds its files once.
        assert LIMIT * 9 // 10 <= sum(file.stat().st_size for file in directory.iterdir()) <= MOST
        # Its files are still there when it is not, and only then is what they take free for others.
        assert LIMIT * 9 // 10 <= pool.abandoned_bytes == ending.abandoned_bytes <= MOST
        assert isinstance(await other, TaskDone)
        shutil.rmtree(directory)
        async with asyncio.timeout(10):
            while pool.abandoned_bytes > LIMIT // 10:
                await asyncio.sleep(0.01)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.parametrize("entry", [entries.converse_blocking, entries.write_to_disk])
async def test_files_in_shared_memory_that_another_process_writes_count_for_no_worker(pool, tmp_path, entry):
    worker = await pool.worker(20 * MB)
    worker.start(refer_to(entry), bytes(tmp_path / "disk"))
    assert await worker.receive() == TaskMessage(1, b"ready")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        for number in range(40):
            (Path(directory) / str(number)).write_bytes(b"x" * MB)
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.15)  # so that even a worker that waits has been looked at
        worker.send(b"alive")
        ending = await worker.receive()
    assert isinstance(ending, TaskDone)
    assert ending.payload.startswith(b"alive")


def test_a_file_that_is_closed_while_it_is_looked_at_hides_no_other(monkeypatch):
    there = {target for _, target in shared_files._open_files(os.getpid())}
    gone, readlink = iter([True]), os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: readlink("/nowhere" if next(gone, False) else path))
    assert len(there - {target for _, target in shared_files._open_files(os.getpid())}) <= 1


@pytest.mark.parametrize("entry", [entries.share_with_children, entries.share_with_children_that_work])
async def test_memory_shared_with_forked_children_counts_once(pool, entry):
    ending, _ = await ending_and_highest(pool, entry)
    assert ending == TaskDone(1, b"shared")


async def test_swallowing_memory_errors_ends_a_worker(pool):
    ending, highest = await ending_and_highest(pool, entries.swallow_memory_errors)
    assert isinstance(ending, Death)
    assert ending.kind is DeathKind.HUNG
    assert "no step for 3 s" in ending.reason
    assert highest <= MOST


async def test_a_worker_that_met_its_limit_is_never_used_again(pool):
    first = await pool.worker(LIMIT)
    await run_task(first, entries.take_bytearrays)
    pool.give_back(first)
    assert (await pool.worker(LIMIT)).pid != first.pid


async def test_a_limit_can_be_lent_to_a_worker_that_runs(pool):
    worker = await pool.worker(20 * MB)
    assert await worker.set_limit(LIMIT) == worker.limit_bytes == LIMIT
    assert isinstance(await run_task(worker, entries.keep, b"50000000"), TaskDone)


async def test_a_child_that_runs_already_is_lent_more_with_its_worker(pool):
    worker = await pool.worker(30 * MB)
    worker.start(refer_to(entries.let_a_child_take), str(90 * MB).encode())
    await worker.receive()
    await worker.set_limit(2 * LIMIT)
    worker.send(b"on")
    assert await worker.receive() == TaskDone(1, b"0")


async def test_a_limit_is_never_taken_back_below_what_is_in_use(pool):
    worker = await pool.worker(LIMIT)
    worker.start(refer_to(entries.keep_and_go_on), str(40 * MB).encode())
    await worker.receive()
    answers = await asyncio.gather(worker.set_limit(20 * MB), worker.set_limit(90 * MB), worker.set_limit(10 * MB))
    assert answers[0] == answers[2] == worker.limit_bytes  # each asked for its own; the last one holds
    assert 48 * MB <= worker.limit_bytes <= 56 * MB
    worker.send(b"on")
    assert isinstance(await worker.receive(), TaskOutOfMemory)  # below 60 MB, which it had at first


async def test_a_worker_that_allocates_all_the_while_survives_its_limit_being_taken_back(pool):
    worker = await pool.worker(LIMIT)
    running = asyncio.ensure_future(run_task(worker, entries.come_and_go, b"0.5"))
    while not running.done():
        assert await worker.set_limit(MB) <= await worker.set_limit(LIMIT) == LIMIT
    assert running.result() == TaskDone(1, b"went")


async def test_a_worker_that_uses_more_than_it_would_be_lent_is_not_used_again():
    async with WorkerPool() as pool:
        first = await pool.worker(LIMIT)
        assert isinstance(await run_task(first, entries.keep, str(25 * MB).encode()), TaskDone)
        pool.give_back(first)
        second = await pool.worker(20 * MB)
        assert (second.pid, second.limit_bytes) != (first.pid, first.limit_bytes)
        assert second.limit_bytes == 20 * MB


async def test_a_worker_near_its_limit_is_told_of_in_time_to_lend_it_more():
    told: dict[int, int] = {}
    lent = asyncio.Event()

    def lend(worker: int, used_bytes: int) -> None:
        told[worker] = used_bytes
        if used_bytes >= 80 * MB:
            lent.set()

    async with WorkerPool(on_reading=lend) as pool:
        worker = await pool.worker(LIMIT)
        running = asyncio.ensure_future(run_task(worker, entries.take_slowly, b"150"))
        await asyncio.wait_for(lent.wait(), 10)
        assert not running.done()
        await worker.set_limit(2 * LIMIT)
        worker.send(b"on")
        assert await running == TaskDone(1, b"taken")


async def test_forty_deaths_in_a_row_leave_the_others_alone(pool):
    other = asyncio.ensure_future(run_in(pool, entries.wait, b"1.5", LIMIT))
    for _ in range(20):
        assert isinstance(await run_in(pool, entries.take_bytearrays, b"", 20 * MB), TaskOutOfMemory)
        assert (await run_in(pool, entries.take_shared, b"", 20 * MB)).kind is DeathKind.OUT_OF_MEMORY
    assert isinstance(await other, TaskDone)


def test_only_a_worker_without_a_task_may_be_looked_at_less_often():
    waiting = subprocess.Popen(["sleep", "30"])
    tree = ProcessTree(waiting.pid, has_base=True)
    watch = Watch(worker=1, pid=waiting.pid, tree=tree, limit_bytes=1 << 40, hang_s=1.0)
    try:
        assert not watch.may_be_skipped(5.0, 0, False)  # never looked at
        watch.look(5.0, 3, False)
        assert watch.may_be_skipped(5.01, 3, False)
        assert not watch.may_be_skipped(5.01, 3, True)  # a task has begun
        assert not watch.may_be_skipped(5.01, 5, False)  # one has begun and ended
        assert not watch.may_be_skipped(5.2, 3, False)
    finally:
        tree.close()
        waiting.kill()
        waiting.wait()


def times_woken(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])


async def test_a_warden_sleeps_while_no_worker_has_a_task_and_the_first_one_wakes_it(pool):
    worker = await pool.worker(LIMIT)
    await asyncio.sleep(0.25)
    before, began_s = times_woken(pool.warden_pid), time.monotonic()
    await asyncio.sleep(0.4)
    times = times_woken(pool.warden_pid) - before
    assert times <= 5 + 25 * (time.monotonic() - began_s)  # awake, it is a hundred times a second
    ending = await run_task(worker, entries.take_memfd)
    assert isinstance(ending, Death)
    assert LIMIT < ending.peak_bytes <= MOST


def test_a_worker_wakes_its_warden_only_when_that_sleeps():
    woken: list[int] = []
    page = ProgressPage()
    place = page.take()
    before = signal.signal(signal.SIGURG, lambda number, frame: woken.append(number))
    try:
        for page.is_asleep in (False, True):
            if not (pid := os.fork()):
                try:
                    place.set_busy(True)
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
            assert bool(woken) is page.is_asleep
    finally:
        signal.signal(signal.SIGURG, before)
    assert place.steps == 2


def test_a_process_that_becomes_another_program_is_not_taken_for_ended(tmp_path):
    again = tmp_path / "again.sh"
    again.write_text('exec sh "$0"')
    becoming = subprocess.Popen(["sh", again])
    process = Process(becoming.pid)
    try:
        assert all(process.read() is not None for _ in range(20_000))
    finally:
        process.close()
        becoming.kill()
        becoming.wait()
