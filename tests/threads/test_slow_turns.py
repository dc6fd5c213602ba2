import asyncio
import time

from headrace.threads.slow_turns import SlowTurns


async def quick():
    await asyncio.sleep(0.5)
    await asyncio.sleep(0.5)


async def blocking():
    await asyncio.sleep(0.01)
    time.sleep(0.3)
    await asyncio.sleep(0.01)


async def gathering():
    await asyncio.gather(quick(), asyncio.wait_for(blocking(), 10))


async def cancelled_and_blocking():
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        time.sleep(0.3)
        raise


async def blocking_long():
    time.sleep(1.0)


async def slow_turns_of(work, *, longest_s: float = 0.2, cancel: bool = False) -> list[float]:
    told: list[float] = []
    turns = SlowTurns(longest_s)
    beside = asyncio.create_task(blocking_long())  # of nobody who is watched
    task = turns.watched(work(), told.append)
    if cancel:
        await asyncio.sleep(0.05)
        task.cancel()
    await asyncio.gather(task, beside, return_exceptions=True)
    return told


async def test_a_task_that_blocks_its_loop_is_told_with_how_long():
    took_s = max(await slow_turns_of(blocking))
    assert 0.3 <= took_s < 30


async def test_a_task_that_only_waits_is_not_told_and_neither_is_what_blocks_beside_it():
    assert await slow_turns_of(quick, longest_s=0.9) == []


async def test_what_a_watched_task_starts_is_watched_too():
    took_s = max(await slow_turns_of(gathering))
    assert took_s >= 0.3


async def test_blocking_while_being_cancelled_counts():
    took_s = max(await slow_turns_of(cancelled_and_blocking, cancel=True))
    assert took_s >= 0.3
