"""A higher priority that lacks a slot or memory makes room for itself."""

from headrace.agents.scheduler.events import (
    Closing,
    EffectEnded,
    EffectStarting,
    PreemptRun,
    ResumeRun,
    SchedulerCommand,
    WaitBegan,
    WaitOver,
)
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, preempts, starts


def patience(commands: list[SchedulerCommand]) -> list[tuple[int, bool]]:
    return [(command.id, command.is_patient) for command in commands if isinstance(command, PreemptRun)]


def test_high_work_preempts_low_work_at_its_next_step():
    driver = Driver(slots=2)
    low, newer = driver.submit(Priority.LOW), driver.submit(Priority.LOW)
    high = driver.submit(Priority.HIGH)
    assert patience(driver.sent) == [(newer, True)]
    assert starts(driver.end(newer, ExitCause.PREEMPTED)) == [high]
    assert low not in preempts(driver.sent)
    assert starts(driver.end(high)) == [newer]


def test_critical_work_preempts_work_that_has_journaled_nothing_and_cuts_its_step_after_the_grace_period():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW)
    critical = driver.submit(Priority.CRITICAL)
    assert patience(driver.sent) == [(low, False)]
    assert starts(driver.end(low, ExitCause.PREEMPTED)) == [critical]


def test_critical_work_does_not_wait_for_a_step_that_others_wait_for():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW)
    driver.submit(Priority.HIGH)
    driver.submit(Priority.CRITICAL)
    assert patience(driver.sent) == [(low, True), (low, False)]
    driver.read(100)
    assert len(preempts(driver.sent)) == 2


def test_closing_does_not_wait_for_a_step_that_others_wait_for():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW)
    driver.submit(Priority.HIGH)
    driver.tell(Closing(now_s=0.0))
    assert patience(driver.sent) == [(low, True), (low, False)]


def test_nobody_makes_room_for_equals():
    driver = Driver(slots=1)
    driver.submit(Priority.NORMAL)
    driver.submit(Priority.NORMAL)
    driver.submit(Priority.LOW)
    driver.wait(30.0, used=100)
    assert preempts(driver.sent) == []


def test_never_inside_a_side_effect():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW)
    driver.tell(EffectStarting(now_s=0.0, id=low, epoch=1))
    driver.submit(Priority.CRITICAL)
    driver.read(100)
    assert preempts(driver.sent) == []
    driver.tell(EffectEnded(now_s=0.0, id=low, epoch=1))
    driver.read(100)
    assert preempts(driver.sent) == [low]


def test_the_minimum_run_time_and_the_cap_of_preemptions_protect_nobody_from_a_higher_priority():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW, preemptions=3)
    assert driver.scheduler.snapshot().running[0].is_alone
    high = driver.submit(Priority.HIGH)
    assert preempts(driver.sent) == [low]
    assert starts(driver.end(low, ExitCause.PREEMPTED)) == [high]
    driver.end(high)
    driver.submit(Priority.HIGH)
    assert preempts(driver.sent) == [low, low]


def test_making_room_does_not_count_towards_the_cap_of_preemptions():
    driver = Driver(slots=2)
    low, _ = driver.submit(Priority.LOW), driver.submit(Priority.HIGH)
    for _ in range(4):
        high = driver.submit(Priority.HIGH)
        assert starts(driver.end(low, ExitCause.PREEMPTED)) == [high]
        assert starts(driver.end(high)) == [low]
    assert not driver.scheduler.snapshot().running[0].is_alone


def test_room_is_made_for_memory_too_by_as_many_at_once_as_the_next_run_needs():
    driver = Driver(slots=4)
    low = [driver.submit(Priority.LOW, memory=300) for _ in range(3)]
    high = driver.submit(Priority.HIGH, memory=600)
    assert preempts(driver.sent) == [low[2], low[1]]
    assert starts(driver.end(low[2], ExitCause.PREEMPTED)) == []
    assert starts(driver.end(low[1], ExitCause.PREEMPTED)) == [high]
    driver.read(300)
    assert preempts(driver.sent) == [low[2], low[1]]


def test_the_next_in_line_has_room_made_with_the_first_reading_after_the_last_exit():
    driver = Driver(slots=4)
    low = [driver.submit(Priority.LOW, memory=300) for _ in range(3)]
    critical = [driver.submit(Priority.CRITICAL, memory=300) for _ in range(3)]
    for number in range(3):
        assert preempts(driver.sent) == low[: -2 - number : -1]
        driver.read(300)
        assert starts(driver.end(low[2 - number], ExitCause.PREEMPTED)) == [critical[number]]
        driver.now_s += 0.05
        driver.read(300)


def test_memory_that_a_stopped_slot_has_not_given_back_shows_in_a_reading_before_another_stops():
    driver = Driver(slots=4)
    low = [driver.submit(Priority.LOW, memory=300) for _ in range(3)]
    driver.read(690)
    high = driver.submit(Priority.HIGH, memory=320)
    assert preempts(driver.sent) == [low[2]]
    assert starts(driver.end(low[2], ExitCause.PREEMPTED)) == []  # by the last reading, that much is in use
    assert preempts(driver.sent) == [low[2]]
    assert starts(driver.read(600)) == [high]
    assert preempts(driver.sent) == [low[2]]


def test_nobody_stops_where_that_would_not_help():
    driver = Driver(slots=3)
    driver.submit(Priority.HIGH, memory=500)
    driver.submit(Priority.LOW, memory=100)
    driver.submit(Priority.HIGH, memory=600)
    driver.wait(10.0, used=600)
    assert preempts(driver.sent) == []


def test_the_first_in_line_makes_room_with_the_priority_of_those_behind_it():
    driver = Driver(slots=1, aging_s=60.0)
    running, aged = driver.submit(Priority.LOW), driver.submit(Priority.LOW)
    driver.wait(121.0, used=100)
    high = driver.submit(Priority.HIGH)
    assert preempts(driver.sent) == [running]
    assert starts(driver.end(running, ExitCause.PREEMPTED)) == [aged]  # it has waited longest, and it is its turn
    driver.wait(9.0, used=100)
    assert preempts(driver.sent) == [running]
    driver.wait(1.0, used=100)
    assert preempts(driver.sent) == [running, aged]
    assert starts(driver.end(aged, ExitCause.PREEMPTED)) == [high]  # what has run does not count as waiting
    assert starts(driver.end(high)) == [running]


def test_a_turn_that_age_has_given_is_cut_short_by_critical_work_only():
    driver = Driver(slots=1, aging_s=60.0)
    first, low = driver.submit(Priority.HIGH), driver.submit(Priority.LOW)
    driver.wait(121.0, used=100)
    driver.submit(Priority.HIGH)
    assert starts(driver.end(first)) == [low]
    driver.wait(5.0, used=100)
    assert preempts(driver.sent) == []
    driver.submit(Priority.CRITICAL)
    assert preempts(driver.sent) == [low]


def test_pressure_stops_the_lowest_although_it_came_back_just_now_or_has_journaled_nothing():
    driver = Driver(slots=2)
    driver.step(driver.submit(Priority.HIGH))
    low = driver.submit(Priority.LOW, preemptions=1)
    driver.read(860)
    assert preempts(driver.sent) == [low]


def test_a_wait_that_is_over_makes_room_and_a_slot_that_waits_gives_none():
    driver = Driver(slots=1)
    high = driver.submit(Priority.HIGH)
    driver.tell(WaitBegan(now_s=0.0, id=high, epoch=1))
    low = driver.submit(Priority.LOW)
    assert starts(driver.sent) == [high, low]
    driver.tell(WaitOver(now_s=0.0, id=high, epoch=1))
    assert patience(driver.sent) == [(low, True)]
    assert ResumeRun(id=high, epoch=1) in driver.end(low, ExitCause.PREEMPTED)


def test_a_slot_that_waits_makes_room_for_memory_only():
    driver = Driver(slots=1)
    waiting = driver.submit(Priority.LOW, memory=500)
    driver.tell(WaitBegan(now_s=0.0, id=waiting, epoch=1))
    computing = driver.submit(Priority.NORMAL, memory=100)
    driver.submit(Priority.HIGH, memory=200)
    assert preempts(driver.sent) == [computing]
