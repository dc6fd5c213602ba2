from headrace.agents.scheduler.hosts.reservations import Reservations


def test_nothing_is_known_of_a_kind_before_its_first_run_ended():
    reservations = Reservations()
    assert not reservations.knows("a")
    reservations.seen("a", 0)
    assert reservations.knows("a")
    assert reservations.needed_bytes("a") is None


def test_of_few_runs_the_largest_counts_and_of_many_the_95th_percentile():
    reservations = Reservations()
    reservations.seen("a", 100)
    reservations.seen("a", 300)
    reservations.seen("a", 200)
    assert reservations.needed_bytes("a") == 300
    for _ in range(60):
        reservations.seen("a", 50)
    assert reservations.needed_bytes("a") == 50


def test_only_the_latest_runs_count():
    reservations = Reservations()
    for _ in range(64):
        reservations.seen("a", 1000)
    for _ in range(64):
        reservations.seen("a", 10)
    assert reservations.needed_bytes("a") == 10
