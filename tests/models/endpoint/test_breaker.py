import pytest

from headrace.errors import OptionError
from headrace.limits import BreakerLimits
from headrace.models.endpoint.breaker import Breaker, Circuit

LIMITS = BreakerLimits(failures=3, within_s=60, cool_down_s=10, longest_cool_down_s=30)


def opened_at(now_s: float) -> Breaker:
    breaker = Breaker(LIMITS)
    for _ in range(3):
        breaker.failed(now_s)
    return breaker


def test_three_failures_within_a_minute_open_it():
    breaker = Breaker(LIMITS)
    for now_s in (0.0, 30.0):
        breaker.failed(now_s)
        assert breaker.may_try(now_s)
    breaker.failed(60.0)
    assert breaker.circuit is Circuit.OPEN
    assert not breaker.may_try(60.0)


def test_failures_further_apart_do_not():
    breaker = Breaker(LIMITS)
    for now_s in (0.0, 31.0, 62.0, 93.0):
        breaker.failed(now_s)
    assert breaker.circuit is Circuit.CLOSED


def test_a_success_in_between_starts_the_count_again():
    breaker = Breaker(LIMITS)
    breaker.failed(0.0)
    breaker.failed(1.0)
    breaker.succeeded()
    breaker.failed(2.0)
    assert breaker.circuit is Circuit.CLOSED


def test_after_the_pause_exactly_one_probe_is_tried():
    breaker = opened_at(0.0)
    assert [breaker.may_try(now_s) for now_s in (9.9, 10.0, 10.0, 50.0)] == [False, True, False, False]
    breaker.succeeded()
    assert breaker.may_try(50.0)


def test_a_failed_probe_opens_it_again_for_longer_up_to_a_bound():
    breaker, now_s, pauses = opened_at(0.0), 0.0, list[float]()
    for _ in range(4):
        assert breaker.next_probe_s is not None
        pauses.append(breaker.next_probe_s - now_s)
        now_s = breaker.next_probe_s
        assert breaker.may_try(now_s)
        breaker.failed(now_s)
    assert pauses == [10, 20, 30, 30]


def test_what_was_under_way_when_it_opened_changes_nothing():
    breaker = opened_at(0.0)
    breaker.succeeded()
    breaker.failed(5.0)
    assert (breaker.circuit, breaker.next_probe_s) == (Circuit.OPEN, 10.0)


def test_a_cancelled_probe_leaves_the_probe_to_another():
    breaker = opened_at(0.0)
    assert breaker.may_try(10.0)
    breaker.abandoned(11.0)
    assert breaker.may_try(11.0)


def test_each_probe_that_succeeds_lets_in_two_more_until_enough_have():
    breaker = Breaker(LIMITS, closes_after=7)
    for _ in range(3):
        breaker.failed(0.0)
    let_in: list[int] = []
    while breaker.circuit is not Circuit.CLOSED:
        let_in.append(sum(breaker.may_try(10.0) for _ in range(20)))
        for _ in range(let_in[-1]):
            breaker.succeeded()
    assert let_in == [1, 2, 4]


def test_a_probe_that_fails_after_others_have_succeeded_opens_it_again():
    breaker = Breaker(LIMITS, closes_after=3)
    for _ in range(3):
        breaker.failed(0.0)
    assert breaker.may_try(10.0)
    breaker.succeeded()
    assert [breaker.may_try(11.0) for _ in range(3)] == [True, True, False]
    breaker.abandoned(11.0)
    assert breaker.may_try(11.0)
    breaker.failed(12.0)
    assert (breaker.circuit, breaker.next_probe_s) == (Circuit.OPEN, 32.0)
    assert [breaker.may_try(32.0) for _ in range(2)] == [True, False]


def test_failures_of_one_and_the_same_count_once():
    breaker = Breaker(LIMITS)
    for now_s in range(10):
        breaker.failed(now_s, 7)
    breaker.failed(10.0, 8)
    assert breaker.circuit is Circuit.CLOSED
    breaker.failed(11.0, 9)
    assert breaker.circuit is Circuit.OPEN


@pytest.mark.parametrize("given", [{"failures": 0}, {"within_s": 0}, {"cool_down_s": 0}, {"cool_down_s": 500}])
def test_limits_that_make_no_sense_are_refused(given: dict[str, float]):
    with pytest.raises(OptionError):
        BreakerLimits(**given)  # pyright: ignore[reportArgumentType]
