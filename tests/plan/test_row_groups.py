"""Equal rows of a list together: unique, tally, group_by; and names that texts can write."""

import tracemalloc

import pytest

from headrace import Agent, AgentList, Scenario, ScenarioList
from headrace.errors import ListError
from headrace.plan.rows import row_groups, row_order

CITIES = ScenarioList(
    [{"city": "Oslo", "n": 1}, {"city": "Lima", "n": 2}, {"n": 1, "city": "Oslo"}, {"city": "Oslo", "n": 5}]
)


def test_each_item_once_where_it_first_stands():
    assert [dict(row) for row in CITIES.unique()] == [dict(CITIES[place]) for place in (0, 1, 3)]
    agents = AgentList([Agent(name="b", age=1, codebook={"age": "Age"}), Agent(age=1), Agent(age=1)])
    assert list(agents.unique()) == list(agents)[:2]


def test_equal_values_are_told_apart_as_in_edsl():
    ids = ScenarioList([{"id": "a"}, {"id": "b"}, {"id": "a"}, {"n": 1}, {"id": "a"}, {"n": 1}])
    assert list(ids.uniquify("id")) == [{"id": "a"}, {"id": "b"}, {"id": "a_1"}, {"n": 1}, {"id": "a_2"}, {"n": 1}]
    assert Scenario(text="a b c", n=1).chunk("text", num_words=2) == ScenarioList(
        [
            {"text": "a b", "n": 1, "text_chunk": 0, "text_char_count": 3, "text_word_count": 2},
            {"text": "c", "n": 1, "text_chunk": 1, "text_char_count": 1, "text_word_count": 1},
        ]
    )


def test_values_are_counted_with_the_most_frequent_first():
    assert [dict(row) for row in CITIES.tally("city")] == [{"city": "Oslo", "count": 3}, {"city": "Lima", "count": 1}]
    assert CITIES.tally("city", output="dict") == {"Oslo": 3, "Lima": 1}
    assert CITIES.tally(output="dict", top_n=1) == {("Oslo", 1): 2}
    assert AgentList([Agent(name="Ada"), Agent(name="Ada")]).tally("agent_name", output="dict") == {"Ada": 2}
    with pytest.raises(ListError, match="Did you mean 'city'"):
        CITIES.tally("ctiy")


def test_a_function_makes_one_scenario_of_each_group():
    totals = CITIES.group_by(["city"], ["n"], lambda numbers: {"total": sum(numbers)})
    assert [dict(row) for row in totals] == [{"city": "Oslo", "total": 7}, {"city": "Lima", "total": 2}]
    with pytest.raises(ListError, match="Return a dict"):
        CITIES.group_by(["city"], ["n"], sum)


def test_more_rows_than_are_sorted_together_are_grouped_too():
    numbers = ScenarioList.from_list("n", (number % 7_000 for number in range(30_000)))
    assert [row["n"] for row in numbers.unique()] == list(range(7_000))
    assert numbers.tally("n", output="dict", top_n=2) == {0: 5, 1: 5}


@pytest.mark.parametrize("most_seen", [1, 10, 7_000])
def test_more_different_rows_than_are_held_in_memory_are_found(most_seen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_groups, "_MOST_SEEN", most_seen)
    rows = [{"n": n * 31 % 700, "t": "long enough to be digested " * (n % 2)} for n in range(3_000)]
    equal = [{"t": "", "n": 0.0}, {"n": 31, "none": None, "t": rows[1]["t"]}]
    other = [{"n": True}, {"n": 1}, {"n": "1"}, {"n": None}]
    expected = [*{(row["n"], row["t"]): row for row in rows}.values(), *other]
    assert [dict(row) for row in ScenarioList([*rows, *equal, *other]).unique()] == expected


def test_names_that_a_text_cannot_write_are_changed():
    odd = ScenarioList([{"Review Text": "good", "City": "Oslo"}])
    assert dict(odd.give_valid_names()[0]) == {"review_text": "good", "City": "Oslo"}
    assert dict(odd.give_valid_names({"Review Text": "review"})[0]) == {"review": "good", "City": "Oslo"}


def test_what_is_collapsed_is_no_longer_than_a_cell_of_a_file(monkeypatch):
    monkeypatch.setattr(row_groups, "LONGEST_CELL", 1_000_000)
    long = ScenarioList({"k": 1, "t": "x" * 20_000} for _ in range(100))
    assert len(long.head(40).collapse("t", separator=", ")[0]["t"]) == 40 * 20_002 - 2
    for verb in (lambda: long.collapse("t"), lambda: long.head(1).expand("t").collapse("t", prefix="y" * 2_000_000)):
        with pytest.raises(ListError, match="more than 1 MB in the row of k '1'"):
            len(verb())
    monkeypatch.setattr(row_groups, "LONGEST_LINE", 1_000_000)
    with pytest.raises(ListError, match="pivot would make a row of more than 1 MB"):
        len(long.add_list("v", range(100)).pivot(["k"], "v", "t"))


def test_long_rows_are_sorted_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(row_order, "_SORTED_TOGETHER_BYTES", 6_000_000)
    monkeypatch.setattr(row_order, "_MERGED_TOGETHER", 4)
    rows = ScenarioList({"n": -n, "t": "x" * 200_000} for n in range(300))  # 60 MB
    tracemalloc.start()
    try:
        ordered = rows.order_by("n")
        assert [row["n"] for row in ordered] == [*range(-299, 1)]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 30_000_000  # was 100 MB
