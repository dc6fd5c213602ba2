from headrace.agents.scheduler.hosts.reservations import KindSize, Reservations


def test_nothing_is_known_of_a_kind_before_one_was_measured():
    reservations = Reservations()
    assert reservations.count("a") == 0
    reservations.ended("a", 1, 0)
    assert reservations.count("a") == 1
    assert reservations.needed_bytes("a") is None


def test_of_few_runs_the_largest_counts_and_of_many_the_95th_percentile():
    reservations = Reservations()
    for peak in (100, 300, 200):
        reservations.ended("a", 1, peak)
    assert reservations.needed_bytes("a") == 300
    for _ in range(60):
        reservations.ended("a", 1, 50)
    assert reservations.needed_bytes("a") == 50


def test_only_the_latest_runs_count():
    reservations = Reservations()
    for peak in (1000, 10):
        for _ in range(64):
            reservations.ended("a", 1, peak)
    assert reservations.needed_bytes("a") == 10


def test_a_run_counts_once_whether_it_goes_on_or_has_ended():
    reservations = Reservations()
    reservations.goes_on("a", 1, 50)
    reservations.goes_on("a", 1, 80)
    reservations.goes_on("a", 2, 60)
    assert (reservations.count("a"), reservations.needed_bytes("a")) == (2, 80)
    reservations.ended("a", 1, 70)
    assert (reservations.count("a"), reservations.needed_bytes("a")) == (2, 70)
    reservations.cut_short("a", 2)
    assert (reservations.count("a"), reservations.needed_bytes("a")) == (1, 70)


def test_what_was_learned_is_recalled_and_only_noticeable_changes_are_kept():
    reservations = Reservations()
    reservations.ended("a", 1, 100)
    reservations.ended("unmeasured", 1, 0)
    kept = reservations.changes()
    assert kept == {"a": KindSize(100, 1)}
    reservations.goes_on("a", 2, 105)
    assert reservations.changes() == {"a": KindSize(105, 2)}  # twice as many
    reservations.goes_on("a", 2, 108)
    assert reservations.changes() == {}
    reservations.goes_on("a", 2, 200)
    assert reservations.changes() == {"a": KindSize(200, 2)}
    later = Reservations()
    later.recall(kept)
    assert (later.count("a"), later.needed_bytes("a"), later.changes()) == (1, 100, {})


def test_the_first_runs_of_a_kind_are_kept_one_by_one_since_each_lets_more_start():
    reservations, kept = Reservations(), list[int]()
    for _ in range(40):
        reservations.ended("a", 1, 100)
        kept += [size.seen for size in reservations.changes().values()]
    assert kept == [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]
