"""What runs of a kind need is learned from those before, and from those that go on."""

from headrace.agents.scheduler.events import AttemptEnded, Cancelled, ReserveLess, WaitBegan
from headrace.exit_causes import ExitCause
from tests.agents.scheduler.driver import Driver, starts


def reserved(driver: Driver) -> dict[int, int]:
    return {run.id: run.reserved_bytes for run in driver.scheduler.snapshot().running}


def test_a_new_kind_starts_beside_others_as_soon_as_a_slots_memory_is_free():
    driver = Driver(slots=4)
    declared = driver.submit(memory=300)
    first, second = (driver.submit(kind="new", memory=None) for _ in range(2))
    assert starts(driver.sent) == [declared, first]
    driver.end(declared)
    assert starts(driver.sent) == [declared, first, second]
    assert reserved(driver) == {first: 400, second: 400}


def test_a_new_kind_that_has_waited_starts_with_an_equal_share_of_the_host():
    driver = Driver(slots=4)
    long = driver.submit(memory=650)
    new = driver.submit(kind="new", memory=None)
    driver.wait(1.5, used=100)
    assert starts(driver.sent) == [long]
    driver.wait(0.5, used=100)
    assert starts(driver.sent) == [long, new]
    assert reserved(driver)[new] == 250


def test_later_runs_of_a_kind_reserve_what_was_seen():
    driver = Driver(slots=3)
    first, second, third = (driver.submit(kind="new", memory=None) for _ in range(3))
    assert starts(driver.sent) == [first, second]
    driver.end(first, peak=150)
    assert starts(driver.sent) == [first, second, third]
    assert reserved(driver) == {second: 400, third: 150}


def test_parked_runs_teach_what_their_kind_needs():
    driver = Driver(slots=2, slot_memory_bytes=900)
    driver.end(driver.submit(kind="talk", memory=None), ExitCause.PARKED, peak=100)
    talks = [driver.submit(kind="talk", memory=None) for _ in range(2)]
    assert starts(driver.sent)[1:] == talks


def test_a_run_that_goes_on_teaches_once_its_use_is_steady_and_gives_back_what_it_was_promised_too_much():
    driver = Driver(slots=4, slot_memory_bytes=800)
    first, second = (driver.submit(kind="new", memory=None) for _ in range(2))
    for used in (50, 100, 150):
        driver.wait(1.0, used=used)
    assert starts(driver.sent) == [first]
    driver.wait(2.0, used=150)
    assert starts(driver.sent) == [first, second]
    assert reserved(driver) == {first: 150, second: 150}


def test_what_a_run_uses_while_it_waits_says_nothing_of_its_need():
    driver = Driver(slots=4, slot_memory_bytes=800)
    first, _ = (driver.submit(kind="new", memory=None) for _ in range(2))
    driver.wait(0.5, used=50)
    driver.tell(WaitBegan(now_s=driver.now_s, id=first, epoch=1))
    driver.wait(5.0, used=50)
    driver.submit(kind="new", memory=None)
    assert max(reserved(driver).values()) == 800


def test_a_run_that_uses_more_than_its_kind_was_known_to_teaches_at_once():
    driver = Driver(slots=3)
    driver.end(driver.submit(kind="new", memory=None), peak=100)
    first, second = (driver.submit(kind="new", memory=None) for _ in range(2))
    driver.read(350, **{f"r{first}": 300, f"r{second}": 50})
    driver.end(second)
    third = driver.submit(kind="new", memory=None)
    assert reserved(driver) == {first: 100, third: 300}
    driver.end(first, ExitCause.PREEMPTED)  # it was stopped early: that says nothing


def test_runs_that_nobody_can_tell_apart_show_what_they_need_on_average():
    driver = Driver(slots=3)
    driver.end(driver.submit(kind="new", memory=None), peak=100)
    second, third = (driver.submit(kind="new", memory=None) for _ in range(2))
    driver.read(150)  # no more than they were promised
    driver.end(second)
    fourth = driver.submit(kind="new", memory=None)
    driver.read(500)
    driver.read(300)
    driver.end(third)
    driver.submit(kind="new", memory=None)
    assert reserved(driver) == {fourth: 100, fourth + 1: 250}


def test_by_an_estimate_no_more_than_twice_as_many_begin_at_once_as_were_seen():
    driver = Driver(slots=8, queue_depth=20, slot_memory_bytes=200)
    driver.end(driver.submit(kind="new", memory=None), peak=10)
    runs = [driver.submit(kind="new", memory=None) for _ in range(8)]
    assert starts(driver.sent)[1:] == runs[:6]  # two by the estimate, the others with a slot's memory
    assert sorted(reserved(driver).values()) == [10, 10, 200, 200, 200, 200]
    assert starts(driver.end(runs[0], peak=10)) == runs[6:]


def test_what_was_only_seen_gets_no_further_than_the_level_that_preempts_and_what_is_declared_does():
    driver = Driver(slots=4)
    for _ in range(2):
        driver.end(driver.submit(kind="new", memory=None), peak=300)
    seen = [driver.submit(kind="new", memory=None) for _ in range(3)]
    assert starts(driver.sent)[2:] == seen[:2]
    driver = Driver(slots=4)
    declared = [driver.submit(memory=300) for _ in range(3)]
    assert starts(driver.sent) == declared


def test_what_eight_runs_have_shown_counts_like_what_is_declared():
    driver = Driver(slots=4)
    for _ in range(8):
        driver.end(driver.submit(kind="new", memory=None), peak=300)
    seen = [driver.submit(kind="new", memory=None) for _ in range(3)]
    assert starts(driver.sent)[8:] == seen


def test_one_that_ran_out_of_memory_shows_that_its_kind_needs_what_it_had():
    driver = Driver(slots=2)
    run = driver.submit(kind="new", memory=None)
    ended = AttemptEnded(now_s=0.0, id=run, epoch=1, cause=ExitCause.OUT_OF_MEMORY, peak_bytes=1, limit_bytes=250)
    driver.tell(ended)
    driver.tell(Cancelled(now_s=0.0, id=run))
    driver.end(run, ExitCause.LOST)
    other = driver.submit(kind="new", memory=None)
    assert reserved(driver) == {other: 250}


def test_what_a_slot_gives_back_may_be_lent_to_others():
    driver = Driver(slots=2)
    run = driver.submit(kind="new", memory=None)
    driver.wait(3.0, used=150)
    assert [command for command in driver.sent if isinstance(command, ReserveLess)] == [
        ReserveLess(id=run, epoch=1, memory_bytes=150)
    ]
