from headrace.limits import RetryLimits
from headrace.models.endpoint.retry import wait_before_retry_s

LIMITS = RetryLimits(call_attempts=4, first_wait_s=1.0, longest_wait_s=3.0)


def test_waits_double_up_to_the_longest_and_then_end():
    waits = [wait_before_retry_s(attempts, None, LIMITS, 1.0) for attempts in range(1, 5)]
    assert waits == [1.0, 2.0, 3.0, None]


def test_jitter_spreads_a_wait_over_its_upper_half():
    assert wait_before_retry_s(1, None, LIMITS, 0.0) == 0.5


def test_the_service_s_own_wish_comes_first_within_the_longest():
    assert wait_before_retry_s(1, 0.2, LIMITS, 1.0) == 0.2
    assert wait_before_retry_s(1, 999.0, LIMITS, 1.0) == 3.0
