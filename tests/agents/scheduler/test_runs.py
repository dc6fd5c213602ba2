import pytest

from headrace.agents.scheduler.events import (
    AttemptEnded,
    Cancelled,
    Closing,
    EffectStarting,
    EndRun,
    HostJoined,
    HostLost,
    KillRun,
    ParkRun,
    PreemptRun,
    PriorityRaised,
    RecordShortage,
    Refusal,
    SchedulerCommand,
    StopReason,
    Submitted,
    WaitBegan,
)
from headrace.agents.scheduler.snapshot import Lacks
from headrace.errors import OptionError
from headrace.exit_causes import ExitCause
from headrace.limits import MemoryLimits, QueueLimits
from headrace.priority import Priority
from tests.agents.scheduler.driver import LIMITS, Driver, kills, preempts, refused, settled, starts


def test_a_run_starts_at_once_where_there_is_room_and_ends_once():
    driver = Driver()
    run = driver.submit()
    assert starts(driver.sent) == [run]
    assert settled(driver.end(run)) == [(run, "DONE")]
    assert driver.end(run) == []


def test_higher_levels_start_first_and_within_a_level_the_first_to_come():
    driver = Driver(slots=1)
    first = driver.submit()
    low, normal, high, second_high, critical = [
        driver.submit(level)
        for level in (Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.HIGH, Priority.CRITICAL)
    ]
    order = [first]
    while len(order) < 6:
        order += starts(driver.end(order[-1]))
    assert order == [first, critical, high, second_high, normal, low]


def test_having_waited_long_counts_as_much_as_a_level_but_never_as_critical():
    driver = Driver(slots=1, aging_s=60.0)
    first = driver.submit()
    low = driver.submit(Priority.LOW)
    driver.now_s = 121.0
    high, critical = driver.submit(Priority.HIGH), driver.submit(Priority.CRITICAL)
    assert starts(driver.end(first)) == [critical]
    assert starts(driver.end(critical)) == [low]
    assert starts(driver.end(low)) == [high]


def test_a_full_level_refuses_with_its_depth_and_a_guess_and_keeps_no_other_out():
    driver = Driver(slots=1, queue_depth=2)
    first = driver.submit()
    driver.started(first)
    driver.now_s = 10.0
    driver.submit()
    assert starts(driver.end(first)) == [2]
    assert driver.scheduler.has_room(Priority.HIGH)
    driver.submit()
    driver.submit()
    assert not driver.scheduler.has_room(Priority.HIGH)
    assert driver.scheduler.has_room(Priority.CRITICAL)
    driver.submit()
    (refusal,) = refused(driver.sent)
    assert (refusal.refusal, refusal.depth, refusal.wait_s) == (Refusal.QUEUE_FULL, 2, 20.0)


def test_reservations_are_never_above_the_budget():
    driver = Driver(slots=4, floor=200)
    runs = [driver.submit(memory=300) for _ in range(3)]
    assert starts(driver.sent) == runs[:2]
    assert starts(driver.end(runs[0])) == [runs[2]]


def test_what_is_in_use_counts_where_it_is_more_than_was_reserved():
    driver = Driver(slots=3)
    driver.submit(memory=100)
    driver.read(500, r1=500)
    driver.submit(memory=550)
    assert starts(driver.sent) == [1]


def test_a_smaller_run_does_not_slip_past_a_larger_one():
    driver = Driver(slots=3)
    first, large, small = driver.submit(memory=600), driver.submit(memory=600), driver.submit(memory=100)
    assert starts(driver.sent) == [first]
    assert starts(driver.end(first)) == [large, small]


def test_more_than_every_budget_has_is_refused_at_once():
    driver = Driver()
    driver.submit(memory=1001)
    assert refused(driver.sent)[0].refusal is Refusal.BUDGET_TOO_SMALL


def test_what_does_not_fit_beside_an_idle_engine_is_refused_at_once():
    driver = Driver(floor=500)
    driver.submit(memory=501)
    assert refused(driver.sent)[0].refusal is Refusal.BUDGET_TOO_SMALL
    assert starts(driver.tell(Submitted(now_s=0.0, id=9, kind="known", memory_bytes=500))) == [9]


def test_what_fitted_when_it_was_submitted_waits_until_memory_comes_back_and_an_event_says_so():
    driver = Driver(slots=1, floor=100)
    first, large, small = driver.submit(memory=600), driver.submit(memory=600), driver.submit(memory=100)
    driver.read(550)  # the host process has grown
    commands = driver.end(first) + driver.wait(60.0, used=550)
    (short,) = (command for command in commands if isinstance(command, RecordShortage))
    assert (short.id, short.needs_bytes, short.room_bytes, short.best_room_bytes) == (large, 600, 450, 900)
    assert starts(commands) == [small]  # which it does not keep out
    assert settled(commands) == [(first, "DONE")]
    driver.end(small)
    assert starts(driver.wait(1.0, used=200)) == [large]


def test_a_run_that_started_in_an_earlier_engine_waits_though_this_one_has_less_memory():
    driver = Driver(floor=500)
    run = driver.submit(memory=600, epoch=3)
    assert settled(driver.wait(60.0, used=500)) == []
    assert starts(driver.wait(1.0, used=300)) == [run]


def test_what_fits_nowhere_for_ten_minutes_in_a_row_is_given_up_with_what_it_lacked():
    driver = Driver(floor=100)
    driver.read(550)
    run = driver.submit(memory=600)
    driver.wait(500.0, used=550)
    first = driver.scheduler.snapshot(driver.now_s).first_in_line
    assert (first.id, first.lacks, first.needs_bytes, first.free_bytes) == (run, Lacks.ROOM, 600, 450)
    assert starts(driver.wait(1.0, used=200)) == [run]  # memory was back: the time begins anew
    driver.read(550)
    driver.end(run, ExitCause.PREEMPTED)
    assert settled(driver.wait(590.0, used=550)) == []
    commands = driver.wait(20.0, used=550)
    assert settled(commands) == [(run, "BUDGET_TOO_SMALL")]
    (end,) = (command for command in commands if isinstance(command, EndRun))
    assert (end.shortage.needs_bytes, end.shortage.room_bytes, end.shortage.best_room_bytes) == (600, 450, 900)


def test_where_no_memory_is_left_all_that_wait_are_given_up_a_few_at_each_event():
    driver = Driver(floor=100, queue_depth=100)
    first, *runs = (driver.submit(memory=800) for _ in range(41))
    driver.read(999)
    driver.end(first)
    driver.wait(6.0, used=999)
    driver.now_s += 601
    given_up = [settled(driver.read(999)) for _ in range(4)]
    assert [len(each) for each in given_up] == [16, 16, 8, 0]
    assert [run for each in given_up for run, _ in each] == runs


def test_a_run_that_is_raised_while_it_fits_nowhere_is_given_up_too():
    driver = Driver(floor=100)
    driver.read(550)
    run = driver.submit(memory=600)
    driver.wait(10.0, used=550)
    driver.tell(PriorityRaised(now_s=driver.now_s, id=run, priority=Priority.CRITICAL))
    assert settled(driver.wait(601.0, used=550)) == [(run, "BUDGET_TOO_SMALL")]


def test_of_runs_that_no_memory_is_there_for_the_smallest_comes_back_first():
    driver = Driver(slots=3, floor=100)
    driver.read(700)
    largest, large, small = (driver.submit(memory=memory) for memory in (800, 500, 250))
    assert starts(driver.sent) == [small]
    driver.end(small)
    assert starts(driver.wait(5.0, used=450)) == [large]
    driver.end(large)
    assert starts(driver.wait(5.0, used=150)) == [largest]


def test_what_no_memory_is_there_for_can_be_cancelled_and_parked():
    driver = Driver(floor=100)
    driver.read(700)
    cancelled, parked = driver.submit(Priority.LOW, memory=800), driver.submit(memory=700)
    driver.wait(1.0, used=650)
    assert settled(driver.tell(Cancelled(now_s=driver.now_s, id=cancelled))) == [(cancelled, "CANCELLED")]
    (park,) = driver.tell(Closing(now_s=driver.now_s))
    assert isinstance(park, ParkRun)
    assert park.id == parked


def test_a_run_out_of_memory_is_tried_once_more_with_twice_a_slots_memory_and_then_set_aside():
    driver = Driver(slots=2)
    run, other = driver.submit(memory=200), driver.submit(memory=300)
    assert driver.end(run, ExitCause.OUT_OF_MEMORY) == []
    (again,) = driver.end(other)[1:]
    assert (again.id, again.memory_bytes) == (run, 800)
    assert settled(driver.end(run, ExitCause.OUT_OF_MEMORY)) == [(run, "OUT_OF_MEMORY")]


def test_a_child_out_of_memory_is_tried_once_more_with_its_parent_and_more_memory_and_then_set_aside():
    driver = Driver(slots=2)
    parent, other = driver.submit(memory=200), driver.submit(memory=300)
    child, sibling = driver.submit(parent=parent), driver.submit(parent=parent)
    stopped = driver.end(child, ExitCause.OUT_OF_MEMORY)
    assert [(command.id, command.why) for command in stopped] == [
        (parent, StopReason.FOR_CHILD),
        (sibling, StopReason.WITH_PARENT),
    ]
    assert driver.end(sibling, ExitCause.PREEMPTED) == driver.end(parent, ExitCause.PREEMPTED) == []
    again = driver.end(other)[1:]
    assert [(start.id, start.memory_bytes) for start in again] == [(run, 800) for run in (parent, child, sibling)]
    assert settled(driver.end(child, ExitCause.OUT_OF_MEMORY)) == [(child, "OUT_OF_MEMORY")]
    assert settled(driver.end(parent)) == [(parent, "DONE")]


def test_a_lost_worker_costs_an_attempt_and_too_many_cost_the_run():
    driver = Driver()
    run = driver.submit()
    assert [starts(driver.end(run, ExitCause.LOST)) for _ in range(2)] == [[run], [run]]
    assert settled(driver.end(run, ExitCause.LOST)) == [(run, "LOST")]


def test_workers_that_end_with_the_warden_cost_a_run_none_of_its_losses():
    driver = Driver()
    run = driver.submit()
    for _ in range(5):
        driver.step(run)
        assert driver.end(run, ExitCause.LOST, is_own=False) == driver.sent[-1:]  # no circuit opens
        assert starts(driver.sent[-1:]) == [run]
    assert [starts(driver.end(run, ExitCause.LOST)) for _ in range(2)] == [[run], [run]]
    assert settled(driver.end(run, ExitCause.LOST)) == [(run, "LOST")]


def test_a_run_that_ends_the_warden_again_and_again_is_set_aside_and_nobody_beside_it():
    driver = Driver(slots=3)
    deadly, beside, waiting = (driver.submit() for _ in range(3))
    driver.tell(WaitBegan(now_s=0.0, id=waiting, epoch=1))

    def warden_ends(*runs: int) -> list[SchedulerCommand]:
        return [command for run in runs for command in driver.end(run, ExitCause.LOST, is_own=False)]

    assert starts(warden_ends(deadly, beside, waiting)) == [deadly, beside, waiting]
    driver.tell(WaitBegan(now_s=0.0, id=waiting, epoch=2))
    (start,) = warden_ends(deadly, beside, waiting)
    assert (start.id, start.is_alone) == (deadly, True)
    end, start = warden_ends(deadly)
    assert (end.id, end.cause) == (deadly, ExitCause.LOST)
    assert (start.id, start.is_alone) == (beside, True)
    driver.step(beside)  # which clears it of suspicion
    assert starts(warden_ends(beside)) == [beside, waiting]
    assert settled(driver.end(beside)) == [(beside, "DONE")]


def test_a_run_that_waits_is_not_suspected_of_ending_the_warden():
    driver = Driver()
    run = driver.submit()
    for _ in range(5):
        driver.tell(WaitBegan(now_s=0.0, id=run, epoch=driver.epochs[run]))
        (start,) = driver.end(run, ExitCause.LOST, is_own=False)
        assert (start.id, start.is_alone) == (run, False)


def test_critical_work_beside_a_suspect_clears_it_of_the_next_end_of_the_warden():
    driver = Driver(slots=2)
    run = driver.submit()
    for _ in range(2):
        driver.end(run, ExitCause.LOST, is_own=False)
    critical = driver.submit(Priority.CRITICAL)
    driver.end(critical, ExitCause.LOST, is_own=False)
    assert settled(driver.end(run, ExitCause.LOST, is_own=False)) == []


def test_what_is_lost_for_good_takes_the_children_in_its_worker_along():
    driver = Driver()
    parent = driver.submit()
    child = driver.submit(parent=parent)
    for _ in range(2):  # one death of their worker ends both: the parent's end is told first
        assert preempts(driver.end(parent, ExitCause.LOST)) == [child]
        assert starts(driver.end(child, ExitCause.LOST)) == [parent, child]
    last = driver.end(parent, ExitCause.LOST)
    assert (kills(last), settled(last)) == ([child], [(parent, "LOST")])
    assert driver.end(child, ExitCause.LOST) == [EndRun(id=child, epoch=3, cause=ExitCause.LOST)]


def test_a_lost_host_costs_a_run_none_of_its_losses():
    driver = Driver()
    run = driver.submit()
    for attempt in (2, 3, 4):
        assert driver.tell(HostLost(now_s=1.0, host="here")) == []
        assert driver.scheduler.snapshot().waiting[Priority.HIGH] == 1
        assert starts(driver.tell(HostJoined(now_s=1.0, host="here", slots=2, limits=LIMITS))) == [run]
        assert driver.epochs[run] == attempt
    assert [starts(driver.end(run, ExitCause.LOST)) for _ in range(2)] == [[run], [run]]
    assert settled(driver.end(run, ExitCause.LOST)) == [(run, "LOST")]


def test_news_of_a_replaced_attempt_is_ignored():
    driver = Driver()
    run = driver.submit()
    driver.end(run, ExitCause.LOST)
    late = AttemptEnded(now_s=0.0, id=run, epoch=1, cause=ExitCause.DONE)
    assert driver.tell(late) == []
    assert settled(driver.end(run)) == [(run, "DONE")]


def test_epochs_go_on_where_an_earlier_controller_left_them():
    driver = Driver()
    run = driver.submit(epoch=7)
    assert driver.epochs[run] == 8


def test_a_child_runs_in_its_parents_slot_and_priority():
    driver = Driver(slots=1)
    parent = driver.submit(Priority.NORMAL, memory=1000)
    child = driver.submit(Priority.CRITICAL, memory=1000, parent=parent)
    assert starts(driver.sent) == [parent, child]
    assert [run.priority for run in driver.scheduler.snapshot().running] == [Priority.NORMAL] * 2


def test_a_slot_is_free_when_the_last_run_in_it_ends():
    driver = Driver(slots=1)
    parent = driver.submit()
    child, other = driver.submit(parent=parent), driver.submit()
    assert starts(driver.end(parent)) == []
    assert starts(driver.end(child)) == [other]


def test_children_stop_and_start_again_with_their_parent():
    driver = Driver(slots=1)
    parent = driver.submit()
    child = driver.submit(parent=parent)
    assert preempts(driver.end(parent, ExitCause.LOST)) == [child]
    assert starts(driver.end(child, ExitCause.PREEMPTED)) == [parent, child]


def test_children_that_were_told_to_stop_are_not_cut_short_when_their_parent_has_stopped():
    driver = Driver(slots=1)
    parent = driver.submit()
    child = driver.submit(parent=parent)
    driver.tell(EffectStarting(now_s=0.0, id=child, epoch=driver.epochs[child]))
    assert preempts(driver.tell(Closing(now_s=0.0))) == [parent, child]
    assert driver.end(parent, ExitCause.PREEMPTED) == []
    parked = driver.end(child, ExitCause.PREEMPTED)
    assert sorted(command.id for command in parked if isinstance(command, ParkRun)) == [parent, child]


def test_a_child_never_waits_for_a_slot_that_its_own_parent_holds():
    driver = Driver(slots=1)
    root = driver.submit()
    child = driver.submit(parent=root)
    grandchild = driver.submit(parent=child)
    driver.end(root)
    driver.end(child, ExitCause.LOST)
    assert starts(driver.end(grandchild, ExitCause.LOST))[-1] == grandchild
    assert driver.scheduler.snapshot().running_count == 2


def test_a_parked_run_holds_nothing_and_comes_back_by_its_epoch():
    driver = Driver(slots=1)
    run, other = driver.submit(), driver.submit()
    parked, start = driver.end(run, ExitCause.PARKED)
    assert parked == ParkRun(id=run, epoch=1, preemptions=0, deaths=0, executed_s=0.0)
    assert starts([start]) == [other]
    assert len(driver.scheduler) == 1


def test_time_limits_count_from_the_start_of_execution_and_not_while_waiting():
    driver = Driver(slots=1)
    first, run = driver.submit(), driver.submit(limit_s=5.0)
    driver.wait(100.0)
    driver.end(first)
    driver.wait(1.0)
    driver.started(run)
    assert driver.scheduler.next_tick_s() == driver.now_s + 5.0
    assert kills(driver.wait(4.5)) == []
    assert kills(driver.wait(1.0)) == [run]
    assert settled(driver.end(run, ExitCause.LOST)) == [(run, "TIMED_OUT")]


def test_a_time_limit_counts_what_was_executed_before_the_run_was_parked():
    driver = Driver(slots=1)
    run = driver.submit(limit_s=5.0)
    driver.started(run)
    driver.wait(2.0)
    (parked,) = driver.end(run, ExitCause.PARKED)
    assert isinstance(parked, ParkRun)
    assert parked.executed_s == 2.0
    driver.wait(100.0)
    driver.tell(
        Submitted(
            now_s=driver.now_s,
            id=run,
            kind="known",
            memory_bytes=100,
            limit_s=5.0,
            epoch=1,
            executed_s=parked.executed_s,
        )
    )
    driver.started(run)
    assert driver.scheduler.next_tick_s() == driver.now_s + 3.0
    assert kills(driver.wait(3.5)) == [run]


def test_cancelling_what_waits_settles_it_and_what_runs_is_killed_first():
    driver = Driver(slots=1)
    run, waiting = driver.submit(), driver.submit()
    assert settled(driver.tell(Cancelled(now_s=0.0, id=waiting))) == [(waiting, "CANCELLED")]
    (kill,) = driver.tell(Cancelled(now_s=0.0, id=run))
    assert isinstance(kill, KillRun)
    assert driver.tell(Cancelled(now_s=0.0, id=run)) == []
    assert settled(driver.end(run, ExitCause.PREEMPTED)) == [(run, "CANCELLED")]


def test_closing_parks_what_waits_and_what_runs_at_its_next_step():
    driver = Driver(slots=1)
    run, waiting = driver.submit(), driver.submit()
    parked, preempt = driver.tell(Closing(now_s=1.0))
    assert parked == ParkRun(id=waiting, epoch=0, preemptions=0, deaths=0, executed_s=0.0)
    assert isinstance(preempt, PreemptRun)
    assert preempt.why is StopReason.CLOSING
    assert driver.end(run, ExitCause.PREEMPTED) == [ParkRun(id=run, epoch=1, preemptions=0, deaths=0, executed_s=0.0)]
    driver.submit()
    assert refused(driver.sent)[0].refusal is Refusal.CLOSING


def test_critical_work_makes_room_for_itself():
    driver = Driver(slots=1)
    low = driver.submit(Priority.LOW)
    driver.step(low)
    critical = driver.submit(Priority.CRITICAL)
    assert preempts(driver.sent) == [low]
    assert starts(driver.end(low, ExitCause.PREEMPTED)) == [critical]
    assert starts(driver.end(critical)) == [low]


def test_a_snapshot_shows_everything_and_is_bounded():
    driver = Driver(slots=2, queue_depth=500)
    for _ in range(300):
        driver.submit()
    shown = driver.scheduler.snapshot()
    assert (shown.waiting[Priority.HIGH], shown.running_count, shown.held) == (298, 2, 0)
    assert len(shown.running) == 2
    assert shown.hosts[0].slots == 2


@pytest.mark.parametrize("given", [{"queue_depth": 0}, {"aging_s": 0.0}, {"slot_memory_bytes": 1}, {"most_losses": -1}])
def test_queue_limits_that_make_no_sense_are_refused(given: dict[str, int]):
    with pytest.raises(OptionError):
        QueueLimits(**given)


def test_memory_limits_with_negative_times_are_refused():
    with pytest.raises(OptionError, match="negative"):
        MemoryLimits(budget_bytes=1, min_run_s=-1.0)
