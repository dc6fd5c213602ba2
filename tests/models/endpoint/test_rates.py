import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.models.endpoint.rates import Meter, Rates
from headrace.models.provider import RateHint
from tests.models.endpoint.simulated_service import most_in_a_minute


def rates(requests: float | None = None, tokens: float | None = None) -> Rates:
    return Rates(requests, tokens, 600.0)


def send_for(minutes: float, limits: Rates, tokens: float = 1.0) -> list[float]:
    """When calls go out that are sent as soon as they may."""
    now_s, sent = 0.0, list[float]()
    while now_s < minutes * 60:
        assert limits.ready_s(tokens) <= now_s
        limits.take(tokens, now_s)
        sent.append(now_s)
        now_s = max(now_s, limits.ready_s(tokens))
    return sent


def test_without_limits_a_call_may_always_go():
    assert rates().ready_s(1e12) == -math.inf


@pytest.mark.parametrize("limit", [1, 2, 3, 59, 60, 61, 500, 10_000])
def test_no_minute_has_more_requests_than_the_limit_and_hardly_fewer(limit: int):
    sent = send_for(4, rates(requests=limit))
    assert most_in_a_minute(sent) <= limit
    assert len(sent) >= 4 * limit * 0.96 - 1


@given(st.floats(1, 1e6), st.floats(0.1, 1e6))
def test_any_limit_and_any_size_go_on_and_the_time_named_is_a_time_that_will_do(limit: float, tokens: float):
    limits, now_s = rates(tokens=limit), 1e9
    for _ in range(20):
        now_s = max(now_s, limits.ready_s(tokens))
        assert limits.ready_s(tokens) <= now_s
        limits.take(tokens, now_s)
    assert now_s <= 1e9 + 20 * 61


def test_tokens_of_calls_below_a_thirtieth_of_the_limit_never_exceed_it():
    sent = send_for(4, rates(tokens=30_000), tokens=1_000)
    assert most_in_a_minute(sent) * 1_000 <= 30_000
    assert len(sent) >= 4 * 29 - 1


def test_a_call_larger_than_the_whole_limit_goes_alone():
    assert send_for(3, rates(tokens=100), tokens=5_000) == pytest.approx([0, 62, 124], abs=3)


def test_what_was_not_used_is_given_back_and_what_was_used_more_is_paid_later():
    limits = rates(tokens=6_000)
    limits.take(200, 0.0)
    assert limits.ready_s(200) == pytest.approx(2, abs=0.2)
    limits.settle(-200, 0.1)
    assert limits.ready_s(200) <= 0.1
    limits.take(200, 0.1)
    limits.settle(+600, 0.2)
    assert limits.ready_s(200) == pytest.approx(8, abs=0.5)
    limits.settle(+(10**9), 0.2)
    assert limits.ready_s(200) <= 61, "nobody owes more than a minute"


def test_a_learned_limit_is_followed_and_a_later_reply_may_raise_it():
    limits = rates()
    limits.learn(RateHint(requests_per_minute=60), 0.0)
    assert limits.requests_per_minute == 60
    for _ in range(2):
        limits.take(1, 0.0)
    assert limits.ready_s(1) == pytest.approx(1, abs=0.1)
    limits.learn(RateHint(requests_per_minute=6_000, tokens_per_minute=10), 0.0)
    assert limits.ready_s(1) <= 0.1
    assert (limits.requests_per_minute, limits.tokens_per_minute) == (6_000, 10)


def test_a_given_limit_is_never_exceeded_whatever_a_reply_tells():
    limits = rates(requests=60)
    limits.learn(RateHint(requests_per_minute=6_000), 0.0)
    assert limits.requests_per_minute == 60
    limits.learn(RateHint(requests_per_minute=30), 0.0)
    assert limits.requests_per_minute == 30


def test_nothing_left_means_waiting_for_the_reset_but_not_for_ever():
    limits = rates()
    limits.learn(RateHint(requests_left=0, requests_reset_s=12.5), 100.0)
    assert limits.ready_s(1) == 112.5
    limits.learn(RateHint(tokens_left=0, tokens_reset_s=86_400), 100.0)
    assert limits.ready_s(1) == 700.0


def test_what_others_used_of_a_shared_limit_is_seen():
    limits = rates()
    limits.learn(RateHint(requests_per_minute=600, requests_left=2), 0.0)
    limits.take(1, 0.0)
    limits.take(1, 0.0)
    assert limits.ready_s(1) > 0.05


@pytest.mark.parametrize("nonsense", [0.0, -1.0, math.nan, math.inf])
def test_nonsense_in_headers_changes_nothing(nonsense: float):
    limits = rates(requests=60)
    limits.learn(RateHint(nonsense, nonsense, math.nan, -1, nonsense, nonsense), 0.0)
    assert limits.ready_s(5) == -math.inf
    assert (limits.requests_per_minute, limits.tokens_per_minute) == (60, None)


def test_a_meter_tells_what_the_last_minute_had():
    meter = Meter()
    assert meter.per_minute(0.0) == 0
    for second in range(200):
        meter.add(2, float(second))
    assert meter.per_minute(200.0) == pytest.approx(120, rel=0.1)
    assert meter.per_minute(400.0) == 0
