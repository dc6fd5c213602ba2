import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from headrace.workers.functions import refer_to
from headrace.workers.handle import Worker
from headrace.workers.limit_mechanisms import enforcement_layers
from headrace.workers.pool import PoolOptions, WorkerPool
from headrace.workers.wire import DeathKind, TaskDone, TaskFailed, TaskMessage, TaskOutOfMemory
from tests.workers import entries
from tests.workers.tasks import run_in, run_task, stop
from tests.workers.trees import MB, children_of, gone_within, memory_of, soon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
LIMIT = 80 * MB


async def test_a_task_is_done_in_another_process(pool):
    ending = await run_in(pool, entries.own_pid, b"", LIMIT)
    assert isinstance(ending, TaskDone)
    assert int(ending.payload) != pool.warden_pid


@pytest.mark.parametrize("entry", [entries.converse, entries.converse_blocking])
async def test_messages_go_both_ways_while_a_task_runs(pool, entry):
    worker = await pool.worker(LIMIT)
    worker.start(refer_to(entry), b" tides")
    assert await worker.receive() == TaskMessage(1, b"ready")
    worker.channel.send(TaskMessage(0, b"of an earlier task"))
    worker.send(b"spring")
    assert await worker.receive() == TaskDone(1, b"spring tides")


EXCHANGES = [entries.exchange, entries.exchange_blocking, entries.exchange_posted, entries.exchange_on_uvloop]


@pytest.mark.parametrize("entry", EXCHANGES, ids=lambda entry: entry.__name__)
async def test_messages_larger_than_a_socket_buffer_cross_each_other_whole(pool, entry):
    """A buffer holds some 200 KB, so that each is sent and received in many parts, in both directions at once."""
    count, size = 3, 5 * MB
    worker = await pool.worker(2 * LIMIT)  # what is queued both ways, and a result of all of it
    for task in (1, 2):  # the second finds the channel as the first has left it
        worker.start(refer_to(entry), b"%d %d" % (count, size))
        for number in range(count):
            worker.send(bytes([100 + number]) * size)
        for number in range(count):
            assert await asyncio.wait_for(worker.receive(), 20) == TaskMessage(task, bytes([number]) * size)
        ending = await asyncio.wait_for(worker.receive(), 20)
        assert ending == TaskDone(task, b"".join(bytes([100 + number]) * size for number in range(count)))


async def test_a_result_that_does_not_fit_beside_its_encoding_is_out_of_memory(pool):
    worker = await pool.worker(LIMIT)
    worker.start(refer_to(entries.return_much), b"%d" % (50 * MB))
    ending = await asyncio.wait_for(worker.receive(), 20)
    assert isinstance(ending, TaskOutOfMemory), ending


async def test_a_worker_goes_on_while_the_controller_does_not_read(pool, tmp_path: Path):
    """Its loop turns, and its messages leave as the controller reads."""
    worker = await pool.worker(LIMIT)
    turned = tmp_path / "turned"
    worker.start(refer_to(entries.turn_while_unread), bytes(turned))
    assert await worker.receive() == TaskMessage(1, b"ready")
    worker.channel.pause(True)
    assert await soon(turned.exists, 30)
    worker.channel.pause(False)
    assert await worker.receive() == TaskMessage(1, bytes(5 * MB))
    ending = await worker.receive()
    assert isinstance(ending, TaskDone)
    assert int(ending.payload) >= 10


async def test_a_worker_is_held_by_every_limit(pool):
    ending = await run_in(pool, entries.limits, b"", LIMIT)
    assert isinstance(ending, TaskDone)
    assert ending.payload == b"0 800 True 1048576 1"


async def test_a_warden_may_watch_more_processes_than_a_worker_may_have_files_open():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        async with WorkerPool() as pool:
            ending = await run_in(pool, entries.most_descriptors, b"", LIMIT)
            assert isinstance(ending, TaskDone)
            assert ending.payload == b"256"
            assert pool.warden_pid is not None
            assert resource.prlimit(pool.warden_pid, resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (entries.fail, "no such"),
        (entries.leave, "SystemExit: 3"),
        (entries.too_large, "write it to a file"),
        (entries.send_too_large, "the most is 67,108,864"),
    ],
)
async def test_an_error_is_told_and_the_worker_goes_on(pool, entry, told):
    worker = await pool.worker(300 * MB)
    ending = await run_task(worker, entry)
    assert isinstance(ending, TaskFailed)
    assert told in ending.reason
    assert isinstance(await run_task(worker, entries.echo, b"on"), TaskDone)


@pytest.mark.parametrize(
    ("entry", "kind", "code", "killed_by"),
    [
        (entries.end_at_once, DeathKind.EXITED, 7, None),
        (entries.abort, DeathKind.SIGNALLED, None, 6),
        (entries.touch_nothing, DeathKind.SIGNALLED, None, 11),
        (entries.kill_itself, DeathKind.SIGNALLED, None, 9),
        (entries.say_half_a_message, DeathKind.EXITED, 9, None),
        (entries.stop_itself, DeathKind.STOPPED, None, 9),
        (entries.close_its_channel, DeathKind.LOST, None, 9),
        (entries.speak_nonsense, DeathKind.LOST, None, 9),
    ],
)
async def test_a_death_costs_its_own_task_only(pool, entry, kind, code, killed_by):
    other = asyncio.ensure_future(run_in(pool, entries.wait, b"0.5", LIMIT))
    death = await asyncio.wait_for(run_in(pool, entry, b"", LIMIT), 10)
    assert (death.kind, death.code, death.signal) == (kind, code, killed_by)
    assert (await other).payload == b"waited"
    assert (await run_in(pool, entries.echo, b"on", LIMIT)).payload == b"on"


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGKILL, DeathKind.SIGNALLED), (signal.SIGSTOP, DeathKind.STOPPED)]
)
async def test_a_worker_killed_or_stopped_from_outside_costs_its_own_task_only(pool, number, kind):
    others = [asyncio.ensure_future(run_in(pool, entries.wait, b"0.8", LIMIT)) for _ in range(2)]
    worker = await pool.worker(LIMIT)
    running = asyncio.ensure_future(run_task(worker, entries.wait))
    await asyncio.sleep(0.1)
    os.kill(worker.pid, number)
    death = await asyncio.wait_for(running, 10)
    assert (death.kind, death.signal) == (kind, 9)
    assert [(await other).payload for other in others] == [b"waited", b"waited"]


async def test_a_busy_loop_that_never_awaits_is_ended_by_whoever_started_it(pool):
    other = asyncio.ensure_future(run_in(pool, entries.wait, b"0.5", LIMIT))
    worker = await pool.worker(LIMIT)
    worker.start(refer_to(entries.never_await))
    assert (await worker.receive()).payload == b"busy"
    death = await stop(worker, terminate_after_s=0.1, kill_after_s=2, reason="it took longer than 0.1 s")
    assert (death.kind, death.reason) == (DeathKind.HUNG, "it took longer than 0.1 s")
    assert (await other).payload == b"waited"


async def test_a_child_that_comes_back_into_the_worker_is_not_heard(pool):
    worker = await pool.worker(LIMIT)
    for number in range(1, 6):
        assert await run_task(worker, entries.fork_and_return) == TaskDone(number, b"parent")


async def test_a_late_message_of_an_earlier_task_is_refused_by_its_epoch(pool):
    worker = await pool.worker(LIMIT)
    assert await run_task(worker, entries.talk_on) == TaskDone(1, b"left")
    await asyncio.sleep(0.05)  # its thread has sent some by now
    said: list[bytes] = []
    assert await run_task(worker, entries.wait, b"0.1", said.append) == TaskDone(2, b"waited")
    assert said == [b"waiting"]


async def test_ten_thousand_lines_to_stderr_stop_nothing(pool):
    assert (await run_in(pool, entries.chatter, b"", LIMIT)).payload == b"said"


async def test_what_a_worker_said_before_its_death_arrives_before_it(pool):
    said: list[bytes] = []
    await run_in(pool, entries.end_at_once, b"", LIMIT, said.append)
    assert said == [b"last words"]


async def test_a_worker_is_used_again_until_it_is_old():
    async with WorkerPool(PoolOptions(tasks_per_worker=3)) as pool:
        pids = [(await run_in(pool, entries.own_pid, b"", LIMIT)).payload for _ in range(6)]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3]


async def test_a_worker_that_has_grown_is_replaced():
    async with WorkerPool() as pool:
        first = (await run_in(pool, entries.own_pid, b"", LIMIT)).payload
        assert isinstance(await run_in(pool, entries.keep, str(40 * MB).encode(), LIMIT), TaskDone)
        assert (await run_in(pool, entries.own_pid, b"", LIMIT)).payload != first


async def test_a_hundred_tasks_leave_no_descriptor_and_no_zombie():
    async with WorkerPool(PoolOptions(tasks_per_worker=2)) as pool:
        first = (await run_in(pool, entries.open_descriptors, b"", LIMIT)).payload
        warden = Path(f"/proc/{pool.warden_pid}")
        held = len(list((warden / "fd").iterdir()))
        for _ in range(100):
            assert (await run_in(pool, entries.open_descriptors, b"", LIMIT)).payload == first
        assert await soon(lambda: len(list((warden / "fd").iterdir())) <= held + 1)
        assert await soon(lambda: len(children_of(pool.warden_pid)) <= 1)


async def test_workers_do_not_hold_each_others_channels():
    async with WorkerPool() as pool:
        first = await pool.worker(LIMIT)
        await pool.worker(LIMIT)
        first.channel.close()
        assert gone_within([first.pid], 2) == []


@pytest.mark.parametrize("entry", [entries.leave_a_child, entries.leave_a_daemon])
async def test_what_a_worker_started_ends_with_it(pool, entry):
    worker = await pool.worker(LIMIT)
    said: list[bytes] = []
    await run_task(worker, entry, b"", said.append)
    worker.kill()
    await worker.ended
    await asyncio.sleep(0.05)
    assert gone_within([int(said[0])], 2) == []


async def test_forked_workers_draw_different_numbers():
    async with WorkerPool(PoolOptions(tasks_per_worker=1, preload=("random", "no_such_module"))) as pool:
        drawn = {(await run_in(pool, entries.random_number, b"", LIMIT)).payload for _ in range(3)}
        assert len(drawn) == 3
        assert "no_such_module" in pool.not_preloaded


async def test_a_file_above_the_cap_fails_in_the_task(tmp_path):
    async with WorkerPool(PoolOptions(largest_file_bytes=MB)) as pool:
        ending = await run_in(pool, entries.write_a_large_file, bytes(tmp_path / "large"), LIMIT)
        assert isinstance(ending, TaskFailed)
        assert "File too large" in ending.reason


async def test_a_worker_started_from_nothing_does_the_same():
    async with WorkerPool(PoolOptions(forks=False)) as pool:
        assert await run_in(pool, entries.echo, b"spawned", LIMIT) == TaskDone(1, b"spawned")


async def test_stopping_is_asked_then_told_then_forced(pool):
    worker = await pool.worker(LIMIT)
    worker.start(refer_to(entries.wait))
    death = await stop(worker, terminate_after_s=0.05, kill_after_s=2)
    assert (death.kind, death.signal) == (DeathKind.SIGNALLED, 15)


def test_every_layer_has_a_state():
    layers = dict(enforcement_layers())
    assert layers["RLIMIT_DATA"] == layers["watchdog"] == "active"
    assert layers["cgroup v2"].startswith(("active", "unproven"))


async def test_a_worker_costs_little_and_starts_quickly():
    async with WorkerPool() as pool:
        workers: list[Worker] = [await pool.worker(LIMIT) for _ in range(3)]
        assert all(memory_of(worker.pid) < 16 * MB for worker in workers)


async def test_asking_for_a_worker_can_be_cancelled(pool):
    for _ in range(5):
        asking = asyncio.ensure_future(pool.worker(LIMIT))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert (await run_in(pool, entries.echo, b"on", LIMIT)).payload == b"on"
