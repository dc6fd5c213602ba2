from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.limits import EndpointLimits
from headrace.models.endpoint.call_results import Go, Ok, Wait
from headrace.models.endpoint.endpoint import Endpoint
from headrace.priority import Priority
from tests.models.endpoint.priority_world import Survey, World
from tests.models.endpoint.simulated_service import most_in_a_minute

LOW, NORMAL, HIGH, CRITICAL = Priority


def asked_every(
    seconds: float, priority: Priority, *, until_s: float, from_s: float = 5.0
) -> list[tuple[float, Priority]]:
    return [(from_s + number * seconds, priority) for number in range(int((until_s - from_s) / seconds))]


@pytest.mark.parametrize("lower", [LOW, NORMAL])
@pytest.mark.parametrize("higher", [HIGH, CRITICAL])
@pytest.mark.parametrize("per_minute", [60, 300, 3_000])
def test_beside_a_survey_at_its_rate_limit_a_higher_call_waits_for_one_call_of_the_rate(
    per_minute: int, higher: Priority, lower: Priority
):
    limits = EndpointLimits(requests_per_minute=per_minute, first_concurrency=200)
    survey = Survey(lower, calls=3_000, window=200)
    ran = World(limits).run([survey], asked_every(7.0, higher, until_s=60.0), until_s=70.0)
    interval_s = 60 / per_minute * 1.05  # a little less than the limit is used
    assert len(ran.waits_of(higher)) >= 7
    assert max(ran.waits_of(higher)) <= interval_s + 1e-6
    assert max(ran.waits_of(higher)[1:]) == 0.0, "while they come, the next call of the rate is left for them"


def test_beside_a_survey_that_uses_all_concurrency_the_first_higher_call_waits_for_one_call_and_the_next_for_none():
    limits = EndpointLimits(most_concurrency=16)
    survey = Survey(NORMAL, calls=900, window=100)
    ran = World(limits, took_s=10.0).run([survey], asked_every(8.0, HIGH, until_s=300.0, from_s=100.0), until_s=330.0)
    first, *later = ran.waits_of(HIGH)
    assert first <= 13.0
    assert max(later[2:]) == 0.0, "a place is free for them as long as they ask"


def test_what_is_reserved_is_used_by_lower_calls_when_no_higher_one_asks():
    limits = EndpointLimits(first_concurrency=16, most_concurrency=16, reserve_s=10.0)
    calls = Endpoint(limits, lambda: 1.0)
    go = calls.ask(0.0, 100, HIGH)
    assert isinstance(go, Go)

    def lower_calls(now_s: float) -> int:
        found = 0
        while isinstance(answer := calls.ask(now_s, 100, LOW), Go):
            found += 1
        assert isinstance(answer, Wait)
        return found

    assert lower_calls(1.0) == 14, "two of sixteen places are for higher calls, and one of them is used"
    assert isinstance(calls.ask(1.0, 100, HIGH), Go)
    assert isinstance(calls.ask(1.0, 100, CRITICAL), Wait), "they wait for what is in flight, as all do"
    calls.ended(2.0, go, Ok(100))
    assert lower_calls(11.9) == 0
    assert lower_calls(12.0) == 1, "ten seconds after the last of them ended nothing is reserved"


@pytest.mark.parametrize("per_minute", [None, 1, 20, 300])
def test_lower_calls_beside_a_reserve_always_go_on_at_the_whole_rate(per_minute: int | None):
    limits = EndpointLimits(requests_per_minute=per_minute, most_concurrency=20)
    minutes = 4 if per_minute != 1 else 40
    asking = asked_every(20.0, HIGH, until_s=minutes * 60.0) if per_minute != 1 else [(5.0, HIGH)]
    survey = Survey(LOW, calls=100_000, window=100)
    ran = World(limits).run([survey], asking, until_s=minutes * 60.0)
    if per_minute is None:
        assert len(ran.done) >= 0.8 * 20 * minutes * 60 * 7 / 8
    else:
        assert len(ran.done) >= 0.9 * per_minute * minutes - 3


@pytest.mark.parametrize("per_minute", [None, 300])
@pytest.mark.parametrize("priority", [LOW, NORMAL, HIGH])
def test_a_survey_alone_takes_as_long_at_any_priority(priority: Priority, per_minute: int | None):
    limits = EndpointLimits(requests_per_minute=per_minute)
    alone = World(limits).run([Survey(priority, calls=600, window=100)], [])
    plain = World(limits).run([Survey(NORMAL, calls=600, window=100)], [])
    assert alone.now_s <= plain.now_s
    if priority < HIGH:  # of HIGH more calls go out at first
        assert [call.went_s for call in alone.done] == [call.went_s for call in plain.done]


def test_ten_people_who_ask_a_new_model_at_once_wait_for_nothing_but_their_replies():
    ran = World(EndpointLimits(), took_s=2.0).run([Survey(LOW, calls=200, window=50)], [(0.0, HIGH)] * 10, until_s=60.0)
    assert max(ran.waits_of(HIGH)) <= 2.7, "a survey that came first has eight calls in flight"
    alone = World(EndpointLimits(), took_s=2.0).run([], [(0.0, HIGH)] * 10)
    assert alone.waits_of(HIGH) == [0.0] * 10


@pytest.mark.parametrize("flood", [HIGH, NORMAL])
def test_beside_a_flood_of_higher_calls_no_lower_level_waits_longer_than_its_aging(flood: Priority):
    limits = EndpointLimits(requests_per_minute=120, aging_s=20.0)
    floods = [Survey(flood, calls=100_000, window=300)]
    lower = [Survey(level, calls=100_000, window=20) for level in (LOW, NORMAL) if level < flood]
    ran = World(limits).run([*floods, *lower], [], until_s=600.0)
    for survey in lower:
        went_s = sorted(call.went_s for call in ran.done if call.priority is survey.priority)
        gaps = [after - before for before, after in zip([0.0, *went_s], [*went_s, 600.0], strict=True)]
        assert max(gaps) <= (HIGH - survey.priority) * 20.0 + 3.0


def test_a_lower_call_whose_turn_has_come_by_its_age_does_not_hold_up_the_higher_ones_for_their_own_reserve():
    limits = EndpointLimits(requests_per_minute=3_000, first_concurrency=500, aging_s=5.0)
    surveys = [Survey(HIGH, calls=100_000, window=300), Survey(LOW, calls=1_000, window=20)]
    ran = World(limits).run(surveys, [], until_s=40.0)
    assert len(ran.waits_of(LOW)) >= 3
    went_s = sorted(call.went_s for call in ran.done if 4.0 < call.went_s < 38.0)  # all of these are answered
    assert max(after - before for before, after in pairwise(went_s)) <= 0.05


PRIORITIES = st.sampled_from(list(Priority))
SURVEYS = st.lists(
    st.builds(Survey, PRIORITIES, st.integers(1, 120), st.integers(1, 60), st.floats(0, 100)), max_size=3
)
AGENTS = st.lists(st.tuples(st.floats(0, 200), PRIORITIES), max_size=60)


@settings(max_examples=150)
@given(
    surveys=SURVEYS,
    agents=AGENTS,
    per_minute=st.none() | st.integers(1, 3_000),
    most=st.integers(1, 64),
    took_s=st.floats(0.01, 20),
    aging_s=st.floats(0.5, 60),
    reserve_s=st.floats(0, 30),
    seed=st.integers(0, 1_000),
    fails=st.sampled_from([0.0, 0.02, 0.3]),
)
def test_whoever_asks_all_are_answered_in_order_and_within_the_limits(
    surveys: list[Survey],
    agents: list[tuple[float, Priority]],
    per_minute: int | None,
    most: int,
    took_s: float,
    aging_s: float,
    reserve_s: float,
    seed: int,
    fails: float,
):
    wanted = len(agents) + sum(survey.calls for survey in surveys)
    limits = EndpointLimits(requests_per_minute=per_minute, most_concurrency=most, aging_s=aging_s, reserve_s=reserve_s)
    ran = World(limits, took_s=took_s, seed=seed, fails=fails).run(surveys, agents)
    assert len(ran.done) == wanted
    if per_minute is not None and not fails:
        assert most_in_a_minute(sorted(call.went_s for call in ran.done)) <= per_minute
