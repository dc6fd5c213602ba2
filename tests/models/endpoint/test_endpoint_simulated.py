import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_results import Busy
from headrace.priority import Priority
from tests.models.endpoint.simulated_service import Service, Simulation, most_in_a_minute

SEEDS = (1, 2, 3)


def later_rate(simulation: Simulation) -> float:
    """Calls a second over the second half."""
    half = len(simulation.done_at_s) // 2
    return half / (simulation.now_s - simulation.done_at_s[half])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("capacity", [1, 6, 20, 100])
def test_a_service_that_queues_is_used_to_capacity_without_a_long_queue(capacity: int, seed: int):
    ran = Simulation(Service(capacity=capacity, spread=0.6), EndpointLimits(), seed=seed).run(120 * capacity + 200)
    assert later_rate(ran) >= 0.8 * capacity
    assert ran.endpoint.status(ran.now_s).concurrency <= max(16, 2.5 * capacity)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_service_that_refuses_what_is_too_much_is_used_to_capacity_with_few_refusals(seed: int):
    ran = Simulation(Service(refuses_above=20), EndpointLimits(), seed=seed).run(8_000)
    assert later_rate(ran) >= 0.8 * 20
    assert len(ran.calls) <= 8_000 * 1.02


@pytest.mark.parametrize("tells_rates", [True, False])
@pytest.mark.parametrize("limit", [60, 600])
def test_rates_are_kept_in_every_minute_and_used(limit: int, tells_rates: bool):
    limits = EndpointLimits(requests_per_minute=None if tells_rates else limit)
    ran = Simulation(Service(requests_per_minute=limit, tells_rates=tells_rates), limits).run(4 * limit)
    first_calls = limits.first_concurrency if tells_rates else 0  # before the first reply nothing is known
    assert most_in_a_minute([call.at_s for call in ran.calls]) <= limit + first_calls
    assert len(ran.done_at_s) / ran.now_s >= 0.8 * limit / 60


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("retry_after_s", [None, 0.0, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.HIGH])
def test_a_storm_of_thirty_seconds_costs_a_handful_of_calls(priority: Priority, retry_after_s: float | None, seed: int):
    service = Service(capacity=60, storms=[(20.0, 50.0)], retry_after_s=retry_after_s)
    ran = Simulation(service, EndpointLimits(), seed=seed, priority=priority).run(2_500)
    in_storm = [call for call in ran.calls if 20 <= call.at_s < 50]
    assert len(in_storm) > 0
    # Of forty seeds without `retry_after_s`, 6 to 13, and 8.6 on average: as many of either priority.
    assert sum(type(call.outcome) is Busy for call in ran.calls) <= 13
    assert len(ran.done_at_s) == 2_500


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_that_goes_on_at_the_first_call_costs_higher_calls_half_of_the_first_ones_more(seed: int):
    service = Service(capacity=60, storms=[(0.0, 30.0)])

    def refused(priority: Priority) -> int:
        ran = Simulation(service, EndpointLimits(), seed=seed, priority=priority).run(500)
        return sum(type(call.outcome) is Busy for call in ran.calls)

    assert refused(Priority.HIGH) <= refused(Priority.NORMAL) + EndpointLimits().first_concurrency // 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["outages", "hangs", "no_network"])
def test_after_an_outage_everything_completes_and_meanwhile_only_probes_go_out(kind: str, seed: int):
    service = Service(capacity=60, **{kind: [(20.0, 200.0)]})  # pyright: ignore[reportArgumentType]
    ran = Simulation(service, EndpointLimits(), seed=seed).run(3_000)
    assert len(ran.done_at_s) == 3_000
    # What hangs is found out when the first calls time out, 20 s later.
    known_s = 42.0 if kind == "hangs" else 21.0
    assert sum(known_s <= call.at_s < 200 for call in ran.calls) <= 10
    assert ran.now_s <= 200 + 130 + 60


@settings(max_examples=25)
@given(st.data())
def test_whatever_the_service_does_everything_completes_within_the_limits(data: st.DataObject):
    def spans() -> list[tuple[float, float]]:
        drawn = data.draw(st.lists(st.tuples(st.floats(0, 200), st.floats(0.01, 60)), max_size=3))
        return [(first_s, first_s + long_s) for first_s, long_s in drawn]

    service = Service(
        took_s=data.draw(st.floats(0.01, 10)),
        spread=data.draw(st.floats(0, 0.9)),
        capacity=data.draw(st.integers(1, 300)),
        refuses_above=data.draw(st.none() | st.integers(1, 100)),
        requests_per_minute=data.draw(st.none() | st.integers(10, 5_000)),
        tells_rates=data.draw(st.booleans()),
        retry_after_s=data.draw(st.none() | st.floats(0, 40)),
        storms=spans(),
        outages=spans(),
        hangs=spans(),
        no_network=spans(),
    )
    given_limit = data.draw(st.none() | st.integers(10, 5_000))
    limits = EndpointLimits(requests_per_minute=given_limit, most_concurrency=data.draw(st.integers(1, 300)))
    ran = Simulation(service, limits, seed=data.draw(st.integers(0, 1000))).run(400, until_s=50_000)
    assert len(ran.done_at_s) == 400
    if given_limit is not None and not service.no_network:  # what never reached the service is not counted
        assert most_in_a_minute([call.at_s for call in ran.calls]) <= given_limit
