from benchmarks.children.fair_scenario import SCENARIOS
from benchmarks.fairness import BEFORE, PLAYS, Play, lines_of
from benchmarks.report import Line, Table

PLAY = Play(name="p", title="a start", most_s={"HIGH": 3.0})


def test_every_scenario_is_shown_and_every_recorded_figure_belongs_to_one():
    assert {play.name for play in PLAYS} == {*SCENARIOS}
    assert {*BEFORE} <= {*SCENARIOS}


def test_the_longest_wait_is_shown_beside_the_peer_s_and_the_recorded_one():
    high, low = lines_of(PLAY, {"HIGH": [1.0, 2.5], "LOW": [9.0]}, {"HIGH": [4.0], "LOW": [1.0]}, {"HIGH": 19.0})
    assert high == Line("a start: HIGH", "2.5 s", "<= 3.0 s", True, "4.0 s", "19.0 s")
    assert low == Line("a start: LOW", "9.0 s", peer="1.0 s")


def test_what_never_came_misses_its_target():
    (line,) = lines_of(PLAY, {"HIGH": [1.0, None]}, {"HIGH": [1.0]}, {})
    assert (line.measured, line.ok) == ("never", False)


def test_what_it_costs_to_declare_nothing_is_told_as_a_share():
    mixed = {"HIGH, undeclared": [13.0], "HIGH, declared": [10.0]}
    share = lines_of(PLAY, mixed, mixed, {})[-1]
    assert (share.measured, share.ok) == ("1.30", True)


def test_a_table_has_a_column_of_recorded_figures_only_where_there_are_some():
    assert "before" not in str(Table("t", [Line("a", "1 s")]))
    assert "before" in str(Table("t", [Line("a", "1 s"), Line("b", "1 s", before="2 s")]))
