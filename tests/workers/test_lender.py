import asyncio
import random

import pytest

from headrace.priority import Priority
from headrace.workers.lender import KEPT_BACK_BYTES, LEAST_WORKER_BYTES, Lender, NoRoomError
from headrace.workers.lending import ceiling_while_waiting, enough_to_go_on

MB = 1 << 20


class SetWorker:
    """Holds to a limit as the warden would, and looks at all limits whenever one has moved."""

    def __init__(self, lender, limit_bytes):
        self.counted_bytes = 0
        self.limit_bytes = limit_bytes
        self._lender = lender

    async def set_limit(self, limit_bytes):
        self.limit_bytes = max(limit_bytes, self.counted_bytes + MB)
        others = sum(loan.limit_bytes for loan in self._lender._loans if loan.holder is not self)
        assert others + self.limit_bytes <= self._lender.room_bytes
        return self.limit_bytes


def started(lender):
    async def start(limit_bytes):
        return SetWorker(lender, limit_bytes)

    return start


@pytest.mark.parametrize("seed", range(30))
async def test_limits_in_force_never_exceed_the_room_at_any_moment(seed):
    rng = random.Random(seed)
    lender, loans = Lender(450 * MB, 400 * MB), []
    for _ in range(60):
        charged = sum(max(loan.holder.counted_bytes + MB, LEAST_WORKER_BYTES) + 8 * MB for loan in loans)
        if charged + LEAST_WORKER_BYTES + 8 * MB <= lender.room_bytes and rng.random() < 0.5:  # or it is not admitted
            loans.append(await lender.lend(LEAST_WORKER_BYTES, started(lender)))
        elif loans and rng.random() < 0.3:
            lender.returned(loans.pop(rng.randrange(len(loans))))
        for loan in loans:
            loan.holder.counted_bytes = min(loan.limit_bytes, loan.holder.counted_bytes + rng.randrange(60 * MB))
        await lender.settle()
        assert all(loan.holder.counted_bytes <= loan.limit_bytes <= 400 * MB for loan in loans)


async def test_one_alone_has_its_ceiling_and_gives_way_when_another_comes():
    lender = Lender(450 * MB, 400 * MB)
    first = await lender.lend(50 * MB, started(lender))
    assert first.limit_bytes == 400 * MB
    second = await lender.lend(100 * MB, started(lender))
    assert second.limit_bytes >= 100 * MB
    assert first.limit_bytes + second.limit_bytes <= 450 * MB
    lender.returned(second)
    await lender.settle()
    assert first.limit_bytes == 400 * MB


async def test_one_that_has_grown_while_limits_moved_is_short_but_there_is_more_for_it():
    lender = Lender(300 * MB, 250 * MB)
    low = await lender.lend(130 * MB, started(lender), priority=Priority.LOW)
    high = await lender.lend(60 * MB, started(lender), priority=Priority.HIGH)
    low.holder.counted_bytes = 30 * MB
    high.holder.counted_bytes = high.limit_bytes - MB
    assert high.is_short
    assert not lender.has_none_for(high)  # the lower one has some that it does not use
    await lender.settle()
    assert not high.is_short
    low.holder.counted_bytes, high.holder.counted_bytes = 100 * MB, 170 * MB
    await lender.settle()
    assert lender.has_none_for(high)
    lender.returned(low)
    assert not lender.has_none_for(high)


async def test_what_an_ended_worker_left_in_files_is_not_lent_again():
    left_bytes = 0
    lender = Lender(450 * MB, 400 * MB, lambda: left_bytes)
    ending, other = [await lender.lend(50 * MB, started(lender)) for _ in range(2)]
    left_bytes = 200 * MB
    lender.returned(ending)
    await lender.settle()
    assert other.limit_bytes + left_bytes <= 450 * MB
    left_bytes = 0
    await lender.settle()
    assert other.limit_bytes == 400 * MB


async def test_a_program_has_what_it_asks_for_gives_way_without_and_its_run_has_it_back():
    lender = Lender(300 * MB, 250 * MB)
    run = await lender.lend(30 * MB, started(lender))
    asking = await lender.lend(100 * MB, started(lender), 100 * MB)
    assert asking.limit_bytes == 100 * MB
    assert run.limit_bytes + asking.limit_bytes <= 300 * MB
    lender.returned(asking)
    await lender.settle()
    assert run.limit_bytes == 250 * MB
    modest = await lender.lend(LEAST_WORKER_BYTES, started(lender))
    another = await lender.lend(150 * MB, started(lender))
    assert another.limit_bytes >= 150 * MB
    assert run.limit_bytes + modest.limit_bytes + another.limit_bytes <= 300 * MB


async def test_a_worker_that_waits_keeps_what_it_uses_and_a_little_and_has_its_limit_back_afterwards():
    lender = Lender(450 * MB, 400 * MB)
    waiting = await lender.lend(200 * MB, started(lender))
    waiting.holder.counted_bytes = 40 * MB
    waiting.is_waiting = True
    await lender.settle()
    assert waiting.limit_bytes == ceiling_while_waiting(40 * MB)
    other = await lender.lend(392 * MB, started(lender), priority=Priority.LOW)
    assert other.limit_bytes >= 392 * MB
    assert waiting.limit_bytes <= enough_to_go_on(40 * MB) + 4 * MB
    lender.returned(other)
    waiting.is_waiting = False
    await lender.settle()
    assert waiting.limit_bytes == 400 * MB


class LateWorker(SetWorker):
    """One whose limits are in force before they are confirmed."""

    def __init__(self, lender, limit_bytes):
        super().__init__(lender, limit_bytes)
        self.is_confirmed = asyncio.Event()
        self.is_asked = asyncio.Event()

    async def set_limit(self, limit_bytes):
        self.is_asked.set()
        confirmed = await super().set_limit(limit_bytes)
        await self.is_confirmed.wait()
        return confirmed


async def test_a_worker_whose_wait_ends_while_limits_move_is_lowered_no_more_and_its_sure_limit_is_known():
    lender = Lender(450 * MB, 400 * MB)
    first, second = [await lender.lend(100 * MB, started(lender)) for _ in range(2)]
    first.holder = late = LateWorker(lender, first.limit_bytes)
    before = first.limit_bytes, second.limit_bytes
    first.is_waiting = second.is_waiting = True
    moving = asyncio.create_task(lender.settle())
    await late.is_asked.wait()
    assert first.limit_bytes == before[0]  # nothing is confirmed yet
    assert first.sure_bytes == late.limit_bytes < before[0]
    first.is_waiting = second.is_waiting = False
    late.is_confirmed.set()
    await moving
    assert second.limit_bytes == second.sure_bytes >= before[1]
    await lender.settle()
    assert first.sure_bytes == first.limit_bytes >= 100 * MB


@pytest.mark.parametrize("times", [1, 2])
async def test_a_limit_is_known_though_whoever_had_it_moved_is_cancelled_meanwhile(times: int):
    lender = Lender(450 * MB, 400 * MB)
    loan = await lender.lend(100 * MB, started(lender))
    loan.holder = late = LateWorker(lender, loan.limit_bytes)
    loan.is_waiting = True
    moving = asyncio.create_task(lender.settle())
    await late.is_asked.wait()
    for _ in range(times):
        moving.cancel()
        await asyncio.sleep(0)
    late.is_confirmed.set()
    with pytest.raises(asyncio.CancelledError):
        await moving
    assert loan.limit_bytes == loan.sure_bytes == late.limit_bytes
    loan.is_waiting = False
    await lender.settle()
    assert loan.limit_bytes == 400 * MB


async def test_one_that_starts_has_its_promise_at_once_though_a_wait_ends_while_limits_move(monkeypatch):
    monkeypatch.setattr("headrace.workers.lender._STARTS_WITHIN_S", 0.0)  # there is no second try
    lender = Lender(450 * MB, 400 * MB)
    first, second = [await lender.lend(50 * MB, started(lender)) for _ in range(2)]
    first.holder = late = LateWorker(lender, first.limit_bytes)
    first.is_waiting = second.is_waiting = True
    starting = asyncio.create_task(lender.lend(250 * MB, started(lender), is_promised=True))
    await late.is_asked.wait()
    second.is_waiting = False
    late.is_confirmed.set()
    assert (await starting).limit_bytes >= 250 * MB


async def test_a_lower_worker_gives_back_what_it_does_not_use_when_a_higher_one_grows():
    lender = Lender(416 * MB, 400 * MB)  # 16 MB are kept back: a worker may pass its limit for a moment
    low = await lender.lend(50 * MB, started(lender), priority=Priority.LOW)
    high = await lender.lend(50 * MB, started(lender), priority=Priority.HIGH)
    low.holder.counted_bytes = high.holder.counted_bytes = 100 * MB
    await lender.settle()
    assert low.limit_bytes <= 140 * MB
    high.holder.counted_bytes = 250 * MB
    await lender.settle()
    assert low.limit_bytes == 101 * MB  # what the warden leaves here to one whose limit comes down
    assert high.limit_bytes >= 295 * MB


async def test_a_worker_starts_with_what_it_was_promised_or_not_yet(monkeypatch):
    monkeypatch.setattr("headrace.workers.lender._STARTS_WITHIN_S", 0.1)
    lender = Lender(300 * MB, 250 * MB)
    first = await lender.lend(100 * MB, started(lender), priority=Priority.LOW, is_promised=True)
    first.holder.counted_bytes = 200 * MB  # more than it was promised, since the second was admitted
    for priority in (Priority.LOW, Priority.CRITICAL):
        with pytest.raises(NoRoomError):
            await lender.lend(130 * MB, started(lender), priority=priority, is_promised=True)
    starting = asyncio.ensure_future(lender.lend(130 * MB, started(lender), is_promised=True))
    await asyncio.sleep(0.02)
    assert not starting.done()
    first.holder.counted_bytes = 100 * MB
    second = await starting
    assert second.limit_bytes >= 130 * MB
    assert first.limit_bytes + second.limit_bytes <= 300 * MB


async def test_what_can_be_promised_can_be_lent():
    lender = Lender(300 * MB, 250 * MB)
    assert (await lender.lend(lender.lendable_bytes() - 8 * MB, started(lender), is_promised=True)).limit_bytes
    lender = Lender(300 * MB, 250 * MB)
    before = lender.lendable_bytes()
    program = await lender.lend(100 * MB, started(lender), 100 * MB)
    assert lender.lendable_bytes() == before - 108 * MB
    rest = await lender.lend(lender.lendable_bytes() - 8 * MB, started(lender), is_promised=True)
    assert program.limit_bytes == 100 * MB
    assert rest.limit_bytes >= rest.reserved_bytes


async def test_a_limit_that_has_just_risen_may_not_be_the_one_that_was_met():
    lender = Lender(416 * MB, 400 * MB)
    loan = await lender.lend(50 * MB, started(lender))
    now_s = asyncio.get_running_loop().time()
    assert loan.limit_lately(now_s) == loan.limit_bytes == 400 * MB
    other = await lender.lend(300 * MB, started(lender), is_promised=True)
    assert loan.limit_lately(now_s) == loan.limit_bytes <= 100 * MB
    lender.returned(other)
    await lender.settle()
    assert loan.limit_bytes == 400 * MB
    assert loan.limit_lately(asyncio.get_running_loop().time()) <= 100 * MB
    assert loan.limit_lately(asyncio.get_running_loop().time() + 1) == 400 * MB


async def test_what_is_not_worth_moving_adds_up_for_one_that_starts(monkeypatch):
    monkeypatch.setattr("headrace.workers.lender._STARTS_WITHIN_S", 0.0)
    lender = Lender(400 * MB, 100 * MB)
    waiting = [await lender.lend(16 * MB, started(lender)) for _ in range(16)]
    for loan in waiting:
        loan.is_waiting, loan.holder.counted_bytes = True, 1 * MB
        loan.now_has(12 * MB, 0.0)  # 3 MB above what it needs: not worth moving by itself
    lender.room_bytes = 8 * MB + 16 * 9 * MB + 50 * MB
    loan = await lender.lend(50 * MB, started(lender), is_promised=True)
    assert loan.limit_bytes >= 50 * MB


async def test_nothing_is_kept_back_for_those_that_wait_and_all_of_it_when_they_compute_again():
    lender = Lender(300 * MB, 250 * MB)
    loans = []
    for _ in range(14):  # 18 MB each, with 8 MB kept back only 11
        loans.append(await lender.lend(20 * MB, started(lender), is_promised=True))
        loans[-1].holder.counted_bytes = 10 * MB
        loans[-1].is_waiting = True
        await lender.settle()
    assert sum(loan.limit_bytes for loan in loans) <= 300 * MB
    lender.returned(loans.pop())
    loans[0].is_waiting = False
    await lender.settle()
    assert sum(loan.limit_bytes for loan in loans) + KEPT_BACK_BYTES <= 300 * MB
