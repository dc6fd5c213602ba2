"""A run that needs more than others leave lets them pass for a while, and then has its turn."""

from headrace.agents.scheduler.events import EffectStarting
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, preempts, starts


def dead_runaway(driver: Driver) -> tuple[int, int]:
    """One that ran out of memory, and another that runs and leaves it too little for its second try."""
    runaway, other = driver.submit(memory=200), driver.submit(memory=300)
    driver.end(runaway, ExitCause.OUT_OF_MEMORY)
    assert starts(driver.sent) == [runaway, other]
    return runaway, other


def test_a_second_try_starts_beside_others_where_there_is_memory_for_it():
    driver = Driver(slots=2)
    runaway, _ = driver.submit(memory=200), driver.submit(memory=100)
    assert starts(driver.end(runaway, ExitCause.OUT_OF_MEMORY)) == [runaway]
    shown = {run.id: run for run in driver.scheduler.snapshot().running}[runaway]
    assert (shown.reserved_bytes, shown.is_alone) == (800, False)


def test_how_much_a_second_try_gets_is_an_option():
    driver = Driver(slots=2, oom_retry_bytes=600)
    runaway, _ = driver.submit(memory=200), driver.submit(memory=300)
    assert starts(driver.end(runaway, ExitCause.OUT_OF_MEMORY)) == [runaway]


def test_a_dead_runaway_does_not_keep_others_out():
    driver = Driver(slots=2)
    runaway, other = dead_runaway(driver)
    user = driver.submit(memory=100)
    assert starts(driver.sent)[2:] == [user]
    driver.end(user)
    assert starts(driver.end(other)) == [runaway]


def test_after_a_while_nobody_passes_any_more_and_it_has_its_turn():
    driver = Driver(slots=2, passed_over_s=30.0)
    runaway, other = dead_runaway(driver)
    driver.wait(31.0, used=300)
    user = driver.submit(memory=100)
    assert user not in starts(driver.sent)
    assert preempts(driver.sent) == []  # the other one has journaled nothing yet
    driver.step(other)
    driver.read(300)
    assert preempts(driver.sent) == [other]
    assert starts(driver.end(other, ExitCause.PREEMPTED)) == []  # its memory has yet to show in a reading
    assert starts(driver.read(0)) == [runaway]


def test_its_turn_cuts_no_side_effect_and_stops_nothing_higher():
    driver = Driver(slots=3, passed_over_s=30.0)
    runaway, other = driver.submit(Priority.NORMAL, memory=200), driver.submit(Priority.NORMAL, memory=300)
    driver.step(other)
    driver.tell(EffectStarting(now_s=0.0, id=other, epoch=1))
    driver.step(driver.submit(Priority.HIGH, memory=100))
    driver.end(runaway, ExitCause.OUT_OF_MEMORY)
    driver.wait(40.0, used=300)
    assert preempts(driver.sent) == []


def test_one_that_was_preempted_too_often_lets_others_pass_too():
    driver = Driver(slots=2)
    other = driver.submit()
    often = driver.submit(preemptions=3)
    user = driver.submit()
    assert starts(driver.sent) == [other, user]
    driver.end(user)
    assert starts(driver.end(other)) == [often]
    assert driver.scheduler.snapshot().running[0].is_alone
