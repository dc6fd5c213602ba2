"""Turns that are lent to workers: both ends of the wire, with messages that take their time, and no processes."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
import pytest

from headrace.errors import ModelUnusable, ProviderBusy, ProviderError, ProviderUnavailable
from headrace.interviews.workers.interview_wire import (
    CallEnded,
    CallFollowed,
    CallsBegun,
    TurnGivenUp,
    TurnGranted,
    TurnRefused,
    TurnsRecalled,
    TurnWanted,
)
from headrace.interviews.workers.remote_limiter import RemoteLimiter
from headrace.interviews.workers.worker_turns import WorkerTurns
from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_results import Ok
from headrace.models.limiter import CallNotMade, Limiter
from headrace.models.provider import RateHint, Reply, Request
from headrace.priority import Priority
from tests.workers.trees import soon

pytestmark = pytest.mark.anyio

LIMITS = EndpointLimits(first_concurrency=4, most_concurrency=4, first_pause_s=0.1, longest_pause_s=0.2)
DELAY_S = 0.01


def never() -> bool:
    return False


def request(priority: Priority = Priority.NORMAL, ordinal: int = -1) -> Request:
    return Request("q", "", "?", {}, {}, {}, 0, 1, priority=priority, ordinal=ordinal)


class Service:
    """What every worker and the controller ask; fails as told, and counts."""

    is_instant = False

    def __init__(self, took_s: float = 0.01) -> None:
        self.took_s = took_s
        self.running = self.most = self.asked = 0
        self.errors: list[ProviderError] = []
        self.rates: RateHint | None = None
        self.begun_s: list[float] = []

    def is_changed(self) -> bool:
        return False

    async def close(self) -> None: ...

    async def ask(self, request: Request) -> Reply:
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun_s.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(self.took_s)
            if self.errors:
                raise self.errors.pop(0)
            return Reply("ok", b"ok", 5, 5, rates=self.rates)
        finally:
            self.running -= 1


class Worker:
    """Both ends of one worker's wire; messages take DELAY_S each way, in order."""

    def __init__(self, limiter: Limiter) -> None:
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self.is_behind = self.is_dead = False
        self.told: list[Any] = []  # by the worker
        self.turns = WorkerTurns([limiter], self._to_worker)
        self.unjournaled: set[int] = set()  # ordinals
        self.limiter = RemoteLimiter(self, 0, lambda ordinal: ordinal not in self.unjournaled)

    async def caught_up(self) -> None: ...

    def number(self) -> int:
        return next(self._numbers)

    def note_begun(self, call: int) -> None:
        self.post(CallsBegun([call]))

    def post(self, message: Any) -> None:
        if not self.is_dead:
            self.told.append(message)
            self._loop.call_later(DELAY_S, self._at_controller, message)

    def _at_controller(self, message: Any) -> None:
        if self.is_dead:
            return
        match message:
            case TurnWanted():
                self.turns.wanted(message)
            case CallsBegun():
                self.turns.begun(message)
            case CallEnded():
                self.turns.ended(message)
            case CallFollowed():
                self.turns.followed(message)
            case TurnGivenUp():
                self.turns.given_up(message.call)
            case _:
                raise AssertionError(message)

    def _to_worker(self, message: Any) -> None:
        self._loop.call_later(DELAY_S, self._at_worker, message)

    def _at_worker(self, message: Any) -> None:
        match message:
            case TurnGranted():
                self.limiter.granted(message.call, message.lease_s)
            case TurnRefused():
                self.limiter.refused(message.call, message.reason)
            case TurnsRecalled():
                self.limiter.recalled()
            case _:
                raise AssertionError(message)

    async def ask(self, service: Service, is_stopping: Callable[[], bool] = never, ordinal: int = -1) -> Reply:
        return await self.limiter.ask(service, request(ordinal=ordinal), 10.0, is_stopping)

    async def ask_all(self, service: Service, calls: int) -> list[Any]:
        return await asyncio.gather(*(self.ask(service) for _ in range(calls)), return_exceptions=True)

    def sent(self, kind: type) -> int:
        return sum(isinstance(message, kind) for message in self.told)


async def settled(limiter: Limiter) -> None:
    """All messages have arrived, and no turn is missing."""
    await asyncio.sleep(3 * DELAY_S)
    assert (limiter.status().in_flight, limiter.status().waiting) == (0, 0)


async def test_a_lent_turn_is_used_for_call_after_call_and_all_workers_keep_to_one_limit():
    limiter, service = Limiter(LIMITS), Service()
    workers = [Worker(limiter) for _ in range(3)]
    replies = await asyncio.gather(*(worker.ask_all(service, 60) for worker in workers))
    assert all(isinstance(reply, Reply) for each in replies for reply in each)
    assert service.asked == limiter.status().calls == 180
    assert service.most <= 4
    assert sum(worker.sent(CallFollowed) for worker in workers) > 150
    await settled(limiter)


async def test_a_lease_ends_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headrace.models.limiter.LEASE_S", 0.03)
    limiter, service = Limiter(LIMITS), Service()
    worker = Worker(limiter)
    await worker.ask_all(service, 100)
    assert worker.sent(CallEnded) >= 15  # after three or four calls each
    await settled(limiter)


async def test_a_busy_service_gets_no_call_but_those_that_were_lent_until_the_recall_arrives():
    limiter, service = Limiter(LIMITS), Service(took_s=0.02)
    workers = [Worker(limiter) for _ in range(2)]
    work = asyncio.gather(*(worker.ask_all(service, 40) for worker in workers))
    await asyncio.sleep(0.15)
    service.errors.append(ProviderBusy("slow down", retry_after_s=0.3))
    while service.errors:
        await asyncio.sleep(0.001)
    busy_s = asyncio.get_running_loop().time()
    await work
    # The turns that the other worker had, until the news has come to it; the service was asked 80 times.
    assert sum(busy_s < begun_s < busy_s + 0.28 for begun_s in service.begun_s) <= 8
    await settled(limiter)


async def test_after_a_failure_each_call_asks_and_three_of_them_open_the_circuit():
    limiter, service = Limiter(LIMITS), Service()
    worker = Worker(limiter)
    service.errors = [ProviderUnavailable("500") for _ in range(4)]
    replies = await asyncio.wait_for(worker.ask_all(service, 4), 5)
    assert all(isinstance(reply, ProviderUnavailable) for reply in replies)
    await asyncio.sleep(3 * DELAY_S)
    assert limiter.status().failures == 4
    assert limiter.status().reason == "500"
    limiter.close()


async def test_an_unusable_model_ends_every_waiting_call():
    limiter, service = Limiter(LIMITS), Service()
    workers = [Worker(limiter) for _ in range(2)]
    service.errors = [ModelUnusable("no such key") for _ in range(8)]
    replies = await asyncio.gather(*(worker.ask_all(service, 30) for worker in workers))
    assert all(isinstance(reply, ModelUnusable) for each in replies for reply in each)
    assert service.asked <= 8
    limiter.close()


async def test_work_of_high_priority_gets_its_turn_within_one_call():
    limiter, service = Limiter(LIMITS), Service(took_s=0.1)
    worker = Worker(limiter)
    survey = asyncio.ensure_future(worker.ask_all(service, 60))
    await asyncio.sleep(0.35)
    begun: list[int] = []
    for _ in range(3):
        before = service.asked
        go = await limiter.turn(request(Priority.HIGH), 10.0, never)
        begun.append(service.asked - before)
        await asyncio.sleep(0.02)
        limiter.ended(go, Ok(1.0))
    assert max(begun) <= 4  # at most the next call of each turn
    followed = worker.sent(CallFollowed)
    await asyncio.sleep(0.3)
    assert worker.sent(CallFollowed) - followed <= 4  # while it may ask again, each call of the survey asks too
    survey.cancel()
    await asyncio.gather(survey, return_exceptions=True)
    await settled(limiter)
    limiter.close()


async def test_calls_of_the_controllers_own_process_are_not_kept_waiting():
    limiter, service = Limiter(LIMITS), Service(took_s=0.02)
    worker = Worker(limiter)
    survey = asyncio.ensure_future(worker.ask_all(service, 100))
    await asyncio.sleep(0.1)
    own, followed = Service(took_s=0.02), worker.sent(CallFollowed)
    await asyncio.gather(*(limiter.ask(own, request(), 10.0, never) for _ in range(4)))
    # From then on the worker's calls have a turn each: those in line before them, and none of those behind them.
    assert worker.sent(CallFollowed) - followed <= 12
    await survey
    await settled(limiter)


async def test_with_rates_in_force_every_call_asks():
    limiter = Limiter(msgspec.structs.replace(LIMITS, requests_per_minute=6000.0))
    worker, service = Worker(limiter), Service(took_s=0.001)
    await worker.ask_all(service, 30)
    assert worker.sent(CallFollowed) == 0


async def test_rates_that_a_reply_tells_end_what_was_lent():
    limiter, service = Limiter(LIMITS), Service()
    worker = Worker(limiter)
    work = asyncio.ensure_future(worker.ask_all(service, 200))
    await asyncio.sleep(0.2)
    told_s = asyncio.get_running_loop().time()
    service.rates = RateHint(requests_per_minute=60_000.0)
    assert await soon(lambda: worker.limiter._recalled_s >= told_s)
    followed = worker.sent(CallFollowed)
    await work
    assert worker.sent(CallFollowed) == followed
    await settled(limiter)


async def test_a_dead_workers_turns_come_back_and_its_calls_in_flight_are_known():
    limiter, service = Limiter(LIMITS), Service(took_s=0.05)
    worker, other = Worker(limiter), Worker(limiter)
    work = asyncio.ensure_future(worker.ask_all(service, 50))
    while worker.sent(CallFollowed) < 8:
        await asyncio.sleep(DELAY_S)
    worker.is_dead = True
    assert 1 <= worker.turns.give_all_back() <= 4  # on a slow machine a turn may just have come back
    assert all(isinstance(reply, Reply) for reply in await other.ask_all(service, 8))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await settled(limiter)


async def test_a_call_that_began_with_a_lent_turn_while_its_own_came_leaves_none_behind():
    limiter, service = Limiter(LIMITS), Service(took_s=0.003)
    workers = [
        Worker(limiter) for _ in range(3)
    ]  # calls are shorter than the way: turns and their use cross each other
    for _ in range(5):
        replies = await asyncio.gather(*(worker.ask_all(service, 23) for worker in workers))
        assert all(isinstance(reply, Reply) for each in replies for reply in each)
        assert service.most <= 4
    await settled(limiter)
    assert limiter.status().calls == service.asked


async def test_calls_that_are_cancelled_or_stopped_leave_no_turn_behind():
    limiter, service = Limiter(LIMITS), Service(took_s=0.02)
    worker, is_stopping = Worker(limiter), False
    calls = [asyncio.ensure_future(worker.ask(service, lambda: is_stopping)) for _ in range(60)]
    for number, call in enumerate(calls):
        if number % 3 == 0:
            await asyncio.sleep(0.002)
            call.cancel()
    is_stopping = True
    worker.limiter.release_stopped()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in ended} == {Reply, asyncio.CancelledError, CallNotMade}
    await settled(limiter)


async def test_a_worker_whose_replies_have_not_left_uses_no_turn_again():
    limiter, service = Limiter(LIMITS), Service()
    worker = Worker(limiter)
    work = asyncio.ensure_future(worker.ask_all(service, 40))
    await asyncio.sleep(0.05)
    worker.is_behind = True
    followed = worker.sent(CallFollowed)
    await work
    assert worker.sent(CallFollowed) == followed


async def test_an_interview_whose_answers_are_not_on_disk_uses_no_turn_that_others_had():
    limiter, service = Limiter(LIMITS), Service()
    worker = Worker(limiter)
    worker.unjournaled.add(7)
    others = asyncio.ensure_future(worker.ask_all(service, 4))
    await asyncio.sleep(1.5 * DELAY_S)
    following = asyncio.ensure_future(worker.ask(service, ordinal=7))
    await others
    assert not following.done()
    assert worker.sent(CallFollowed) == 0
    assert (await following).text == "ok"  # with a turn of its own
    worker.unjournaled.clear()
    await asyncio.gather(worker.ask_all(service, 4), worker.ask(service, ordinal=7))
    assert worker.sent(CallFollowed) == 1
    await settled(limiter)


@pytest.mark.parametrize(("is_host_lost", "calls"), [(False, 0), (True, 3)])
async def test_of_a_lost_host_each_turn_counts_as_a_call_whether_that_was_told_or_not(is_host_lost: bool, calls: int):
    limiter = Limiter(LIMITS)
    turns = WorkerTurns([limiter], lambda message: None)
    for call in range(3):
        turns.wanted(TurnWanted(call, 0, 1.0, Priority.NORMAL))
    assert turns.give_all_back(is_host_lost=is_host_lost) == calls
    assert turns.give_all_back() == 0
    limiter.close()
