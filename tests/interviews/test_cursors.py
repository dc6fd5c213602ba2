from hypothesis import given
from hypothesis import strategies as st

from headrace.interviews.cursors import Cursors
from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Coordinates, Plan


@given(
    st.builds(Coordinates, st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)),
    st.integers(0, 3),
    st.sets(st.integers(0, 300)),
    st.integers(1, 400),
    st.integers(1, 7),
)
def test_each_unfinished_ordinal_is_taken_exactly_once(
    shape: Coordinates, more_agents: int, finished: set[int], stop: int, at_once: int
):
    plan = Plan.of(shape).grown(shape._replace(agent=shape.agent + more_agents))
    done = Bitmap(len(plan))
    done.update(ordinal for ordinal in finished if ordinal < len(plan))
    cursors = Cursors(plan, done, stop)
    taken: list[int] = []
    while batch := cursors.take(at_once):
        assert len(batch) <= at_once
        taken += batch
    wanted = [ordinal for ordinal in range(min(stop, len(plan))) if ordinal not in done]
    assert sorted(taken) == wanted
    assert cursors.take(at_once) == []


def test_models_take_turns():
    plan = Plan.of(Coordinates(1, 10, 1, 2))
    cursors = Cursors(plan, Bitmap(len(plan)), len(plan))
    assert [plan.coordinates(ordinal).model for ordinal in cursors.take(6)] == [0, 1, 0, 1, 0, 1]


def test_a_model_that_is_dropped_is_not_waited_for_and_may_be_let_go_again():
    plan = Plan.of(Coordinates(1, 3, 1, 2))
    cursors = Cursors(plan, Bitmap(len(plan)), len(plan))
    cursors.drop(1)
    assert [plan.coordinates(ordinal).model for ordinal in cursors.take(9)] == [0, 0, 0]
    assert cursors.is_at_end()
    cursors.let_go(1)
    assert not cursors.is_at_end()
    cursors.hold(1)
    assert cursors.take(9) == []
    assert not cursors.is_at_end(), "it is held, and comes back"
    cursors.let_go(1)
    assert [plan.coordinates(ordinal).model for ordinal in cursors.take(9)] == [1, 1, 1]


def test_what_is_asked_again_comes_behind_the_rest_and_once_whichever_model_was_held():
    plan = Plan.of(Coordinates(1, 4, 1, 2))
    done = Bitmap(len(plan))
    cursors = Cursors(plan, done, len(plan))
    first = cursors.take(4)
    done.update(first)
    failed = Bitmap(len(plan))
    failed.update([first[0], first[3]])
    cursors.again(failed.inverted())
    cursors.hold(plan.coordinates(first[3]).model)
    taken = cursors.take(9)
    assert not cursors.is_at_end()
    cursors.let_go(plan.coordinates(first[3]).model)
    taken += cursors.take(9)
    assert sorted(taken) == sorted([*(set(range(8)) - set(first)), first[0], first[3]])
    assert cursors.is_at_end()
    cursors.again(failed.inverted())
    assert sorted(cursors.take(9)) == sorted([first[0], first[3]])
