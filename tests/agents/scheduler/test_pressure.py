from headrace.agents.scheduler.events import (
    Cancelled,
    EffectEnded,
    EffectStarting,
    GrantPermits,
    HostJoined,
    MemoryMeasured,
    Notice,
    Reclaim,
    RecordNotice,
    SkipRun,
    StopReason,
    SurveyClosed,
    SurveyOpened,
    SurveyUsage,
)
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import LIMITS, Driver, kills, preempts, settled, skips, starts


def three_running(**queue: float) -> Driver:
    driver = Driver(slots=3, **queue)
    for level in (Priority.HIGH, Priority.NORMAL, Priority.NORMAL):
        driver.step(driver.submit(level))
    return driver


def test_rising_pressure_asks_for_memory_back_and_is_recorded():
    driver = Driver()
    note, reclaim = driver.read(710)
    assert isinstance(note, RecordNotice)
    assert note.reading is not None
    assert (note.notice, note.reading.used_bytes) == (Notice.LEVEL, 710)
    assert reclaim == Reclaim(host="here")


def test_above_the_first_level_low_runs_wait_and_slots_halve():
    driver = Driver(slots=2)
    driver.submit()
    driver.read(710)
    driver.submit(Priority.LOW, memory=10)
    driver.submit(Priority.HIGH, memory=10)
    assert starts(driver.sent) == [1]


def test_low_runs_that_pressure_keeps_out_are_told_once_an_episode_and_start_when_it_has_fallen():
    driver = Driver(slots=4)
    driver.submit()
    driver.read(710)
    low = [driver.submit(Priority.LOW, memory=10) for _ in range(2)]
    driver.wait(3.0, used=710)
    assert skips(driver.sent) == low
    first = next(command for command in driver.sent if isinstance(command, SkipRun))
    assert first.why is StopReason.PRESSURE
    assert first.reading is not None
    assert first.reading.used_bytes == 710
    assert starts(driver.wait(5.0, used=100)) == low
    driver.end(low[1], ExitCause.LOST)
    driver.read(710)
    driver.end(low[0], ExitCause.LOST)
    driver.wait(2.0, used=710)
    assert skips(driver.sent) == [*low, low[0]]


def test_however_many_are_passed_over_an_event_tells_a_few_and_readings_the_rest():
    driver = Driver(slots=2, queue_depth=100)
    busy = [driver.submit(), driver.submit()]
    low = [driver.submit(Priority.LOW, memory=10) for _ in range(50)]
    driver.read(710)
    assert skips(driver.sent) == []  # they wait for a slot, not for memory
    first = skips(driver.end(busy[0]))
    assert 0 < len(first) < 20
    driver.tell(Cancelled(now_s=driver.now_s, id=low[-1]))
    driver.wait(5.0, used=710)
    assert sorted(skips(driver.sent)) == low[:-1]


def test_above_the_second_level_the_lowest_and_newest_is_preempted_with_its_reason():
    driver = three_running()
    driver.read(860)
    assert preempts(driver.sent) == [3]
    (preempt,) = [command for command in driver.sent if getattr(command, "why", None)]
    assert (preempt.why, preempt.reading.used_bytes) == (StopReason.PRESSURE, 860)


def test_one_at_a_time_and_the_last_one_stays():
    driver = three_running()
    driver.read(860)
    driver.wait(4.0, used=860)
    assert preempts(driver.sent) == [3]
    driver.end(3, ExitCause.PREEMPTED)
    driver.wait(1.5, used=860)
    assert preempts(driver.sent) == [3]
    driver.wait(1.0, used=860)
    assert preempts(driver.sent) == [3, 2]
    driver.end(2, ExitCause.PREEMPTED)
    driver.wait(10.0, used=860)
    assert preempts(driver.sent) == [3, 2]


def test_what_was_preempted_comes_back_when_pressure_has_fallen():
    driver = three_running()
    driver.read(860)
    driver.end(3, ExitCause.PREEMPTED)
    assert starts(driver.wait(1.5, used=500)) == []
    assert starts(driver.wait(1.0, used=500)) == []
    assert starts(driver.wait(5.0, used=500)) == [3]


def four_running_and_the_newest_pushed_out(**queue: float) -> Driver:
    driver = Driver(slots=4, **queue)
    for _ in range(4):
        driver.step(driver.submit())
    driver.submit()
    driver.submit()
    driver.read(860)
    driver.end(4, ExitCause.PREEMPTED)
    return driver


def test_those_behind_a_run_that_was_pushed_out_start_without_waiting_for_it():
    driver = four_running_and_the_newest_pushed_out()
    driver.read(450)
    for run in (1, 2, 3):
        driver.end(run)
    assert starts(driver.sent) == [1, 2, 3, 4, 5, 6]
    assert starts(driver.wait(5.0, used=450)) == [4]


def test_a_run_that_was_pushed_out_is_passed_for_a_while_only():
    driver = four_running_and_the_newest_pushed_out(aging_s=5.0)
    driver.wait(3.0, used=800)
    driver.end(1)
    driver.end(2)
    assert starts(driver.sent)[4:] == [5]
    driver.wait(3.0, used=800)
    driver.end(5)
    assert starts(driver.sent)[4:] == [5]
    driver.wait(3.0, used=400)
    assert starts(driver.sent)[4:] == [5, 4]


def test_with_nothing_left_running_what_was_pushed_out_comes_back_as_soon_as_a_reading_is_low():
    driver = Driver(slots=2)
    for _ in range(2):
        driver.step(driver.submit())
    driver.read(860)
    driver.end(2, ExitCause.PREEMPTED)
    driver.read(500)
    assert starts(driver.sent) == [1, 2]
    assert starts(driver.end(1)) == [2]


def test_a_run_without_progress_or_inside_a_side_effect_is_not_preempted():
    driver = Driver(slots=3)
    runs = [driver.submit() for _ in range(3)]
    driver.step(runs[2])
    for _ in range(2):  # beside each other
        driver.tell(EffectStarting(now_s=0.0, id=runs[2], epoch=1))
    driver.tell(EffectEnded(now_s=0.0, id=runs[2], epoch=1))
    driver.step(runs[2])
    driver.read(860)
    assert preempts(driver.sent) == []
    driver.tell(EffectEnded(now_s=0.0, id=runs[2], epoch=1))
    driver.read(860)
    assert preempts(driver.sent) == [runs[2]]


def preempted_and_back(driver: Driver, times: int) -> None:
    for _ in range(times):
        driver.wait(10.5, used=100)
        driver.step(2)
        driver.read(860)
        assert preempts(driver.sent)[-1] == 2
        driver.end(2, ExitCause.PREEMPTED)
        driver.wait(10.0, used=100)


def test_a_minimum_run_time_before_being_preempted_again():
    driver = Driver(slots=2)
    driver.submit()
    driver.submit()
    preempted_and_back(driver, 1)
    back_s = driver.now_s
    driver.end(2, ExitCause.LOST)
    driver.step(2)
    driver.read(860)
    assert preempts(driver.sent) == [2]
    driver.wait(10.5, used=860)
    assert preempts(driver.sent) == [2, 2]
    assert driver.now_s - back_s >= 10.0


def test_after_three_preemptions_a_run_waits_to_be_alone_and_is_not_preempted_again():
    driver = Driver(slots=2)
    driver.submit()
    driver.submit()
    preempted_and_back(driver, 3)
    assert driver.epochs[2] == 3
    driver.end(1)
    assert starts(driver.sent)[-1] == 2
    assert driver.scheduler.snapshot().running[0].is_alone
    driver.submit(memory=10)
    assert starts(driver.sent)[-1] == 2


def test_above_the_last_level_the_lowest_is_killed_even_inside_a_side_effect():
    driver = three_running()
    driver.tell(EffectStarting(now_s=0.0, id=3, epoch=1))
    driver.read(960)
    assert kills(driver.sent) == [3]
    driver.read(960)
    assert kills(driver.sent) == [3]
    driver.end(3, ExitCause.LOST)
    driver.read(960)
    assert kills(driver.sent) == [3, 2]


def test_above_the_last_level_only_critical_starts():
    driver = Driver(slots=4)
    driver.submit()
    driver.read(950)
    driver.submit(Priority.HIGH, memory=10)
    driver.submit(Priority.CRITICAL, memory=10)
    assert starts(driver.sent) == [1, 3]


def test_a_run_killed_alone_died_of_its_own_memory():
    driver = Driver(slots=2)
    run = driver.submit()
    driver.read(960)
    driver.end(run, ExitCause.LOST)
    driver.wait(10.0, used=50)
    assert starts(driver.sent) == [run, run]
    driver.read(960)
    assert settled(driver.end(run, ExitCause.LOST)) == [(run, "OUT_OF_MEMORY")]


def test_pressure_that_never_falls_makes_a_new_zero_and_one_run_at_a_time():
    driver = Driver(slots=2)
    driver.read(900)
    first, second = driver.submit(Priority.NORMAL, memory=50), driver.submit(Priority.NORMAL, memory=20)
    assert starts(driver.sent) == []
    driver.wait(1.0, used=900)
    assert [command.subject for command in driver.sent if getattr(command, "notice", None) is Notice.NEW_ZERO] == [
        "here"
    ]
    assert starts(driver.sent) == [first]
    assert starts(driver.end(first)) == [second]
    driver.end(second)
    driver.wait(1.0, used=100)
    assert driver.scheduler.snapshot().hosts[0].reading.zero_bytes == 0


def survey(driver: Driver, wanted: int = 80, permit_bytes: int = 2, priority: Priority = Priority.NORMAL) -> None:
    driver.tell(
        SurveyOpened(
            now_s=driver.now_s, survey="s", host="here", wanted=wanted, priority=priority, permit_bytes=permit_bytes
        )
    )


def credits_of(driver: Driver) -> int:
    return [command.permits for command in driver.sent if isinstance(command, GrantPermits)][-1]


def test_a_survey_gets_all_it_wants_step_by_step_in_calm():
    driver = Driver()
    survey(driver)
    driver.wait(4.0, used=100)
    grants = [command.permits for command in driver.sent if isinstance(command, GrantPermits)]
    assert grants == [2, 4, 8, 16, 32, 64, 80]


def test_pressure_takes_credits_back_down_to_an_eighth_then_one_then_none():
    driver = Driver()
    survey(driver)
    driver.wait(4.0, used=100)
    driver.wait(4.0, used=710)
    assert credits_of(driver) == 10
    driver.read(860)
    assert credits_of(driver) == 1
    driver.read(960)
    assert credits_of(driver) == 0


def test_a_run_that_waits_for_memory_gets_it_from_the_survey_but_not_its_last_part():
    driver = Driver(slots=4)
    survey(driver, wanted=80, permit_bytes=8)
    driver.wait(5.0, used=100)
    assert credits_of(driver) == 80
    first = driver.submit(memory=500)
    driver.wait(3.0, used=100)
    assert starts(driver.sent) == [first]
    driver.submit(memory=500)
    driver.wait(3.0, used=100)
    assert starts(driver.sent) == [first]
    assert credits_of(driver) == 10


def test_a_survey_pauses_only_for_a_run_that_would_not_fit_beside_one_credit():
    driver = Driver(slots=1)
    survey(driver, wanted=10, permit_bytes=20)
    driver.wait(2.0, used=100)
    run = driver.submit(memory=890)
    driver.read(100)
    assert credits_of(driver) == 0
    driver.read(100)
    assert starts(driver.sent) == [run]
    driver.end(run)
    again = driver.submit(memory=890)
    driver.wait(5.0, used=100)
    assert credits_of(driver) == 10  # the survey has its turn before the next pause
    assert starts(driver.sent) == [run]
    driver.wait(60.0, used=100)
    assert starts(driver.sent) == [run, again]


def test_revoked_credits_count_until_they_are_given_back():
    driver = Driver(slots=1)
    survey(driver, wanted=10, permit_bytes=50)
    driver.wait(2.0, used=0)
    driver.tell(SurveyUsage(now_s=driver.now_s, survey="s", in_use=10, permit_bytes=50))
    driver.submit(memory=800)
    driver.wait(2.0, used=500)
    assert credits_of(driver) == 1
    assert starts(driver.sent) == []
    driver.tell(SurveyUsage(now_s=driver.now_s, survey="s", in_use=1, permit_bytes=50))
    driver.read(50)
    assert starts(driver.sent) == [1]


def test_a_closed_survey_gives_everything_back():
    driver = Driver(slots=1)
    survey(driver, wanted=10, permit_bytes=50)
    driver.wait(2.0, used=0)
    driver.submit(memory=950)
    assert starts(driver.tell(SurveyClosed(now_s=driver.now_s, survey="s"))) == [1]


def test_a_level_that_follows_a_higher_one_preempts_nobody_below_its_own_line():
    driver = three_running()
    driver.read(960)
    (killed,) = kills(driver.sent)
    driver.end(killed, ExitCause.PREEMPTED)
    driver.wait(8.0, used=640)
    assert preempts(driver.sent) == []


def test_pressure_of_surveys_on_one_host_does_not_keep_out_for_ever_what_another_is_too_small_for():
    driver = Driver(slots=1)
    driver.tell(SurveyOpened(now_s=0.0, survey="s", host="here", wanted=40, priority=Priority.HIGH, permit_bytes=5))
    driver.read(720)
    driver.tell(HostJoined(now_s=0.0, host="there", slots=1, limits=LIMITS))
    driver.tell(MemoryMeasured(now_s=0.0, host="there", used_bytes=690))
    low = driver.submit(Priority.LOW, memory=320)
    for _ in range(30):
        driver.now_s += 1.0
        permits = [command.permits for command in driver.sent if isinstance(command, GrantPermits)]
        in_use = permits[-1] if permits else 0
        driver.tell(SurveyUsage(now_s=driver.now_s, survey="s", in_use=in_use, permit_bytes=5))
        driver.read(640 + 5 * in_use)
        driver.tell(MemoryMeasured(now_s=driver.now_s, host="there", used_bytes=690))
    assert starts(driver.sent) == [low]
