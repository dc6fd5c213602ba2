import pytest

from headrace.agents.scheduler.events import (
    AttemptEnded,
    Cancelled,
    Closing,
    HostJoined,
    MemoryMeasured,
    ParkRun,
    PreemptRun,
    ResumeRun,
    SchedulerCommand,
    StartRun,
    StopReason,
    Submitted,
    WaitBegan,
    WaitOver,
)
from headrace.agents.scheduler.snapshot import Lacks
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from tests.agents.scheduler.driver import LIMITS, Driver, kills, preempts, settled, starts

MARGIN = 10


class Waits(Driver):
    def __init__(self, slots: int = 2, **queue: float) -> None:
        super().__init__(slots, wait_margin_bytes=MARGIN, **queue)

    def wait_begins(self, run: int) -> list[SchedulerCommand]:
        return self.tell(WaitBegan(now_s=self.now_s, id=run, epoch=self.epochs[run]))

    def wait_is_over(self, run: int) -> list[SchedulerCommand]:
        return self.tell(WaitOver(now_s=self.now_s, id=run, epoch=self.epochs[run]))

    def isolated_child(self, parent: int, id: int, memory: int | None = 100) -> list[SchedulerCommand]:
        child = Submitted(now_s=self.now_s, id=id, kind="known", memory_bytes=memory, parent=parent, is_isolated=True)
        return self.tell(child)


def resumed(commands: list[SchedulerCommand]) -> list[int]:
    return [command.id for command in commands if isinstance(command, ResumeRun)]


def test_another_run_computes_while_one_waits():
    driver = Waits(slots=1)
    first, second = driver.submit(), driver.submit()
    assert starts(driver.sent) == [first]
    assert starts(driver.wait_begins(first)) == [second]
    assert resumed(driver.wait_is_over(first)) == []  # the slot is taken
    assert resumed(driver.end(second)) == [first]


def test_a_wait_that_ends_before_the_slot_is_given_away_goes_on_at_once():
    driver = Waits(slots=1)
    run = driver.submit()
    driver.wait_begins(run)
    assert resumed(driver.wait_is_over(run)) == [run]
    assert resumed(driver.wait_is_over(run)) == [run]  # it computes: an answer that came later needs no slot


def test_a_slot_stays_free_where_the_only_run_whose_wait_was_over_has_ended():
    driver = Waits(slots=1)
    parent, other = driver.submit(), driver.submit()
    child = driver.submit(parent=parent)
    assert starts(driver.wait_begins(parent)) == [other]
    driver.wait_is_over(child)
    driver.end(child)
    driver.end(other)
    assert driver.scheduler.snapshot().awaiting_count == 1
    assert starts(driver.tell(Submitted(now_s=driver.now_s, id=9, kind="known", memory_bytes=100))) == [9]


def test_a_run_whose_wait_is_over_goes_on_ahead_of_new_starts_of_its_priority():
    driver = Waits(slots=1)
    first, second, third = (driver.submit() for _ in range(3))
    driver.wait_begins(first)
    driver.wait_is_over(first)
    commands = driver.end(second)
    assert resumed(commands) == [first]
    assert starts(commands) == []
    assert starts(driver.end(first)) == [third]


def test_a_higher_priority_starts_ahead_of_a_lower_run_whose_wait_is_over():
    driver = Waits(slots=1)
    low, between = driver.submit(Priority.LOW), driver.submit(Priority.LOW)
    driver.wait_begins(low)
    high = driver.submit(Priority.HIGH)
    driver.wait_is_over(low)
    commands = driver.end(between)
    assert starts(commands) == [high]
    assert resumed(commands) == []
    assert resumed(driver.end(high)) == [low]


def test_a_run_whose_wait_is_over_goes_on_ahead_of_those_that_pass_a_higher_one():
    driver = Waits(slots=1)
    dead = driver.submit(memory=500)
    driver.end(dead, ExitCause.OUT_OF_MEMORY)
    driver.submit(Priority.CRITICAL, memory=100)  # for which the second try stops
    critical = 2
    driver.end(dead, ExitCause.PREEMPTED)
    normal = driver.submit(Priority.NORMAL, memory=100)
    driver.wait_begins(critical)
    assert starts(driver.sent)[-1] == normal  # which passes the second try of the first one
    low = driver.submit(Priority.LOW, memory=100)
    driver.wait_begins(normal)
    assert starts(driver.sent)[-1] == low
    driver.wait_is_over(normal)
    assert preempts(driver.sent)[-1] == low
    commands = driver.end(low, ExitCause.PREEMPTED)
    assert (resumed(commands), starts(commands)) == ([normal], [])


def test_a_lower_run_whose_wait_is_over_ages():
    driver = Waits(slots=1)
    low, between = driver.submit(Priority.LOW), driver.submit(Priority.LOW)
    driver.wait_begins(low)
    driver.wait_is_over(low)
    driver.now_s += 1000
    driver.submit(Priority.HIGH)
    assert resumed(driver.end(between)) == [low]


def test_a_slot_that_waits_is_charged_what_it_uses_and_a_margin():
    driver = Waits(slots=2)
    first = driver.submit(memory=600)
    driver.read(100, r1=100)
    second = driver.submit(memory=600)
    assert starts(driver.sent) == [first]
    assert starts(driver.wait_begins(first)) == [second]
    assert resumed(driver.wait_is_over(first)) == []  # a slot is free, its memory is not
    assert resumed(driver.end(second)) == [first]


def test_where_nothing_computes_what_waited_goes_on_with_the_memory_there_is():
    driver = Waits(slots=2)
    first = driver.submit(memory=600)
    driver.read(100, r1=100)
    driver.wait_begins(first)
    second = driver.submit(memory=600)
    driver.read(500, r1=100, r2=400)
    driver.wait_begins(second)
    assert resumed(driver.wait_is_over(first)) == [first]
    assert resumed(driver.wait_is_over(second)) == []
    assert resumed(driver.end(first)) == [second]


class Measured(Waits):
    """On a host that holds workers to limits, and reads each of them."""

    def reading(self, **by_run: int) -> list[SchedulerCommand]:
        told = tuple((int(name[1:]), memory) for name, memory in by_run.items())
        used = 50 + sum(by_run.values())
        read = MemoryMeasured(now_s=self.now_s, host="here", used_bytes=used, by_run=told, lendable_bytes=900)
        return self.tell(read)


def test_what_was_promised_is_there_after_a_wait_where_newer_equals_only_wait():
    driver = Measured(slots=1)
    driver.reading()
    first = driver.submit(memory=500)
    driver.wait_begins(first)
    driver.reading(r1=100)
    newer, newest = driver.submit(memory=100), driver.submit(memory=500)
    for run in (newer, newest):
        driver.wait_begins(run)
        driver.reading(r1=100, r2=50, r3=480 if run == newest else 0)
    (stop,) = driver.wait_is_over(first)  # of those behind it the newest, which is enough
    assert (stop.id, stop.why, stop.is_patient) == (newest, StopReason.PROMISED_BEFORE, True)
    assert driver.end(newest, ExitCause.PREEMPTED) == []
    commands = driver.reading(r1=100, r2=50)
    assert [(each.id, each.is_short) for each in commands if isinstance(each, ResumeRun)] == [(first, False)]
    assert starts(driver.wait_begins(first)) == [newest]  # it goes on with what it has journaled


def test_no_new_start_takes_what_is_made_free_for_a_promise():
    driver = Measured(slots=1)
    driver.reading()
    first = driver.submit(memory=500)
    driver.wait_begins(first)
    driver.reading(r1=100)
    second = driver.submit(memory=500)
    driver.wait_begins(second)
    driver.reading(r1=100, r2=480)
    assert preempts(driver.wait_is_over(first)) == [second]
    small = driver.submit(memory=50)
    assert starts(driver.end(second, ExitCause.PREEMPTED) + driver.reading(r1=100)) == []
    assert resumed(driver.sent) == [first]
    assert starts(driver.end(first)) == [second]
    assert starts(driver.end(second)) == [small]


def test_a_run_goes_on_with_less_where_who_is_behind_it_has_not_stopped_in_time():
    driver = Measured(slots=1)
    driver.reading()
    first = driver.submit(memory=500)
    driver.wait_begins(first)
    driver.reading(r1=100)
    second = driver.submit(memory=500)
    driver.wait_begins(second)
    driver.reading(r1=100, r2=480)
    assert preempts(driver.wait_is_over(first)) == [second]
    driver.now_s += 4.0
    assert driver.reading(r1=100, r2=480) == []
    driver.now_s += 2.0  # it waits for a program, which is not cut short
    (resume,) = driver.reading(r1=100, r2=480)
    assert (resume.id, resume.is_short) == (first, True)


@pytest.mark.parametrize("level", [Priority.HIGH, Priority.CRITICAL])
def test_neither_an_older_equal_nor_a_higher_one_stops_for_what_was_promised(level):
    driver = Measured(slots=1)
    driver.reading()
    first = driver.submit(level, memory=500)
    driver.wait_begins(first)
    driver.reading(r1=100)
    second = driver.submit(memory=500)
    driver.wait_begins(second)
    driver.reading(r1=480, r2=100)
    (resume,) = driver.wait_is_over(second)
    assert (resume.id, resume.is_short) == (second, True)


def test_memory_that_is_in_use_outside_of_runs_is_waited_for_before_a_run_goes_on_with_less():
    driver = Measured(slots=1)
    driver.reading()
    run = driver.submit(memory=500)
    driver.wait_begins(run)
    driver.reading(r1=100)

    def reply(lendable: int) -> list[SchedulerCommand]:
        read = MemoryMeasured(
            now_s=driver.now_s, host="here", used_bytes=600, by_run=((run, 100),), lendable_bytes=lendable
        )
        return driver.tell(read)

    reply(300)
    assert driver.wait_is_over(run) == []  # what came for it is still held outside of its worker
    driver.now_s += 4.0
    assert reply(300) == []
    (resume,) = reply(600)
    assert (resume.id, resume.is_short) == (run, False)
    driver.wait_begins(run)
    reply(300)
    assert driver.wait_is_over(run) == []
    driver.now_s += 5.0
    (resume,) = reply(300)
    assert (resume.id, resume.is_short) == (run, True)


def test_what_was_not_promised_goes_on_with_the_memory_there_is():
    driver = Measured(slots=1, slot_memory_bytes=500)
    driver.reading()
    first = driver.submit(memory=None)
    driver.wait_begins(first)
    driver.reading(r1=100)
    second = driver.submit(memory=500)
    driver.wait_begins(second)
    driver.reading(r1=100, r2=480)
    assert resumed(driver.wait_is_over(first)) == [first]


def test_an_isolated_child_has_a_slot_of_its_own():
    driver = Waits(slots=2)
    parent = driver.submit()
    assert starts(driver.isolated_child(parent, 50)) == [50]
    assert settled(driver.end(50, ExitCause.FAILED)) == [(50, "FAILED")]
    assert settled(driver.end(parent)) == [(parent, "DONE")]


def test_an_isolated_child_starts_in_a_single_slot_that_its_parent_gives_away():
    driver = Waits(slots=1)
    parent = driver.submit()
    driver.submit()
    assert starts(driver.isolated_child(parent, 50)) == []
    assert starts(driver.wait_begins(parent)) == [50]  # ahead of the run that came after its parent


def test_a_run_keeps_its_place_before_what_a_child_of_it_that_has_ended_has_left():
    driver = Waits(slots=1)
    root = driver.submit()
    driver.isolated_child(root, 50)
    driver.wait_begins(root)
    driver.isolated_child(50, 51)
    driver.wait_begins(50)
    driver.end(50)
    driver.end(root, ExitCause.LOST)
    driver.now_s += 10.0
    critical = driver.submit(Priority.CRITICAL)
    assert preempts(driver.sent) == [51]
    assert starts(driver.end(51, ExitCause.PREEMPTED)) == [critical]
    assert starts(driver.end(critical)) == [root]


def test_an_isolated_child_is_not_refused_by_a_full_queue():
    driver = Waits(slots=1)
    parent = driver.submit()
    for _ in range(6):
        driver.submit()
    driver.isolated_child(parent, 50)
    assert starts(driver.wait_begins(parent)) == [50]


def test_a_cancelled_parent_takes_its_isolated_children_along():
    driver = Waits(slots=2)
    parent = driver.submit()
    driver.isolated_child(parent, 50)
    driver.isolated_child(parent, 51)
    driver.wait_begins(parent)
    assert kills(driver.tell(Cancelled(now_s=driver.now_s, id=parent))) == [parent]
    commands = driver.end(parent, ExitCause.LOST)
    assert settled(commands) == [(parent, "CANCELLED")]
    assert sorted(kills(commands)) == [50, 51]


def test_a_parent_that_holds_the_memory_of_its_isolated_child_is_preempted_for_it():
    driver = Waits(slots=2)
    parent = driver.submit(memory=800)
    driver.read(800, r1=800)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    stops: list[PreemptRun] = []
    for _ in range(30):
        driver.now_s += 1.0
        stops += [each for each in driver.read(800, r1=800) if isinstance(each, PreemptRun)]
    assert [(stop.id, stop.why) for stop in stops] == [(parent, StopReason.FOR_ISOLATED_CHILD)]
    assert starts(driver.end(parent, ExitCause.PREEMPTED) + driver.read(0)) == [50]
    assert starts(driver.end(50)) == [parent]


def test_a_slot_that_stops_while_a_child_is_to_start_there_does_not_compute():
    driver = Waits(slots=2)
    low = driver.submit(Priority.LOW, memory=500)
    driver.read(500, r1=500)
    driver.wait_begins(low)
    driver.submit(memory=100)
    other = driver.submit(memory=100)
    driver.tell(Submitted(now_s=driver.now_s, id=50, kind="known", parent=low))  # no slot is free: it waits
    assert preempts(driver.read(880, r1=500)) == [low]
    assert starts(driver.end(other)) == []
    assert driver.scheduler.snapshot().awaiting_count == 1


def test_a_parent_whose_memory_is_taken_for_the_floor_is_preempted_for_its_isolated_child():
    driver = Waits(slots=2)
    driver.read(900)  # of this process itself: there is no run yet
    parent = driver.submit(memory=50)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    commands = driver.wait(11.0, used=700)  # all of it the parent's; the process has given back what it had
    assert preempts(commands) == [parent]
    assert starts(driver.end(parent, ExitCause.PREEMPTED)) == []  # it waits with its child
    assert starts(driver.wait(3.0, used=100)) == [50, parent]


def test_a_parent_whose_isolated_child_fits_nowhere_is_preempted_for_others_and_waits_with_it():
    driver = Waits(slots=2)

    def read(lendable: int, **by_run: int) -> list[SchedulerCommand]:
        told = tuple((int(name[1:]), memory) for name, memory in by_run.items())
        driver.now_s += 1.0
        return driver.tell(
            MemoryMeasured(now_s=driver.now_s, host="here", used_bytes=300, by_run=told, lendable_bytes=lendable)
        )

    read(900)
    parent = driver.submit(memory=300)
    read(400, r1=100)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    assert [preempts(read(400, r1=100)) for _ in range(20)] == [[]] * 20  # it is in nobody's way
    other = driver.submit(memory=350)
    stops = [each for each in driver.sent if isinstance(each, PreemptRun)]
    assert [(stop.id, stop.why) for stop in stops] == [(parent, StopReason.FOR_ISOLATED_CHILD)]
    assert starts(driver.end(parent, ExitCause.PREEMPTED) + read(400)) == [other]
    assert starts(driver.end(other) + read(400)) == []
    assert starts(read(900)) == [50, parent]


def test_a_parent_that_waits_with_its_child_goes_on_when_the_child_has_ended():
    driver = Waits(slots=2)
    driver.read(900)
    parent = driver.submit(memory=50)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    driver.wait(11.0, used=900)
    assert starts(driver.end(parent, ExitCause.PREEMPTED) + driver.wait(60.0, used=900)) == []
    assert starts(driver.tell(Cancelled(now_s=driver.now_s, id=50))) == [parent]


def test_where_all_wait_for_the_queue_nothing_is_waited_for_but_a_reading():
    driver = Waits(slots=2)
    parent = driver.submit(memory=800)
    driver.read(800, r1=800)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    driver.now_s += 1.0
    assert preempts(driver.read(800, r1=800)) == [parent]


def test_a_slot_that_waits_is_charged_at_least_the_smallest_worker():
    driver = Waits(slots=1, least_run_bytes=100)
    first, second = driver.submit(memory=600), driver.submit(memory=900)
    driver.read(1, r1=1)
    driver.submit(memory=901)
    assert starts(driver.wait_begins(first)) == [second]
    assert starts(driver.end(second)) == []  # the next one does not fit beside it


def test_what_a_slot_used_while_it_was_the_only_one_is_no_longer_known_beside_others():
    driver = Waits(slots=2)
    first = driver.submit(memory=800)
    driver.tell(MemoryMeasured(now_s=0.0, host="here", used_bytes=50))
    driver.wait_begins(first)
    second = driver.submit(memory=500)
    driver.tell(MemoryMeasured(now_s=0.0, host="here", used_bytes=500))  # by whom cannot be told
    driver.submit(memory=400)
    assert starts(driver.sent) == [first, second]


def test_nothing_is_kept_back_for_a_worker_that_waits_until_it_computes_again():
    driver = Waits(slots=1)
    driver.tell(HostJoined(now_s=0.0, host="here", slots=1, limits=LIMITS, kept_back_bytes=200))
    runs = [driver.submit(memory=100) for _ in range(5)]

    def read() -> list[SchedulerCommand]:
        used = tuple((run, 60) for run in runs if run in driver.epochs)
        read = MemoryMeasured(now_s=0.0, host="here", used_bytes=100, by_run=used, lendable_bytes=600)
        return driver.tell(read)

    read()
    for run in runs[:4]:  # each 70 of 600, and 100 with 200 kept back for the one that computes
        assert starts(driver.sent)[-1] == run
        driver.wait_begins(run)
        read()
    assert starts(driver.sent) == runs
    driver.wait_is_over(runs[0])
    assert resumed(driver.wait_begins(runs[4])) == [runs[0]]


def test_a_snapshot_tells_what_the_first_in_line_waits_for():
    driver = Waits(slots=1)
    first = driver.submit(memory=600)
    assert driver.scheduler.snapshot(0.0).first_in_line is None
    second = driver.submit(memory=900)
    shown = driver.scheduler.snapshot(0.0).first_in_line
    assert (shown.id, shown.lacks) == (second, Lacks.SLOT)
    driver.read(600, r1=600)
    driver.wait_begins(first)
    shown = driver.scheduler.snapshot(0.0).first_in_line
    assert (shown.id, shown.lacks, shown.needs_bytes, shown.free_bytes) == (second, Lacks.MEMORY, 900, 400)
    driver.read(990, r1=600)
    assert driver.scheduler.snapshot(0.0).first_in_line.lacks is Lacks.PRESSURE


def test_what_goes_on_without_its_memory_and_meets_its_limit_is_not_to_blame():
    driver = Waits(slots=1)

    def read(by_run: tuple[tuple[int, int], ...], used: int) -> list[SchedulerCommand]:
        return driver.tell(
            MemoryMeasured(now_s=driver.now_s, host="here", used_bytes=used, by_run=by_run, lendable_bytes=900)
        )

    read((), 50)
    first = driver.submit(memory=500)
    for _ in range(5):  # more often than it may be preempted before it has to be alone
        driver.wait_begins(first)
        read(((first, 100),), 150)
        second = driver.submit(Priority.CRITICAL, memory=700)  # which makes no room for it
        driver.wait_begins(second)
        read(((first, 100), (second, 690)), 840)
        (resume,) = driver.wait_is_over(first)
        assert isinstance(resume, ResumeRun)
        assert resume.is_short
        ended = AttemptEnded(
            now_s=driver.now_s, id=first, epoch=driver.epochs[first], cause=ExitCause.OUT_OF_MEMORY, limit_bytes=180
        )
        assert settled(driver.tell(ended)) == []
        driver.wait_is_over(second)
        driver.end(second)
        read((), 50)
        (start,) = (command for command in driver.sent[-3:] if isinstance(command, StartRun))
        assert (start.id, start.memory_bytes, start.is_alone) == (first, 500, False)
    assert settled(driver.end(first)) == [(first, "DONE")]


def test_a_parent_that_waits_with_its_child_is_parked_with_it_when_the_engine_closes():
    driver = Waits(slots=2)
    driver.read(900)
    parent = driver.submit(memory=50)
    driver.isolated_child(parent, 50, memory=500)
    driver.wait_begins(parent)
    driver.wait(11.0, used=900)
    driver.end(parent, ExitCause.PREEMPTED)
    parked = [each.id for each in driver.tell(Closing(now_s=driver.now_s)) if isinstance(each, ParkRun)]
    assert sorted(parked) == [parent, 50]


def test_nobody_makes_room_for_a_child_that_was_cancelled_before_it_could_start():
    driver = Waits(slots=2)
    parent = driver.submit(priority=Priority.HIGH, memory=700)
    driver.wait_begins(parent)
    driver.submit(priority=Priority.LOW, memory=500)
    driver.tell(Submitted(now_s=driver.now_s, id=90, kind="known", parent=parent))  # its slot lacks memory to compute
    driver.tell(Cancelled(now_s=driver.now_s, id=90))
    critical = driver.submit(priority=Priority.CRITICAL, memory=100)
    assert starts(driver.sent)[-1] == critical  # in the last free slot
    assert preempts(driver.sent) == []
