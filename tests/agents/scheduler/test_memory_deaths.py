"""What follows when a run runs out of memory: whose fault it was, and what its next try has."""

import pytest

from headrace.agents.scheduler.events import (
    AttemptEnded,
    Cancelled,
    MemoryMeasured,
    MemoryWanted,
    ReserveLess,
    SchedulerCommand,
    StartRun,
    StopReason,
)
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import Driver, kills, preempts, settled, starts


def died(driver, run, limit):
    ended = AttemptEnded(
        now_s=driver.now_s, id=run, epoch=driver.epochs[run], cause=ExitCause.OUT_OF_MEMORY, limit_bytes=limit
    )
    return driver.tell(ended)


def lendable(driver, lendable_bytes, used=0, **by_run):
    told = tuple((int(name[1:]), memory) for name, memory in by_run.items())
    return driver.tell(
        MemoryMeasured(now_s=driver.now_s, host="here", used_bytes=used, by_run=told, lendable_bytes=lendable_bytes)
    )


def reserved(commands):
    return [command.memory_bytes for command in commands if isinstance(command, StartRun)]


def test_a_death_below_its_promise_sets_nobody_aside():
    driver = Driver()
    lendable(driver, 900)
    run = driver.submit(memory=130)
    for _ in range(5):
        assert starts(died(driver, run, limit=86)) == [run]
    assert starts(died(driver, run, limit=130)) == [run]  # this one is its own
    assert settled(died(driver, run, limit=900)) == [(run, "OUT_OF_MEMORY")]


def test_without_a_promise_a_slots_memory_is_owed_and_reservations_grow_towards_it():
    driver = Driver(slot_memory_bytes=400)
    lendable(driver, 900)
    run = driver.submit(memory=None)
    seen = [reserved(died(driver, run, limit)) for limit in (100, 200)]
    assert seen == [[200], [400]]
    assert reserved(died(driver, run, limit=400)) == [800]


def test_a_second_try_has_twice_as_much_or_what_was_asked_for_and_never_more_than_there_is():
    for options, declared, second in (
        ({}, 100, 800),
        ({}, 430, 860),
        ({"oom_retry_bytes": 500}, 100, 500),
        ({"slot_memory_bytes": 600}, None, 900),
    ):
        driver = Driver(**options)
        lendable(driver, 900)
        run = driver.submit(memory=declared)
        assert reserved(driver.end(run, ExitCause.OUT_OF_MEMORY)) == [second]


def test_a_first_try_never_has_more_than_a_slot_whatever_second_tries_have_needed():
    driver = Driver(most_run_bytes=400)
    for _ in range(3):
        run = driver.submit(kind="greedy", memory=None)
        assert reserved(driver.sent)[-1] <= 400
        driver.end(run, ExitCause.OUT_OF_MEMORY, peak=400)
        driver.end(run, ExitCause.DONE, peak=700)


def test_a_second_try_never_has_less_than_the_first_also_while_the_memory_of_its_worker_is_not_back_yet():
    driver = Driver()
    lendable(driver, 900)
    run = driver.submit(memory=None)
    lendable(driver, 200, used=800)
    assert reserved(died(driver, run, limit=400)) == []
    assert reserved(lendable(driver, 900, used=100)) == [800]


def test_what_more_memory_never_helps_is_not_tried_again():
    driver = Driver()
    run = driver.submit(memory=100, retries_oom=False)
    assert settled(driver.end(run, ExitCause.OUT_OF_MEMORY)) == [(run, "OUT_OF_MEMORY")]


def test_a_promise_that_the_growing_host_process_cannot_keep_waits_and_is_kept_afterwards():
    driver = Driver()
    lendable(driver, 900)
    run = driver.submit(memory=130)
    lendable(driver, 90, used=860)
    assert reserved(died(driver, run, limit=76)) == []
    driver.now_s += 5.0
    assert reserved(lendable(driver, 100, used=860)) == []
    assert reserved(lendable(driver, 700, used=200)) == [130]


def test_before_a_higher_run_meets_its_limit_the_lowest_below_it_is_preempted_then_killed():
    driver = Driver(slots=3)
    lendable(driver, 900)
    low = driver.submit(Priority.LOW, memory=200)
    normal = driver.submit(Priority.NORMAL, memory=200)
    high = driver.submit(Priority.HIGH, memory=200)
    lendable(driver, 900, used=800, **{f"r{low}": 250, f"r{normal}": 250, f"r{high}": 300})
    wanted = MemoryWanted(now_s=0.0, id=high, epoch=driver.epochs[high])
    (stop,) = driver.tell(wanted)
    assert (stop.id, stop.why, stop.is_patient) == (low, StopReason.OTHERS_NEED_IT, False)
    assert driver.tell(wanted) == []  # one at a time
    urgent = MemoryWanted(now_s=0.1, id=high, epoch=driver.epochs[high], is_urgent=True)
    assert kills(driver.tell(urgent)) == [low]
    assert starts(driver.end(low, ExitCause.LOST)) == []  # the higher one has reserved twice what it uses
    assert preempts(driver.tell(wanted)) == [normal]


def test_what_was_reserved_more_for_a_run_that_grows_is_not_owed_to_it():
    driver = Driver(slots=2)
    lendable(driver, 900)
    low, high = driver.submit(Priority.LOW, memory=200), driver.submit(memory=200, retries_oom=False)
    lendable(driver, 900, used=400, **{f"r{low}": 100, f"r{high}": 190})
    assert preempts(driver.tell(MemoryWanted(now_s=0.0, id=high, epoch=1))) == [low]
    assert settled(died(driver, high, limit=250)) == [(high, "OUT_OF_MEMORY")]  # it declared 200


@pytest.mark.parametrize("used", [300, 450])
def test_an_equal_stops_only_for_who_has_not_used_what_it_is_owed(used):
    driver = Driver(slot_memory_bytes=400)
    lendable(driver, 900)
    first, second = (driver.submit(kind=kind, memory=None) for kind in ("one", "other"))
    driver.step(second)
    lendable(driver, 900, used=800, **{f"r{first}": used, f"r{second}": 380})
    stopped = preempts(driver.tell(MemoryWanted(now_s=0.0, id=first, epoch=driver.epochs[first])))
    assert stopped == ([second] if used < 400 else [])


def test_a_lower_run_that_has_just_come_back_is_stopped_before_a_higher_one():
    driver = Driver(slots=2)
    high, low = driver.submit(Priority.HIGH, memory=300), driver.submit(Priority.LOW, memory=300)
    driver.step(high)
    driver.step(low)
    assert preempts(driver.read(880)) == [low]
    driver.end(low, ExitCause.PREEMPTED)
    driver.wait(10.0, used=400)
    assert driver.epochs[low] == 2  # it is back, and has not run for its minimum time
    driver.step(low)
    assert preempts(driver.read(880)) == [low]


def test_a_second_try_on_a_host_that_has_grown_over_its_promise_sets_nobody_aside():
    driver = Driver()
    lendable(driver, 900)
    run = driver.submit(memory=200)
    assert starts(died(driver, run, limit=200)) == [run]
    lendable(driver, 100, used=990, **{f"r{run}": 300})
    assert settled(driver.end(run, ExitCause.LOST)) == []  # it was killed for what its host holds


def test_a_host_that_has_nothing_left_proves_nothing():
    driver = Driver()
    lendable(driver, 900)
    run = driver.submit(memory=None, retries_oom=False)
    lendable(driver, -20, used=990, **{f"r{run}": 0})
    assert settled(driver.end(run, ExitCause.LOST)) == []


def test_no_second_run_is_killed_for_memory_while_one_is_being_killed():
    driver = Driver(slots=3)
    low, other, high = (driver.submit(level, memory=200) for level in (Priority.LOW, Priority.LOW, Priority.HIGH))
    driver.tell(MemoryWanted(now_s=0.0, id=high, epoch=1))
    assert preempts(driver.sent) == [other]
    assert kills(driver.tell(Cancelled(now_s=0.0, id=low))) == [low]
    assert kills(driver.tell(MemoryWanted(now_s=0.0, id=high, epoch=1, is_urgent=True))) == []


def test_what_was_reserved_more_for_a_run_that_grows_is_given_back_in_silence():
    driver = Driver(slots=2, slot_memory_bytes=400)
    lendable(driver, 900)
    for _ in range(8):
        driver.end(driver.submit(kind="small", memory=None), peak=100)
    low, run = driver.submit(Priority.LOW, memory=200), driver.submit(kind="small", memory=None)
    lendable(driver, 900, used=400, **{f"r{low}": 100, f"r{run}": 150})
    driver.tell(MemoryWanted(now_s=0.0, id=run, epoch=1))
    driver.end(low)
    commands: list[SchedulerCommand] = []
    for _ in range(4):
        driver.now_s += 1.0
        commands += lendable(driver, 900, used=300, **{f"r{run}": 150})
    assert [each for each in commands if isinstance(each, ReserveLess)] == []  # it was promised 100
    assert starts(driver.sent)[-1] == run
    assert driver.scheduler.snapshot().running[0].reserved_bytes == 150
