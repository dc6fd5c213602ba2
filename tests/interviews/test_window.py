from headrace.interviews.window import Window
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor, Pressure

NORMAL = Pressure.NORMAL
LIMITS = MemoryLimits(budget_bytes=1000)


def window(concurrency: int = 100) -> Window:
    made = Window(LIMITS, concurrency)
    made.answered(1)  # so small that it narrows nothing
    return made


def opened(made: Window, used_bytes: int = 100) -> Window:
    """The window after enough calm readings."""
    for _ in range(10):
        made.observe(used_bytes, NORMAL, 0.0)
    return made


def test_the_window_opens_step_by_step_and_no_further_than_asked():
    made = window()
    widths = [made.width]
    for _ in range(8):
        made.observe(100, NORMAL, 0.0)
        widths.append(made.width)
    assert widths == [2, 2, 4, 8, 16, 32, 64, 100, 100]


def test_a_window_smaller_than_the_first_step_is_kept():
    assert opened(window(concurrency=1)).width == 1


def test_pressure_narrows_the_window_step_by_step_and_calm_widens_it():
    made, governor = opened(window()), Governor(LIMITS)

    def read(used_bytes: int, now_s: float) -> int:
        made.observe(used_bytes, governor.observe(used_bytes, now_s), now_s)
        return made.width

    assert read(710, 1.0) == 50
    assert read(720, 1.1) == 25
    read(100, 2.0)
    assert 12 <= read(100, 4.1) <= 25
    assert [read(100, 5.0 + tick) for tick in range(10)][-1] == 100


def test_large_answers_narrow_the_window_and_small_ones_widen_it_again():
    made = opened(Window(MemoryLimits(budget_bytes=100_000_000), 100), 37_000_000)
    made.answered(1_000_000)
    assert made.width == 10  # 40 MB below the level that stops admission beside what a run loads, four copies of each
    for _ in range(100):
        made.answered(500)
    assert made.width == 10  # these may follow large ones that their interviews still hold
    for _ in range(100):
        made.ended(500)
    assert made.width == 100


def test_the_rest_of_the_process_is_the_lowest_of_the_latest_readings():
    made = opened(Window(MemoryLimits(budget_bytes=100_000_000), 100), 30_000_000)
    made.answered(1_000_000)
    assert made.width == 11
    for tenth in range(100):  # the process itself has grown: answers come and go on top of that
        made.observe(53_000_000 + 3_000_000 * (tenth % 3), NORMAL, tenth / 10)
    assert made.width == 8
    for tenth in range(100, 150):
        made.observe(30_000_000, NORMAL, tenth / 10)
    assert made.width == 11


def test_what_an_engine_grants_under_pressure_is_not_halved_again():
    made = opened(window(concurrency=200))
    made.tune(4)
    made.observe(100, Pressure.HIGH, 1.0)
    assert made.width == 4
    made.tune(100)
    made.observe(100, Pressure.HIGH, 1.1)
    assert made.width == 25


def test_until_an_answer_is_seen_the_window_opens_no_further_than_for_large_ones():
    made = opened(Window(MemoryLimits(budget_bytes=200_000_000), 100), 42_000_000)
    assert made.width == 15
    made.answered(300)
    assert made.width == 100


def test_a_window_that_is_not_fully_open_wants_a_reading_after_each_windowful():
    made = window(concurrency=4)
    made.observe(100, NORMAL, 1.0)
    assert not made.wants_reading(1, 2.0)
    assert made.wants_reading(1, 2.0)
    assert not made.wants_reading(100, 1.001)  # milliseconds after the last one
    opened(made)
    assert not made.wants_reading(100, 2.0)


def test_pressure_shrinks_the_buffers():
    made = Window(MemoryLimits(budget_bytes=100_000_000), 1)
    before = made.buffer_bytes
    made.observe(90_000_000, Pressure.PREEMPTING, 0.0)
    assert made.buffer_bytes < before
    assert window().buffer_bytes >= 250_000


def test_where_large_replies_are_held_back_an_interview_counts_for_what_is_on_the_way_to_it():
    made = opened(Window(MemoryLimits(budget_bytes=100_000_000), 100), 67_000_000)
    made.ended(2_000_000)
    assert made.width == 1  # 10 MB beside what a run loads
    made.is_held_back = True
    assert made.width == 10  # half of it is for the one that becomes a row
    assert made.interview_bytes == 500_000
    made.answered(1_000_000)  # an interview that goes on holds its answer
    assert made.width == 1
    assert made.interview_bytes == 4_000_000
    for _ in range(100):
        made.ended(500)
    assert made.width == 100


def held_back(used_bytes: int) -> Window:
    """A window of a survey whose replies have a megabyte each, in 100 MB, after enough calm readings."""
    made = Window(MemoryLimits(budget_bytes=100_000_000), 200)
    made.is_held_back = True
    made.ended(1_000_000)
    return opened(made, used_bytes)


def test_where_replies_are_held_back_there_is_room_for_the_one_that_becomes_a_row():
    made = held_back(62_000_000)
    assert made.width == 18  # of 15 MB beside what a run loads, 6 are for the one; others take half a megabyte each


def test_held_back_replies_do_not_come_one_at_a_time_for_ever_once_the_line_was_crossed():
    """The level is left at 75 %: a process that stands at 76 % with nothing in flight would never leave it."""
    made = held_back(70_000_000)
    made.observe(90_000_000, Pressure.PREEMPTING, 1.0)
    assert made.width == 1
    made.observe(76_000_000, Pressure.PREEMPTING, 1.1)
    assert made.width > 1
    made.observe(96_000_000, Pressure.EMERGENCY, 1.2)
    made.observe(76_000_000, Pressure.EMERGENCY, 1.3)
    assert made.width == 1


def test_where_no_reply_is_held_back_one_interview_at_a_time_goes_on_until_the_level_is_left():
    made = opened(window())
    made.observe(900, Pressure.PREEMPTING, 1.0)
    made.observe(760, Pressure.PREEMPTING, 1.1)
    assert made.width == 1


def test_a_window_opens_beside_what_the_process_held_before_any_work():
    made = Window(MemoryLimits(budget_bytes=8_500_000_000, base_bytes=8_000_000_000), 100)
    made.answered(1)
    assert opened(made, 8_000_000_000).width == 100
