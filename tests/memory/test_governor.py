import pytest

from headrace.errors import OptionError
from headrace.interviews.admission import Admission
from headrace.interviews.cursors import Cursors
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor, Pressure
from headrace.plan.bitmap import Bitmap
from headrace.plan.product import Cell, Plan

LIMITS = MemoryLimits(budget_bytes=1000)


def levels(readings: list[tuple[float, int]]) -> list[Pressure]:
    governor = Governor(LIMITS)
    return [governor.observe(used, now_s) for now_s, used in readings]


def test_a_level_is_entered_at_once():
    assert levels([(0, 100), (0.1, 700), (0.2, 850), (0.3, 950)]) == list(Pressure)


def test_a_level_is_left_only_after_two_seconds_below_its_lower_line():
    readings = [(0.0, 710), (0.1, 590), (2.0, 590), (2.05, 610), (2.1, 590), (4.0, 590), (4.2, 590)]
    assert levels(readings) == [Pressure.HIGH] * 6 + [Pressure.NORMAL]


def test_levels_are_left_one_by_one():
    readings = [(0.0, 960), (1.0, 100), (3.1, 100), (3.2, 100), (5.3, 100), (5.4, 100), (7.5, 100)]
    assert levels(readings) == [
        Pressure.EMERGENCY,
        Pressure.EMERGENCY,
        Pressure.PREEMPTING,
        Pressure.PREEMPTING,
        Pressure.HIGH,
        Pressure.HIGH,
        Pressure.NORMAL,
    ]


def test_levels_must_rise():
    with pytest.raises(OptionError, match="must rise"):
        MemoryLimits(budget_bytes=1, shrink_at=0.9)


def admission(interviews: int = 1000, concurrency: int = 100) -> Admission:
    plan = Plan.of(Cell(1, interviews, 1, 1))
    window = Admission(Cursors(plan, Bitmap(interviews), interviews), Governor(LIMITS), concurrency)
    window.answered(1)  # so small that they narrow nothing
    return window


def opened(window: Admission) -> Admission:
    """The window after enough calm readings."""
    for tick in range(10):
        window.read_memory(100, tick / 10)
    return window


def test_the_window_opens_step_by_step_and_no_further_than_asked():
    window = admission()
    widths = [window.window]
    for tick in range(8):
        window.read_memory(100, tick / 10)
        widths.append(window.window)
    assert widths == [2, 2, 4, 8, 16, 32, 64, 100, 100]


def test_a_window_smaller_than_the_first_step_is_kept():
    assert opened(admission(concurrency=1)).window == 1


def test_the_window_fills_and_no_further():
    window = opened(admission())
    taken = 0
    while chunk := window.next_chunk():
        taken += len(chunk)
    assert taken == window.in_flight == 100


def test_pressure_narrows_the_window_step_by_step_and_calm_widens_it():
    window = opened(admission())
    window.read_memory(710, 1.0)
    assert window.window == 50
    window.read_memory(720, 1.1)
    assert window.window == 25
    window.read_memory(100, 2.0)
    window.read_memory(100, 4.1)
    assert 12 <= window.window <= 25
    for tick in range(10):
        window.read_memory(100, 5.0 + tick)
    assert window.window == 100


def test_large_answers_narrow_the_window_and_small_ones_widen_it_again():
    governor = Governor(MemoryLimits(budget_bytes=100_000_000))
    plan = Plan.of(Cell(1, 1000, 1, 1))
    window = Admission(Cursors(plan, Bitmap(1000), 1000), governor, 100)
    for tick in range(10):
        window.read_memory(45_000_000, tick / 10)
    window.answered(1_000_000)
    assert window.window == 10  # 40 MB below the level that stops admission, four copies of each
    for _ in range(100):
        window.answered(500)
    assert window.window == 10  # these may follow large ones that their interviews still hold
    for _ in range(100):
        window.sealed(500)
    assert window.window == 100


def test_until_an_answer_is_seen_the_window_opens_no_further_than_for_large_ones():
    governor = Governor(MemoryLimits(budget_bytes=200_000_000))
    plan = Plan.of(Cell(1, 1000, 1, 1))
    window = Admission(Cursors(plan, Bitmap(1000), 1000), governor, 100)
    for tick in range(10):
        window.read_memory(50_000_000, tick / 10)
    assert window.window == 15
    window.answered(300)
    assert window.window == 100


def test_pressure_shrinks_the_buffers():
    window = admission()
    governor = Governor(MemoryLimits(budget_bytes=100_000_000))
    calm = Admission(Cursors(Plan.of(Cell(1, 1, 1, 1)), Bitmap(1), 1), governor, 1)
    before = calm.buffer_bytes
    calm.read_memory(90_000_000, 0.0)
    assert calm.buffer_bytes < before
    assert window.buffer_bytes >= 250_000


def test_under_the_highest_pressure_one_interview_still_goes_on():
    window = opened(admission())
    window.read_memory(999, 2.0)
    assert len(window.next_chunk()) == 1
    assert window.next_chunk() == []
    window.released(1)
    assert len(window.next_chunk()) == 1


def test_it_finishes_when_everything_is_released():
    window = opened(admission(interviews=3))
    assert window.next_chunk() == [0, 1, 2]
    assert not window.finished
    window.released(3)
    assert window.next_chunk() == []
    assert window.finished


def test_stopping_admits_nothing_more():
    window = opened(admission())
    window.next_chunk()
    window.stop()
    assert window.next_chunk() == []
    window.released(window.in_flight)
    assert window.finished
