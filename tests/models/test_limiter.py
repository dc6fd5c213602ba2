import asyncio
from collections.abc import Callable

import msgspec
import pytest

from headrace.errors import ModelUnusable, NetworkAway, ProviderBusy, ProviderError, ProviderUnavailable
from headrace.limits import BreakerLimits, EndpointLimits
from headrace.models.limiter import CallNotMade, EndpointState, Limiter
from headrace.models.provider import Reply, Request
from headrace.priority import Priority

QUICK = EndpointLimits(
    first_concurrency=2, most_concurrency=2, first_pause_s=0.02, longest_pause_s=0.05, longest_asked_pause_s=0.1,
    first_away_s=0.02, longest_away_s=0.05, breaker=BreakerLimits(cool_down_s=0.05),
)  # fmt: skip


class Scripted:
    """A provider that raises what it is told to, in turn, and then answers."""

    is_instant = False

    def is_changed(self) -> bool:
        return False

    def __init__(self, *errors: ProviderError, wait_s: float = 0.0) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []
        self.wait_s = wait_s
        self.running = self.most = 0

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request.user_prompt)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.wait_s)
            if self.errors:
                raise self.errors.pop(0)
            return Reply("ok", b"ok", 5, 5)
        finally:
            self.running -= 1

    async def close(self) -> None: ...


def never() -> bool:
    return False


async def ask(
    limiter: Limiter, provider: Scripted, prompt: str = "?", is_stopping: Callable[[], bool] = never
) -> Reply:
    return await limiter.ask(provider, Request("q", "", prompt, {}, {}, {}, 0, 1), 10.0, is_stopping)


async def test_calls_wait_for_their_turn_in_order_and_never_too_many_run():
    limiter, provider = Limiter(QUICK), Scripted(wait_s=0.01)
    await asyncio.gather(*(ask(limiter, provider, str(number)) for number in range(10)))
    assert provider.asked == [str(number) for number in range(10)]
    assert provider.most == 2


@pytest.mark.parametrize("error", [ProviderBusy("slow down"), NetworkAway("no route")])
async def test_busy_and_away_are_no_attempts_and_hold_everything_until_a_probe(error: ProviderError):
    limiter, provider, told = Limiter(QUICK), Scripted(error, error), list[EndpointState]()
    limiter.listen(lambda state, _: told.append(state))
    replies = await asyncio.gather(*(ask(limiter, provider) for _ in range(5)))
    assert [reply.text for reply in replies] == ["ok"] * 5
    assert 7 <= len(provider.asked) <= 8
    assert told == [EndpointState.HELD, EndpointState.OPEN]


async def test_a_failure_is_raised_and_three_of_them_hold_the_endpoint():
    limiter, provider, told = Limiter(QUICK), Scripted(*[ProviderUnavailable("500")] * 3), list[EndpointState]()
    limiter.listen(lambda state, _: told.append(state))
    for _ in range(3):
        with pytest.raises(ProviderUnavailable):
            await ask(limiter, provider)
    assert limiter.state is EndpointState.OPEN  # nobody is left to probe: the plan has to send one
    probe = asyncio.ensure_future(ask(limiter, provider))
    await asyncio.sleep(0)
    assert limiter.state is EndpointState.HELD
    assert (await probe).text == "ok"
    assert told == [EndpointState.HELD, EndpointState.OPEN]


async def test_an_unusable_model_closes_its_limiter_for_all_in_line():
    limiter, provider, told = (
        Limiter(QUICK),
        Scripted(ModelUnusable("no such key"), wait_s=0.01),
        list[tuple[EndpointState, str]](),
    )
    limiter.listen(lambda *news: told.append(news))
    ended = await asyncio.gather(*(ask(limiter, provider) for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(error, ModelUnusable) for error in ended) >= 9
    assert len(provider.asked) == 2
    assert told == [(EndpointState.CLOSED, "no such key")]
    with pytest.raises(ModelUnusable, match="no such key"):
        await ask(limiter, provider)


async def test_calls_in_line_are_let_go_when_their_work_stops():
    patient = msgspec.structs.replace(QUICK, first_away_s=30.0, longest_away_s=30.0)
    limiter, provider = Limiter(patient), Scripted(NetworkAway("no route"), NetworkAway("no route"))
    stopping = False
    waiting = [asyncio.ensure_future(ask(limiter, provider, is_stopping=lambda: stopping)) for _ in range(5)]
    await asyncio.sleep(0.01)
    stopping = True
    limiter.release_stopped()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(error, CallNotMade) for error in ended)
    with pytest.raises(CallNotMade):
        await ask(limiter, provider, is_stopping=lambda: True)
    limiter.close()


async def test_a_cancelled_call_gives_its_turn_to_the_next():
    limiter, provider = Limiter(QUICK), Scripted(wait_s=0.05)
    calls = [asyncio.ensure_future(ask(limiter, provider, str(number))) for number in range(6)]
    await asyncio.sleep(0.01)
    for call in (calls[0], calls[2], calls[3]):
        call.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(each, Reply) for each in ended] == [False, True, False, False, True, True]
    assert provider.asked == ["0", "1", "4", "5"]
    assert limiter.status().in_flight == 0


async def test_calls_in_line_go_in_the_order_of_their_priority():
    limiter, provider = Limiter(QUICK), Scripted(wait_s=0.01)
    levels = [Priority.NORMAL] * 2 + [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.LOW, Priority.CRITICAL]
    requests = [Request("q", "", f"{n} {p.name}", {}, {}, {}, 0, 1, priority=p) for n, p in enumerate(levels)]
    await asyncio.gather(*(limiter.ask(provider, request, 10.0, never) for request in requests))
    asked = ["0 NORMAL", "1 NORMAL", "6 CRITICAL", "4 HIGH", "3 NORMAL", "2 LOW", "5 LOW"]
    assert provider.asked == asked


async def test_a_call_that_passes_others_needs_no_timer_of_theirs():
    rated = msgspec.structs.replace(QUICK, requests_per_minute=60.0, most_concurrency=500, first_concurrency=500)
    limiter, provider = Limiter(rated), Scripted()
    lower = [asyncio.ensure_future(ask(limiter, provider, f"survey {number}")) for number in range(20)]
    await asyncio.sleep(0)
    request = Request("q", "", "agent", {}, {}, {}, 0, 1, priority=Priority.CRITICAL)
    await limiter.ask(provider, request, 10.0, never)
    assert provider.asked.index("agent") <= 5
    for call in lower:
        call.cancel()
    await asyncio.gather(*lower, return_exceptions=True)
    assert limiter.status().waiting == 0
    limiter.close()
