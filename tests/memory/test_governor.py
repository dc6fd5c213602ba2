import pytest

from headrace.errors import OptionError
from headrace.limits import MemoryLimits
from headrace.memory.governor import Governor, Pressure

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


def test_what_was_held_before_any_work_is_the_zero_until_it_is_given_back():
    governor = Governor(MemoryLimits(budget_bytes=1000, base_bytes=800))
    assert governor.observe(920, 0.0) is Pressure.NORMAL  # 60 % of what is on top
    assert governor.observe(700, 0.1) is Pressure.NORMAL
    assert governor.zero_bytes == 700
    assert governor.observe(500, 0.2) is Pressure.NORMAL
    assert governor.zero_bytes == 0
    assert governor.observe(850, 0.3) is Pressure.PREEMPTING


def test_a_host_that_has_little_left_counts_where_what_was_held_before_is_gone():
    governor = Governor(MemoryLimits(budget_bytes=1000, base_bytes=800))
    governor.budget_bytes = 310  # 300 in use, 10 left
    assert governor.observe(300, 0.0) is Pressure.NORMAL
    assert governor.observe(309, 0.1) is Pressure.PREEMPTING
