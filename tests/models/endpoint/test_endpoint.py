import math
from typing import Any

import pytest

from headrace.errors import OptionError
from headrace.limits import EndpointLimits
from headrace.models.endpoint.breaker import Circuit
from headrace.models.endpoint.call_results import (
    Abandoned,
    Away,
    Busy,
    CallRefused,
    CallResult,
    Closed,
    EndpointCondition,
    Go,
    Ok,
    TimedOut,
    Unavailable,
    Unusable,
    Wait,
)
from headrace.models.endpoint.endpoint import Endpoint
from headrace.models.provider import RateHint
from headrace.priority import Priority


def endpoint(**given: Any) -> Endpoint:
    return Endpoint(EndpointLimits(**given), jitter=lambda: 1.0)


def sent(calls: Endpoint, now_s: float) -> Go:
    answer = calls.ask(now_s, 100)
    assert isinstance(answer, Go), answer
    return answer


def end_one(calls: Endpoint, now_s: float, outcome: CallResult) -> None:
    calls.ended(now_s, sent(calls, now_s), outcome)


def fleet(calls: Endpoint, now_s: float = 0.0) -> list[Go]:
    found: list[Go] = []
    while isinstance(answer := calls.ask(now_s, 100), Go):
        found.append(answer)
    return found


def test_calls_go_out_up_to_the_concurrency_and_then_wait_for_one_to_end():
    calls = endpoint(first_concurrency=3)
    out = fleet(calls)
    assert len(out) == calls.in_flight == 3
    assert calls.ask(0.0, 100) == Wait(None)
    calls.ended(1.0, out[0], Ok(100))
    assert isinstance(calls.ask(1.0, 100), Go)


def test_until_a_call_fails_those_of_high_may_be_half_as_many_again_as_a_new_endpoint_begins_with():
    calls = endpoint(first_concurrency=8)
    out = fleet(calls)
    assert len(out) == 8
    high = [calls.ask(0.0, 100, Priority.HIGH) for _ in range(5)]
    assert [type(answer) for answer in high] == [Go, Go, Go, Go, Wait]
    calls.ended(1.0, out[0], Ok(100))
    assert calls.ask(1.0, 100) == Wait(None)  # 11 are in flight, and the limit is 8
    calls.ended(1.0, out[1], Unavailable())
    assert calls.ask(1.0, 100, Priority.CRITICAL) == Wait(None)


def test_what_high_calls_may_have_at_first_is_bounded_by_the_most():
    calls = endpoint(first_concurrency=8, most_concurrency=9)
    fleet(calls)
    assert isinstance(calls.ask(0.0, 100, Priority.HIGH), Go)
    assert calls.ask(0.0, 100, Priority.HIGH) == Wait(None)


def test_replies_that_are_heard_of_ever_later_do_not_count_as_slow():
    calls, now_s, delay_s = endpoint(first_concurrency=8, most_concurrency=512), 0.0, 1.0
    for _ in range(20):
        begun = [sent(calls, now_s) for _ in range(calls.status(now_s, waiting=0).concurrency)]
        assert isinstance(calls.ask(now_s, 100), Wait)
        delay_s *= 1.5
        now_s += delay_s
        for go in begun:
            calls.ended(now_s, go, Ok(100, took_s=1.0))
    assert calls.status(now_s, waiting=0).concurrency == 512


def test_rates_make_a_call_wait_until_a_time():
    calls = endpoint(requests_per_minute=60)
    out = fleet(calls)
    answer = calls.ask(0.0, 100)
    assert isinstance(answer, Wait)
    assert answer.until_s == pytest.approx(1, abs=0.1)
    assert len(out) == 2
    assert isinstance(calls.ask(answer.until_s or 0, 100), Go)


def test_a_busy_service_is_left_alone_for_as_long_as_it_asks_and_then_gets_one_probe():
    calls = endpoint()
    end_one(calls, 10.0, Busy(7.0))
    assert calls.ask(10.0, 100) == Wait(17.0)
    assert calls.status(11.0).paused_until_s == 17.0
    probe = sent(calls, 17.0)
    assert calls.ask(17.0, 100) == Wait(None)
    calls.ended(18.0, probe, Ok(100))
    assert len(fleet(calls, 18.0)) == 2, "the load comes back in steps"
    assert calls.status(18.0).circuit is Circuit.CLOSED


def test_a_busy_service_that_asks_for_nothing_is_left_alone_twice_as_long_each_time_up_to_a_bound():
    calls, now_s, pauses = endpoint(longest_pause_s=10.0), 0.0, list[float]()
    for _ in range(6):
        end_one(calls, now_s, Busy())
        answer = calls.ask(now_s, 100)
        assert isinstance(answer, Wait)
        assert answer.until_s is not None
        pauses.append(answer.until_s - now_s)
        now_s = answer.until_s
    assert pauses == [1, 2, 4, 8, 10, 10]


def test_a_service_that_keeps_asking_for_too_little_is_given_more():
    calls, now_s, tries = endpoint(), 0.0, 0
    while now_s < 30:
        end_one(calls, now_s, Busy(0.1))
        answer = calls.ask(now_s, 100)
        assert isinstance(answer, Wait)
        now_s, tries = answer.until_s or math.inf, tries + 1
    assert tries <= 7


def test_a_burst_of_refusals_is_one_pause_and_halves_the_concurrency_once():
    calls = endpoint(first_concurrency=200)
    for number, go in enumerate(fleet(calls)):
        calls.ended(1.0 + number / 1000, go, Busy(5.0 + (number == 100)))
    status = calls.status(1.5)
    assert (status.concurrency, status.busy, status.circuit) == (100, 200, Circuit.CLOSED)
    assert status.paused_until_s == pytest.approx(7.1, abs=0.01), "the latest wish counts"


def test_a_wish_beyond_all_measure_is_not_believed():
    for wish in (1e9, math.inf, math.nan, -5.0):
        calls = endpoint(longest_asked_pause_s=600)
        end_one(calls, 0.0, Busy(wish))
        assert isinstance(answer := calls.ask(0.0, 100), Wait)
        assert 0 < (answer.until_s or 0) <= 600


@pytest.mark.parametrize("outcome", [Unavailable(), TimedOut()])
def test_a_fleet_that_fails_together_is_one_incident_and_then_only_probes_go_out(outcome: CallResult):
    calls = endpoint(first_concurrency=200)
    for number, go in enumerate(fleet(calls)):
        calls.ended(1.0 + number / 200, go, outcome)
    assert calls.status(2.0).circuit is Circuit.OPEN
    out, now_s = 0, 2.0
    while now_s < 100:
        answer = calls.ask(now_s, 100)
        if isinstance(answer, Go):
            out += 1
            calls.ended(now_s, answer, outcome)
        else:
            assert isinstance(answer, Wait)
            assert answer.until_s is not None
            now_s = answer.until_s
    assert 2 <= out <= 5
    assert calls.status(now_s).failures == 200 + out


def test_a_probe_that_succeeds_closes_the_circuit_and_late_failures_of_the_fleet_do_not_open_it_again():
    calls = endpoint(first_concurrency=50)
    out = fleet(calls)
    for go in out[:40]:
        calls.ended(1.0, go, Unavailable())
    end_one(calls, 11.0, Ok(100))
    assert calls.status(11.0).circuit is Circuit.CLOSED
    for go in out[40:]:
        calls.ended(60.0, go, TimedOut())
    assert calls.status(60.0).circuit is Circuit.CLOSED
    assert isinstance(calls.ask(60.0, 100), Go)


def test_a_network_that_is_away_is_tried_now_and_then_and_says_since_when():
    calls, now_s, waits = endpoint(), 5.0, list[float]()
    for _ in range(6):
        end_one(calls, now_s, Away())
        answer = calls.ask(now_s, 100)
        assert isinstance(answer, Wait)
        waits.append((answer.until_s or 0) - now_s)
        now_s += waits[-1]
        assert calls.away_since_s == 5.0
    assert waits == [2, 4, 8, 16, 30, 30]
    end_one(calls, now_s, Ok(100))
    assert calls.away_since_s is None
    assert (calls.status(now_s).failures, calls.status(now_s).circuit) == (0, Circuit.CLOSED)


def test_a_fleet_that_never_reached_the_service_is_one_absence():
    calls = endpoint(first_concurrency=200)
    for go in fleet(calls):
        calls.ended(1.0, go, Away())
    assert calls.ask(1.0, 100) == Wait(3.0)


def test_an_unusable_model_is_closed_with_the_first_message_of_those_that_were_in_flight_together():
    calls = endpoint(first_concurrency=3, first_closed_s=30.0)
    out = fleet(calls)
    calls.ended(1.0, out[0], Unusable("the key is wrong"))
    calls.ended(1.0, out[1], Unusable("again"))
    calls.ended(1.0, out[2], Ok(100))
    assert calls.ask(30.9, 100) == Closed("the key is wrong")
    assert calls.in_flight == 0
    status = calls.status(30.9)
    assert (status.condition, status.since_s, status.reason) == (EndpointCondition.CLOSED, 1.0, "the key is wrong")
    assert status.paused_until_s == 31.0


def test_a_closed_endpoint_is_probed_after_a_while_twice_as_long_each_time_up_to_a_bound():
    calls, now_s, waits = endpoint(first_closed_s=30.0, longest_closed_s=100.0), 0.0, list[float]()
    for _ in range(5):
        end_one(calls, now_s, Unusable("the key is wrong"))
        until_s = calls.status(now_s).paused_until_s or 0.0
        assert isinstance(calls.ask(until_s - 0.1, 100), Closed)
        waits.append(until_s - now_s)
        now_s = until_s
    assert waits == [30.0, 60.0, 100.0, 100.0, 100.0]
    probe = sent(calls, now_s)
    assert calls.ask(now_s, 100) == Wait(None), "what asks meanwhile waits for the probe, and is not refused"
    calls.ended(now_s + 1, probe, Ok(100))
    assert len(fleet(calls, now_s + 1)) == 2
    assert calls.status(now_s + 1).condition is EndpointCondition.OPEN


@pytest.mark.parametrize("outcome", [Unavailable(), TimedOut(), Busy(5.0), Away(), Abandoned()])
def test_a_probe_that_says_nothing_about_the_key_leaves_a_closed_endpoint_closed(outcome: CallResult):
    calls = endpoint()
    end_one(calls, 0.0, Unusable("the key is wrong"))
    now_s = calls.status(0.0).paused_until_s or 0.0
    end_one(calls, now_s, outcome)
    assert calls.status(now_s).condition is EndpointCondition.CLOSED
    for _ in range(20):  # it is probed again at some time, and never spins or waits for nothing
        answer = calls.ask(now_s, 100)
        if isinstance(answer, Go):
            break
        assert isinstance(answer, (Wait, Closed))
        now_s = calls.status(now_s).paused_until_s or now_s
    else:
        raise AssertionError("no probe")
    calls.ended(now_s, answer, Ok(100))
    assert calls.status(now_s).condition is EndpointCondition.OPEN


def test_what_is_reopened_takes_calls_at_once_and_an_older_refusal_does_not_close_it_again():
    calls = endpoint(first_concurrency=3)
    out = fleet(calls)
    calls.ended(1.0, out[0], Unusable("the key is wrong"))
    calls.reopen(2.0)
    calls.ended(3.0, out[1], Unusable("the key is wrong"))
    status = calls.status(3.0)
    assert (status.condition, status.since_s, status.reason) == (EndpointCondition.OPEN, 2.0, "")
    end_one(calls, 4.0, Unusable("the new key is wrong too"))
    assert calls.ask(4.0, 100) == Closed("the new key is wrong too")
    assert calls.status(4.0).paused_until_s == 34.0, "as if it had been the first time"


@pytest.mark.parametrize("outcome", [Busy(60.0), Away()])
def test_what_is_reopened_while_it_is_held_back_is_probed_at_once(outcome: CallResult):
    calls = endpoint()
    end_one(calls, 0.0, outcome)
    calls.reopen(1.0)
    end_one(calls, 1.0, Ok(100))
    assert calls.status(1.0).condition is EndpointCondition.OPEN


def test_a_failing_endpoint_that_is_reopened_is_probed_at_once():
    calls = endpoint()
    for _ in range(3):
        end_one(calls, 0.0, Unavailable("500: broken"))
    status = calls.status(0.5)
    assert (status.condition, status.since_s, status.reason) == (EndpointCondition.FAILING, 0.0, "500: broken")
    calls.reopen(0.5)
    end_one(calls, 0.5, Ok(100))
    assert calls.status(0.5).condition is EndpointCondition.OPEN


@pytest.mark.parametrize(
    ("outcome", "condition"),
    [(Busy(5.0, "429: slow down"), EndpointCondition.BUSY), (Away("no route"), EndpointCondition.AWAY)],
)
def test_an_endpoint_tells_how_it_is_since_when_and_why(outcome: Busy | Away, condition: EndpointCondition):
    calls = endpoint()
    assert (calls.status(0.0).condition, calls.status(0.0).since_s) == (EndpointCondition.OPEN, None)
    end_one(calls, 10.0, outcome)
    status = calls.status(11.0)
    assert (status.condition, status.since_s, status.reason) == (condition, 10.0, outcome.message)
    now_s = calls.status(11.0).paused_until_s or 0.0
    end_one(calls, now_s, Ok(100))
    status = calls.status(now_s)
    assert (status.condition, status.since_s, status.reason) == (EndpointCondition.OPEN, now_s, "")


def test_refused_and_abandoned_calls_do_not_count_against_the_endpoint():
    calls = endpoint()
    for second in range(20):
        end_one(calls, float(second), CallRefused())
        end_one(calls, float(second), Abandoned())
    assert len(fleet(calls, 20.0)) == 8
    assert calls.status(20.0).failures == 0


@pytest.mark.parametrize("incident", [Busy(5.0), Away(), Unavailable()])
def test_an_abandoned_probe_leaves_the_probe_to_another_and_a_refused_one_shows_that_the_service_is_there(
    incident: CallResult,
):
    calls = endpoint()
    for go in fleet(calls):
        calls.ended(0.0, go, incident)
    end_one(calls, 10.0, Abandoned())
    end_one(calls, 10.0, CallRefused())
    assert len(fleet(calls, 10.0)) == 2


@pytest.mark.parametrize("first", [Busy(5.0), Away(), Unavailable()])
@pytest.mark.parametrize("second", [Busy(5.0), Away(), Unavailable(), TimedOut()])
def test_one_kind_of_incident_may_turn_into_another_and_all_end(first: CallResult, second: CallResult):
    calls = endpoint()
    for go in fleet(calls):
        calls.ended(0.0, go, first)
    now_s, probes = 0.0, 0
    while probes < 12:
        answer = calls.ask(now_s, 100)
        if isinstance(answer, Go):
            probes += 1
            calls.ended(now_s, answer, second if probes < 10 else Ok(100))
        else:
            assert isinstance(answer, Wait)
            assert answer.until_s is not None
            assert now_s < answer.until_s <= now_s + 120
            now_s = answer.until_s
    assert calls.status(now_s).paused_until_s is None
    assert calls.away_since_s is None


def test_the_status_tells_what_there_is_to_tell():
    calls = endpoint(tokens_per_minute=1e6)
    for second in range(60):
        end_one(calls, float(second), Ok(300, RateHint(requests_per_minute=500)))
    sent(calls, 60.0)
    status = calls.status(60.0, waiting=7)
    assert (status.calls, status.tokens, status.in_flight, status.waiting) == (61, 18_000, 1, 7)
    assert (status.most_requests_per_minute, status.most_tokens_per_minute) == (500, 1e6)
    assert status.requests_per_minute == pytest.approx(60, rel=0.1)
    assert status.tokens_per_minute == pytest.approx(18_000, rel=0.1)


@pytest.mark.parametrize(
    "given",
    [
        {"requests_per_minute": 0},
        {"tokens_per_minute": math.nan},
        {"requests_per_minute": True},
        {"most_concurrency": 0},
        {"first_concurrency": 1.5},
        {"first_pause_s": 0},
        {"first_away_s": 60},
        {"longest_asked_pause_s": math.inf},
    ],
)
def test_limits_that_make_no_sense_are_refused(given: dict[str, Any]):
    with pytest.raises(OptionError):
        EndpointLimits(**given)
