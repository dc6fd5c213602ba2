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


@pytest.mark.parametrize("given", [{"failures": 0}, {"within_s": 0}, {"cool_down_s": 0}, {"cool_down_s": 500}])
def test_limits_that_make_no_sense_are_refused(given: dict[str, float]):
    with pytest.raises(OptionError):
        BreakerLimits(**given)  # pyright: ignore[reportArgumentType]
