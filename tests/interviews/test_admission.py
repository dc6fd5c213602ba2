from hypothesis import given
from hypothesis import strategies as st

from headrace.interviews.admission import Admission
from headrace.interviews.cursors import Cursors
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor
from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Cell, Plan

WIDE_OPEN = 20  # readings: enough to open any window here


def admission(interviews: int, concurrency: int, models: int = 1) -> Admission:
    plan = Plan.of(Cell(1, interviews, 1, models))
    governor = Governor(MemoryLimits(budget_bytes=1_000_000_000))
    window = Admission(Cursors(plan, Bitmap(len(plan)), len(plan)), governor, concurrency)
    window.answered(1)  # so small that they narrow nothing
    return window


def open_wide(window: Admission, since_s: float = 0.0) -> None:
    for tick in range(WIDE_OPEN):
        window.read_memory(1000, since_s + tick / 10)


def admit_all(window: Admission) -> list[int]:
    taken: list[int] = []
    while chunk := window.next_chunk():
        taken += chunk
    return taken


EVENTS = st.one_of(
    st.just(("admit", 0)),
    st.just(("pause", 0)),
    st.just(("resume", 0)),
    st.just(("read", 0)),
    st.tuples(st.just("tune"), st.integers(1, 300)),
    st.tuples(st.just("release"), st.integers(1, 100)),
)


@given(st.integers(1, 300), st.integers(1, 200), st.integers(1, 3), st.lists(EVENTS, max_size=60))
def test_whatever_is_asked_of_a_window_it_keeps_to_it_and_loses_nothing(
    interviews: int, concurrency: int, models: int, events: list[tuple[str, int]]
):
    window, taken = admission(interviews, concurrency, models), list[int]()
    for moment, (what, number) in enumerate(events):
        before = window.in_flight
        match what:
            case "admit":
                chunk = window.next_chunk()
                taken += chunk
                assert not (chunk and window.is_paused)
                assert window.in_flight <= max(before, window.concurrency)
                assert window.in_flight == before or window.in_flight <= window.concurrency
            case "pause":
                window.pause()
            case "resume":
                window.resume()
            case "read":
                window.read_memory(1000, moment / 10)
            case "tune":
                window.tune(number)
                assert window.window <= number
            case _:
                window.released(min(number, before))
    window.resume()
    while not window.finished:
        taken += window.next_chunk()
        window.released(window.in_flight)
    assert sorted(taken) == list(range(interviews * models))


@given(st.integers(2, 200), st.integers(1, 199))
def test_a_lower_concurrency_holds_once_what_was_in_flight_has_ended(first: int, second: int):
    window = admission(10_000, first)
    open_wide(window)
    assert len(admit_all(window)) == first
    window.tune(min(second, first - 1))
    while window.in_flight > window.concurrency:
        assert window.next_chunk() == []
        window.released(1)
    assert window.next_chunk() == []
    window.released(1)
    assert len(admit_all(window)) == 1


def test_a_higher_concurrency_opens_step_by_step():
    window = admission(10_000, 10)
    open_wide(window)
    admit_all(window)
    window.tune(100)
    assert window.next_chunk() == []
    open_wide(window, since_s=10.0)
    assert len(admit_all(window)) == 90


def test_a_paused_window_admits_nothing_and_is_not_finished():
    window = admission(100, 10)
    open_wide(window)
    first = admit_all(window)
    window.pause()
    window.released(len(first))
    open_wide(window, since_s=10.0)
    assert window.next_chunk() == []
    assert not window.finished
    window.resume()
    assert window.next_chunk() == list(range(10, 20))


def test_a_paused_window_with_nothing_left_to_admit_is_finished():
    window = admission(10, 10)
    open_wide(window)
    window.next_chunk()
    window.pause()
    window.released(10)
    assert window.next_chunk() == []
    assert window.finished


def test_a_paused_window_can_be_stopped():
    window = admission(100, 10)
    window.pause()
    window.stop()
    assert window.finished


def test_a_budget_that_ends_with_the_plan_ends_the_run():
    window = admission(interviews=2, concurrency=10)
    window.afford(2)
    assert window.next_chunk() == [0, 1]
    window.released(2)
    window.afford(0)
    assert (window.next_chunk(), window.finished, window.is_spent) == ([], True, False)


def test_a_budget_that_ends_before_the_plan_is_spent():
    window = admission(interviews=3, concurrency=10)
    window.afford(2)
    window.next_chunk()
    window.released(2)
    window.afford(0)
    assert (window.next_chunk(), window.finished, window.is_spent) == ([], True, True)
