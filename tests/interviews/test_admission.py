from hypothesis import given
from hypothesis import strategies as st

from headrace.interviews.admission import Admission
from headrace.interviews.cursors import Cursors
from headrace.interviews.window import Window
from headrace.limits import MemoryLimits
from headrace.memory.governor import Pressure
from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Coordinates, Plan

WIDE_OPEN = 20  # readings: enough to open any window here


def admitting(interviews: int, concurrency: int, models: int = 1) -> tuple[Admission, Window]:
    plan = Plan.of(Coordinates(1, interviews, 1, models))
    window = Window(MemoryLimits(budget_bytes=1_000_000_000), concurrency)
    window.answered(1)  # so small that they narrow nothing
    return Admission(Cursors(plan, Bitmap(len(plan)), len(plan)), window), window


def open_wide(window: Window) -> None:
    for _ in range(WIDE_OPEN):
        window.observe(1000, Pressure.NORMAL, 0.0)


def admit_all(admission: Admission) -> list[int]:
    taken: list[int] = []
    while chunk := admission.next_chunk():
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
    (admission, window), taken = admitting(interviews, concurrency, models), list[int]()
    for what, number in events:
        before = admission.in_flight
        match what:
            case "admit":
                chunk = admission.next_chunk()
                taken += chunk
                assert not (chunk and admission.is_paused)
                assert admission.in_flight <= max(before, window.concurrency)
                assert admission.in_flight == before or admission.in_flight <= window.concurrency
            case "pause":
                admission.pause()
            case "resume":
                admission.resume()
            case "read":
                window.observe(1000, Pressure.NORMAL, 0.0)
            case "tune":
                window.tune(number)
                assert window.width <= number
            case _:
                admission.release(min(number, before))
    admission.resume()
    while not admission.finished:
        taken += admission.next_chunk()
        admission.release(admission.in_flight)
    assert sorted(taken) == list(range(interviews * models))


@given(st.integers(2, 200), st.integers(1, 199))
def test_a_lower_concurrency_holds_once_what_was_in_flight_has_ended(first: int, second: int):
    admission, window = admitting(10_000, first)
    open_wide(window)
    assert len(admit_all(admission)) == first
    window.tune(min(second, first - 1))
    while admission.in_flight > window.concurrency:
        assert admission.next_chunk() == []
        admission.release(1)
    assert admission.next_chunk() == []
    admission.release(1)
    assert len(admit_all(admission)) == 1


def test_a_higher_concurrency_opens_step_by_step():
    admission, window = admitting(10_000, 10)
    open_wide(window)
    admit_all(admission)
    window.tune(100)
    assert admission.next_chunk() == []
    open_wide(window)
    assert len(admit_all(admission)) == 90


def test_a_paused_window_admits_nothing_and_is_not_finished():
    admission, window = admitting(100, 10)
    open_wide(window)
    first = admit_all(admission)
    admission.pause()
    admission.release(len(first))
    open_wide(window)
    assert admission.next_chunk() == []
    assert not admission.finished
    admission.resume()
    assert admission.next_chunk() == list(range(10, 20))


def test_a_paused_window_with_nothing_left_to_admit_is_finished():
    admission, window = admitting(10, 10)
    open_wide(window)
    admission.next_chunk()
    admission.pause()
    admission.release(10)
    assert admission.next_chunk() == []
    assert admission.finished


def test_a_paused_window_can_be_stopped():
    admission, _ = admitting(100, 10)
    admission.pause()
    admission.stop()
    assert admission.finished


def test_a_budget_that_ends_with_the_plan_ends_the_run():
    admission, _ = admitting(interviews=2, concurrency=10)
    admission.afford(2)
    assert admission.next_chunk() == [0, 1]
    admission.release(2)
    admission.afford(0)
    assert (admission.next_chunk(), admission.finished, admission.is_spent) == ([], True, False)


def test_a_budget_that_ends_before_the_plan_is_spent():
    admission, _ = admitting(interviews=3, concurrency=10)
    admission.afford(2)
    admission.next_chunk()
    admission.release(2)
    admission.afford(0)
    assert (admission.next_chunk(), admission.finished, admission.is_spent) == ([], True, True)


def test_the_window_fills_and_no_further():
    admission, window = admitting(1000, 100)
    open_wide(window)
    assert len(admit_all(admission)) == admission.in_flight == 100


def test_under_the_highest_pressure_one_interview_still_goes_on():
    admission, window = admitting(1000, 100)
    open_wide(window)
    window.observe(999_000_000, Pressure.EMERGENCY, 0.0)
    assert len(admission.next_chunk()) == 1
    assert admission.next_chunk() == []
    admission.release(1)
    assert len(admission.next_chunk()) == 1


def test_it_finishes_when_everything_is_released():
    admission, window = admitting(3, 100)
    open_wide(window)
    assert admission.next_chunk() == [0, 1, 2]
    assert not admission.finished
    admission.release(3)
    assert admission.next_chunk() == []
    assert admission.finished


def test_stopping_admits_nothing_more():
    admission, window = admitting(1000, 100)
    open_wide(window)
    admission.next_chunk()
    admission.stop()
    assert admission.next_chunk() == []
    admission.release(admission.in_flight)
    assert admission.finished


def test_a_run_at_the_end_of_its_plan_admits_those_that_are_to_be_asked_again():
    plan = Plan.of(Coordinates(1, 5, 1, 1))
    window = Window(MemoryLimits(budget_bytes=1_000_000_000), 10)
    open_wide(window)
    cursors = Cursors(plan, Bitmap(len(plan)), len(plan))
    admission = Admission(cursors, window)
    assert admit_all(admission) == [0, 1, 2, 3, 4]
    admission.release(4)
    assert admission.next_chunk() == []
    failed = Bitmap(len(plan))
    failed.update([1, 3])
    cursors.again(failed.inverted())
    admission.reopen()
    assert admit_all(admission) == [1, 3]
    assert not admission.finished
    admission.release(3)
    assert admission.finished
