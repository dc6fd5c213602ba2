"""Large replies wait on disk until a process with a memory limit has room for them."""

import asyncio
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.memory import reclaiming
from headrace.models.http_client.reply_room import BudgetRoom, ReplyRoom, free_bytes

MB = 1 << 20


class Memory:
    def __init__(self, free: int | None) -> None:
        self.free = free
        self.looks = 0

    def __call__(self) -> int | None:
        self.looks += 1
        return self.free


async def looks(memory: Memory, count: int) -> None:
    """Wait until the memory was looked at so many times more."""
    until = memory.looks + count
    async with asyncio.timeout(60):
        while memory.looks < until:
            await asyncio.sleep(0.01)


async def test_without_a_limit_nothing_waits():
    room = ReplyRoom(Memory(None))
    waiting = [asyncio.create_task(room.wait_for(500 * MB)) for _ in range(100)]
    done, _ = await asyncio.wait(waiting, timeout=10)
    assert len(done) == 100


async def test_a_reply_waits_until_those_before_it_have_given_memory_back():
    memory = Memory(100 * MB)
    room = ReplyRoom(memory, quiet_looks=10_000)
    await room.wait_for(10 * MB)
    second = asyncio.create_task(room.wait_for(10 * MB))
    await asyncio.sleep(0.05)
    assert not second.done()  # the first shows in no reading yet
    memory.free = 20 * MB
    await asyncio.sleep(0.4)
    assert not second.done()
    memory.free = 95 * MB
    await asyncio.wait_for(second, 10)


async def test_what_never_fits_is_read_when_nobody_else_is_busy():
    memory = Memory(100 * MB)
    room = ReplyRoom(memory)
    await room.wait_for(MB)  # so that the room knows how much there can be
    memory.free = 10 * MB
    room.quiet_looks = 10_000
    waiting = [asyncio.create_task(room.wait_for(100 * MB)) for _ in range(2)]
    await looks(memory, 20)
    assert not any(each.done() for each in waiting)
    room.quiet_looks = 5
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [each.done() for each in waiting].count(True) == 1  # being read: the other gives it a moment too
    before = memory.looks
    await asyncio.wait(waiting)
    assert memory.looks - before >= 5


async def test_replies_are_read_in_the_order_in_which_they_came_and_only_the_first_looks():
    memory = Memory(1_000 * MB)
    room = ReplyRoom(memory, quiet_looks=10_000, settled_after_looks=0)
    await room.wait_for(MB)  # so that the room knows how much there can be
    memory.free, memory.looks = 0, 0
    read: list[int] = []

    async def wait(number: int) -> None:
        await room.wait_for(MB)
        read.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(200)]
    await asyncio.sleep(0.3)
    assert memory.looks <= 35  # one each 10 ms, not one for each of those that wait
    memory.free = 1_000 * MB
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)
    assert read == list(range(200))


async def test_a_reply_waits_until_the_smallest_budget_of_the_process_has_room():
    resident = [70 * MB]
    room = BudgetRoom(lambda: resident[0])
    room.quiet_looks = 10_000
    await room.wait_for(500 * MB)  # no survey is running
    room.bound("large", 500 * MB)
    room.bound("small", 100 * MB)
    await room.wait_for(4 * MB)
    resident[0] = 90 * MB
    waiting = asyncio.create_task(room.wait_for(4 * MB))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    room.unbound("small")
    await asyncio.wait_for(waiting, 10)


async def test_caches_that_are_filled_again_in_no_time_make_room_for_a_reply(monkeypatch: pytest.MonkeyPatch):
    resident = [50 * MB]
    monkeypatch.setattr(reclaiming, "_quick_drops", [lambda: resident.__setitem__(0, 50 * MB)])
    room = BudgetRoom(lambda: resident[0])
    room.quiet_looks = 10_000
    room.bound("survey", 100 * MB)
    await room.wait_for(4 * MB)
    resident[0] = 95 * MB
    await asyncio.wait_for(room.wait_for(4 * MB), 10)
    assert resident == [50 * MB]


async def test_a_reply_that_no_budget_has_room_for_is_read_after_a_moment():
    room = BudgetRoom(lambda: 90 * MB)
    room.bound("small", 80 * MB)
    await asyncio.wait_for(room.wait_for(4 * MB), 10)


async def test_a_reply_that_no_budget_has_room_for_waits_for_a_commit_however_long_that_takes():
    """A slow disk made it look as if nobody could give memory back, and a megabyte more came every 0.1 s."""
    memory = Memory(90 * MB)
    room = BudgetRoom(lambda: memory() or 0)
    room.bound("small", 80 * MB)
    with room.committing():
        waiting = asyncio.create_task(room.wait_for(4 * MB))
        await looks(memory, 3 * room.quiet_looks)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 10)


async def test_commits_of_another_survey_one_after_the_other_do_not_hold_a_reply_back_for_good():
    room = BudgetRoom(lambda: 90 * MB)
    room.bound("small", 80 * MB)
    waiting = asyncio.create_task(room.wait_for(4 * MB))
    async with asyncio.timeout(60):
        while not waiting.done():  # far fewer looks from one commit to the next than there are quiet ones in a row
            with room.committing():
                await asyncio.sleep(0.004)
            await asyncio.wait([waiting], timeout=0.01)
    assert waiting.exception() is None


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA and /proc")
def test_what_is_free_is_read_from_the_limit_of_this_process():
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    assert soft == resource.RLIM_INFINITY
    assert free_bytes() is None
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, hard))
    try:
        assert 0 < (free_bytes() or 0) < 1 << 40
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def test_surveys_on_several_threads_share_the_room_of_their_process():
    room = BudgetRoom(lambda: 50 * MB)
    room.bound("survey", 100 * MB)

    async def ask_many() -> None:
        for _ in range(5):
            await asyncio.gather(*(room.wait_for(MB) for _ in range(20)))

    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(asyncio.run, ask_many()) for _ in range(4)]:
            each.result(60)
