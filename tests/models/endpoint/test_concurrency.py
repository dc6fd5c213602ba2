import pytest

from headrace.models.endpoint.concurrency import Concurrency


def rounds(limits: Concurrency, count: int, capacity: int, now_s: float = 0.0) -> float:
    """So many round trips to a service that does `capacity` calls a second."""
    for _ in range(count):
        took_s = max(1.0, limits.limit / capacity)
        started_s, now_s = now_s + 1e-6, now_s + took_s
        limits.was_short()
        for _ in range(limits.limit):
            limits.succeeded(started_s, now_s)
    return now_s


def test_it_starts_small_and_doubles_while_that_helps():
    limits = Concurrency(8, 500)
    seen = [limits.limit]
    for number in range(12):
        rounds(limits, 1, capacity=10_000, now_s=10.0 * number)
        seen.append(limits.limit)
    assert sorted(set(seen)) == [8, 16, 32, 64, 128, 256, 500]


@pytest.mark.parametrize("capacity", [10, 50, 130])
def test_it_stops_growing_where_throughput_does(capacity: int):
    limits = Concurrency(8, 500)
    rounds(limits, 60, capacity)
    assert 0.8 * capacity <= limits.limit <= 2 * capacity


def test_it_does_not_grow_while_nobody_waits_for_it():
    limits = Concurrency(8, 500)
    for _ in range(100):
        limits.succeeded(0.0, 1.0)
    assert limits.limit == 8


def test_a_call_that_was_heard_of_after_the_last_change_but_began_before_it_tells_nothing():
    limits = Concurrency(16, 500)
    limits.was_short()
    for _ in range(16):
        limits.succeeded(0.0, 1.0, took_s=0.5)
    assert limits.limit == 32
    limits.was_short()
    for _ in range(32):
        limits.succeeded(1.0, 1.0, took_s=0.5)  # its begin and its end came with one message
    assert limits.limit == 32
    for _ in range(32):
        limits.succeeded(1.0, 2.0, took_s=0.5)
    assert limits.limit == 64


def test_a_call_that_began_with_the_last_change_counts():
    limits = Concurrency(16, 500)
    limits.was_short()
    for _ in range(16):
        limits.succeeded(-0.27, 0.43)
    assert limits.limit == 32
    limits.was_short()
    for _ in range(32):
        limits.succeeded(0.43, 1.13)  # in floating point, 1.13 - (1.13 - 0.43) is less than 0.43
    assert limits.limit == 64


def test_a_burst_of_refusals_halves_it_once_and_a_call_begun_later_halves_it_again():
    limits = Concurrency(200, 500)
    for _ in range(200):
        limits.overloaded(0.0, 1.0)
    assert limits.limit == 100
    limits.overloaded(1.5, 2.0)
    assert limits.limit == 50


def test_it_never_falls_below_one():
    limits = Concurrency(8, 500)
    for second in range(20):
        limits.overloaded(second + 0.5, second + 1.0)
    assert limits.limit == 1
    assert rounds(limits, 200, capacity=10_000, now_s=100.0) > 0
    assert limits.limit > 8, "and it comes back"


def test_after_a_cut_it_climbs_to_just_below_where_it_was_too_much_and_rests_there():
    limits = Concurrency(100, 500)
    limits.overloaded(0.0, 1.0)
    rounds(limits, 4, capacity=10_000, now_s=2.0)
    assert limits.limit == 90


def test_after_an_incident_the_load_comes_back_in_steps():
    limits = Concurrency(100, 500)
    limits.restart(0.0)
    seen, now_s = [limits.limit], 1.0
    while limits.limit < 100:
        now_s = rounds(limits, 1, capacity=10_000, now_s=now_s)
        seen.append(limits.limit)
    assert seen == [2, 4, 8, 16, 32, 64, 100]


def test_it_stays_within_what_is_allowed():
    limits = Concurrency(8, 3)
    rounds(limits, 30, capacity=10_000)
    assert limits.limit == 3
