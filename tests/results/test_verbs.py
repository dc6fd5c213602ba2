"""The verbs that EDSL's users know: lazy, bounded, and refused in words where they make no sense."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.errors import ExpressionError, InvalidInput
from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.free_text import QuestionFreeText
from headrace.survey.scenario import Scenario
from tests.results import files


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


# --- lists


def test_one_column_is_a_list_and_several_are_tuples(results: Results) -> None:
    assert results.head(3).select("rating").to_list() == [0, 3, 6]
    assert results.head(2).select("mood", "agent.age").to_list() == [("Good", 20), ("Bad", 20)]
    assert results.head(2).select("mood", "rating").to_list(unzipped=True) == [["Good", "Bad"], [0, 3]]
    assert results.head(4).select("mood").to_list(remove_none=True) == ["Good", "Bad", "Good"]


def test_lists_are_flattened_in_their_place(tmp_path: Path) -> None:
    values = [["a", "b"], "c", [], None]
    of = files.job(files.survey("q"), [Agent({"n": n}) for n in range(4)])
    with Results.open(files.write(tmp_path / "l.run", of, lambda n: [values[n]])) as results:
        assert results.select("q").to_list(flatten=True) == ["a", "b", "c", None]
        assert results.select("q").to_list(flatten=True, remove_none=True) == ["a", "b", "c"]
        with pytest.raises(InvalidInput, match="Only one column can be flattened"):
            results.select("q", "agent.n").to_list(flatten=True)


def test_first_is_a_value_of_a_chosen_column_and_else_an_interview(results: Results) -> None:
    assert results.select("mood", "rating").first() == "Good"
    assert results.first().ordinal == 0
    with pytest.raises(IndexError):
        results.filter("rating > 99").select("mood").first()
    with pytest.raises(IndexError):
        results.filter("rating > 99").first()


def test_names_that_collide_keep_their_prefix(tmp_path: Path) -> None:
    of = files.job(files.survey("q"), [Agent({"city": "Lima", "age": 3})], [Scenario(city="Oslo")])
    with Results.open(files.write(tmp_path / "c.run", of, lambda _: ["x"])) as results:
        chosen = results.select("agent.city", "scenario.city", "age")
        expected = {"agent.city": "Lima", "scenario.city": "Oslo", "age": 3}
        assert chosen.to_dicts() == [expected]
        assert chosen.to_dicts(remove_prefix=False)[0].keys() == {"agent.city", "scenario.city", "agent.age"}
        assert list(chosen.to_pandas(remove_prefix=True).columns) == list(expected)
        assert list(chosen.to_pandas().columns) == ["agent.city", "scenario.city", "agent.age"]
        assert [dict(row) for row in chosen.to_scenario_list()] == [expected]
        assert chosen.to_dict() == {"data": [{"agent.city": ["Lima"]}, {"scenario.city": ["Oslo"]}, {"agent.age": [3]}]}


# --- columns


def test_mutate_adds_an_answer_that_later_verbs_know(results: Results) -> None:
    doubled = results.mutate("double = rating * 2").mutate("sum = double + agent.age")
    assert doubled.head(2).select("double", "sum").to_list() == [(0, 20), (6, 26)]
    assert doubled.columns[:4] == ["answer.mood", "answer.rating", "answer.double", "answer.sum"]
    assert len(doubled.filter("double > 10")) == len(results.filter("rating > 5"))
    assert doubled.order_by("sum", reverse=True).first().answer["rating"] == 9
    assert doubled.tally("double", top_n=1).to_dicts() == [{"double": 0, "count": 4}]
    assert results.select("mood").mutate("is_good = mood == 'Good'").head(1).to_dicts() == [
        {"mood": "Good", "is_good": True}
    ]
    assert results.mutate("told = comment.mood_comment + '!'").select("told").first() == "since it rains!"


def test_a_filter_on_a_computed_column_runs_in_sql(results: Results) -> None:
    opened = results.mutate("double = rating * 2").filter("double > 10")._parts[0].opened()
    assert opened.is_counted_in_sql()


@pytest.mark.parametrize(
    ("assignment", "match"),
    [
        ("double", "names no new column"),
        ("= rating", "names no new column"),
        ("a b = rating", "names no new column"),
        ("double == rating", "names no new column"),
        ("rating = rating * 2", "'answer.rating' already"),
        ("age = rating", "'agent.age' already"),
        ("double = ratng * 2", "Did you mean"),
        ("double = __import__('os')", "no function"),
        ("double = rating.__class__", "underscores"),
    ],
)
def test_a_mutation_that_makes_no_sense_is_refused(results: Results, assignment: str, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        results.mutate(assignment)


def test_mutate_takes_its_text_by_edsl_s_name(results: Results) -> None:
    assert results.mutate(new_var_string="double = rating * 2").head(2).select("double").to_list() == [0, 6]


def test_mutate_calls_no_functions_of_the_caller(results: Results) -> None:
    with pytest.raises(InvalidInput, match="to_pandas"):
        results.mutate("long = size(mood)", {"size": len})


def test_rename_gives_a_column_another_name_and_frees_the_old(results: Results) -> None:
    renamed = results.rename("mood", "feeling")
    assert renamed.select("feeling").columns == ["answer.feeling"]
    assert renamed.filter("feeling == 'Good'").head(1).select("answer.feeling").to_list() == ["Good"]
    assert "answer.feeling" in renamed.columns
    with pytest.raises(InvalidInput, match="There is no column 'mood'"):
        renamed.select("mood")
    chosen = results.select("agent.age", "rating", "mood_comment").rename({"agent.age": "years", "mood_comment": "why"})
    assert chosen.columns == ["years", "answer.rating", "why"]
    assert chosen.head(1).to_dicts() == [{"years": 20, "rating": 0, "why": "since it rains"}]
    assert chosen.sort_by("years", reverse=True).first() == 39
    assert chosen.filter("why == 'since it rains' and years == 20").select("years").to_list() == [20, 20]


def test_what_was_written_before_a_rename_keeps_its_meaning(results: Results) -> None:
    swapped = (
        results.mutate("double = rating * 2")
        .filter("rating > 5")
        .rename("rating", "old")
        .rename("mood", "rating")
        .rename("old", "mood")
    )
    assert len(swapped) == len(results.filter("rating > 5"))
    assert set(swapped.select("rating").to_list()) <= {"Good", "Bad", None}
    assert [row["double"] for row in swapped.to_dicts()] == [2 * row["mood"] for row in swapped.to_dicts()]
    assert len(swapped.filter("double == mood * 2")) == len(swapped)


def test_a_rename_onto_another_column_is_refused(results: Results) -> None:
    with pytest.raises(InvalidInput, match=r"'answer.rating' already"):
        results.rename("mood", "rating")
    with pytest.raises(InvalidInput, match=r"'agent.age' already"):
        results.select("mood").rename({"mood": "age"})
    with pytest.raises(InvalidInput, match="Did you mean"):
        results.rename("mod", "x")
    with pytest.raises(InvalidInput, match="two names, or a dict"):
        results.rename("mood")
    assert results.rename("mood", "mood").columns == results.columns


def test_drop_leaves_columns_out(results: Results) -> None:
    assert results.select("answer.*", "age").drop("mood").columns == ["answer.rating", "agent.age"]
    assert "interview.ordinal" not in results.drop("interview.*").columns


# --- rows


def test_order_by_is_sort_by(results: Results) -> None:
    assert ordinals(results.order_by("rating", "age", reverse=True)) == ordinals(
        results.sort_by("rating", "age", reverse=True)
    )


def test_a_shuffle_is_the_same_for_the_same_seed_and_loses_nobody(results: Results) -> None:
    shuffled = ordinals(results.shuffle(seed="edsl"))
    assert shuffled == ordinals(results.shuffle("edsl")) != list(range(40))
    assert sorted(shuffled) == list(range(40))
    assert shuffled != ordinals(results.shuffle(2))
    unseeded = results.shuffle()
    assert ordinals(unseeded) == ordinals(unseeded)


def test_a_sample_is_a_part_of_a_shuffle(results: Results) -> None:
    assert ordinals(results.sample(7, seed=1)) == ordinals(results.shuffle(1))[:7]
    assert len(results.sample(frac=0.25, seed=1)) == 10
    assert len(results.sample(n=99)) == 40
    assert set(results.filter("rating > 5").sample(3, seed=4).select("rating").to_list()) <= {6, 7, 8, 9}
    with pytest.raises(InvalidInput, match="n or frac"):
        results.sample()
    with pytest.raises(InvalidInput, match="once"):
        results.sample(5, with_replacement=True)


def test_head_tail_and_limit_cut_the_view(results: Results) -> None:
    assert ordinals(results.limit(3)) == ordinals(results.head(3)) == [0, 1, 2]
    assert ordinals(results.tail(2)) == [38, 39]
    assert ordinals(results.tail(99)) == list(range(40))
    assert ordinals(results.sort_by("interview.ordinal", reverse=True).tail(2)) == [1, 0]


# --- counting


def test_a_tally_has_the_most_frequent_first_and_equal_ones_as_they_came(results: Results) -> None:
    tally = results.tally("mood")
    assert tally.columns == ["mood", "count"]
    assert list(tally) == [("Good", 17), ("Bad", 17), (None, 6)]
    assert len(tally) == 3
    assert results.tally("mood", top_n=1).to_dicts() == [{"mood": "Good", "count": 17}]
    assert results.select("mood").tally(output="dict") == {"Good": 17, "Bad": 17, None: 6}
    both = results.select("scenario.city", "mood").tally()
    assert both.columns == ["scenario.city", "answer.mood", "count"]
    assert sum(row["count"] for row in both.to_dicts()) == 40
    assert both.to_list()[0] == ("Oslo", "Good", 17)
    assert str(results.tally("mood")).splitlines()[0].split() == ["mood", "count"]


def test_a_tally_counts_the_view(results: Results) -> None:
    assert dict(results.filter("rating > 5").tally("scenario.city").to_list()) == {"Oslo": 8, "Lima": 8}
    assert results.head(3).tally("mood", output="dict") == {"Good": 2, "Bad": 1}
    assert results.filter("len(mood) == 4").tally("mood", output="dict") == {"Good": 17}
    assert results.tally("mood_validated", output="dict") == {True: 34, False: 6}


def test_a_tally_keeps_values_of_any_kind_apart(tmp_path: Path) -> None:
    values = [[1, 2], [1, 2], "1", 1, True, 2**70, None, {"a": 1}]
    of = files.job(files.survey("q"), [Agent({"n": value}) for value in values])
    with Results.open(files.write(tmp_path / "t.run", of, lambda n: [values[n]])) as results:
        for column in ("answer.q", "agent.n"):
            rows = results.tally(column).to_list()
            assert [(repr(value), count) for value, count in rows] == [
                ("[1, 2]", 2), ("'1'", 1), ("1", 1), ("True", 1), (repr(2**70), 1), ("None", 1), ("{'a': 1}", 1),
            ]  # fmt: skip
        assert results.tally("q", output="dict")["[1, 2]"] == 2


def test_a_tally_of_nothing_or_of_something_unknown_is_refused(results: Results) -> None:
    with pytest.raises(InvalidInput, match="Did you mean"):
        results.tally("mod")
    with pytest.raises(InvalidInput, match="nothing to tally"):
        results.drop("*").tally()
    with pytest.raises(InvalidInput, match="no output"):
        results.tally("mood", output="list")  # type: ignore[call-overload]


def test_a_tally_of_many_different_values_holds_few_of_them(tmp_path: Path) -> None:
    agents = (Agent({"n": n}) for n in range(20_000))
    path = files.write(tmp_path / "many.run", files.job(files.survey("q"), agents), lambda n: [f"text {n}"])
    with Results.open(path) as results:
        len(results)
        gc.collect()
        tracemalloc.start()
        try:
            for tally in (results.tally("q"), results.mutate("long = q + '!'").tally("long")):
                assert sum(count for _, count in tally) == 20_000
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 3_000_000


# --- what feeds the next survey


def test_results_become_scenarios_and_agents(results: Results, tmp_path: Path) -> None:
    scenarios = results.select("agent.age", "mood").head(2).to_scenario_list()
    assert [dict(scenario) for scenario in scenarios] == [{"age": 20, "mood": "Good"}, {"age": 20, "mood": "Bad"}]
    agents = results.select("agent_name", "age", "mood").head(2).to_agent_list()
    assert [(agent.name, agent.traits) for agent in agents] == [
        ("p0", {"age": 20, "mood": "Good"}),
        ("p0", {"age": 20, "mood": "Bad"}),
    ]
    asked = QuestionFreeText(question_name="more", question_text="You said {{ scenario.mood }}. Why?")
    second = asked.by(scenarios).by(Model("test", canned_response="so")).run(tmp_path / "second.run")
    assert second.select("scenario.mood", "more").to_list() == [("Good", "so"), ("Bad", "so")]
    second.close()


def test_rows_go_into_the_next_list_without_being_held(tmp_path: Path) -> None:
    agents = (Agent({"n": n}) for n in range(20_000))
    path = files.write(tmp_path / "many.run", files.job(files.survey("q"), agents), lambda n: ["text " * 60])
    with Results.open(path) as results:
        len(results)
        gc.collect()
        tracemalloc.start()
        try:
            made = results.select("q", "agent.n").to_scenario_list()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(made) == 20_000
    assert peak < 8_000_000  # a spool holds 4 MB before it goes to disk


def test_the_names_that_edsls_users_print(results: Results) -> None:
    assert results.question_names == ["mood", "rating"]
    assert results.answer_keys == {"mood": "What of mood?", "rating": "What of rating?"}
    assert results.agent_keys == ["age", "agent_name"]
    assert results.scenario_keys == ["city"]
    assert "model" in results.model_keys
    assert [agent.traits["age"] for agent in results.head(3).agents] == [20, 20, 21]
    assert [scenario["city"] for scenario in results.head(2).scenarios] == ["Oslo", "Lima"]
    assert [model.name for model in results.models] == ["test"]
    assert results.select("mood", "age").relevant_columns() == ["answer.mood", "agent.age"]
    assert results[0]["agent"]["traits"]["age"] == results[0].agent.traits["age"] == results[0].agent["age"] == 20


def test_a_table_is_a_view_that_shows_itself(results: Results) -> None:
    assert repr(results.table("mood", max_rows=2)).splitlines()[2:] == ["Good", "Bad"]
    assert results.table().columns == [
        "answer.mood", "answer.rating", "agent.agent_name", "agent.age", "scenario.city",
    ]  # fmt: skip
    assert results.table("mood", pretty_labels={"answer.mood": "Mood"}).columns == ["Mood"]
    with pytest.raises(InvalidInput, match=r"print\(format='markdown'\)"):
        results.table(tablefmt="markdown")


# --- SQL


def test_bare_names_work_in_sql_where_only_one_column_has_them(results: Results) -> None:
    table = results.sql("select age, city, mood from self where rating > 5 and age < 22 order by age")
    assert table.columns == ["age", "city", "mood"]
    assert table.to_list() == [(21, "Oslo", "Good"), (21, "Lima", None)]
    assert results.sql("select city, count(*) as n from self group by city order by city").to_list() == [
        ("Lima", 20), ("Oslo", 20),
    ]  # fmt: skip
    everything = results.sql("select * from self where age = 20")
    assert "age" in everything.columns
    assert "agent.age" not in everything.columns
    assert results.sql('select age, "agent.age", "answer.mood", mood from self limit 1').to_list() == [
        (20, 20, "Good", "Good")
    ]
    assert results.sql("with t as (select age as years from self) select max(years) from t").first() == 39


def test_an_ambiguous_name_in_sql_lists_the_spellings(tmp_path: Path) -> None:
    of = files.job(files.survey("age"), [Agent({"age": 3, "city": "Lima"})], [Scenario(city="Oslo")])
    with Results.open(files.write(tmp_path / "a.run", of, lambda _: ["x"])) as results:
        with pytest.raises(InvalidInput, match=r'Write "agent.city" or "scenario.city", in double quotes'):
            results.sql("select city from self")
        with pytest.raises(InvalidInput, match=r'Write "answer.age" or "agent.age", in double quotes'):
            results.sql("select age from self")
        assert results.sql('select "answer.age", "agent.age", "scenario.city" from self').to_list() == [
            ("x", 3, "Oslo")
        ]


def test_a_field_with_spaces_is_quoted_in_sql(tmp_path: Path) -> None:
    of = files.job(files.survey("q"), scenarios=[Scenario({"Review Text": "fine"})])
    with Results.open(files.write(tmp_path / "s.run", of, lambda _: ["x"])) as results:
        assert results.sql('select "Review Text" from self').first() == "fine"


# --- several files


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Results, Results]]:
    one = files.job(files.survey("q"), [Agent({"age": age, "job": "cook"}) for age in (20, 40, 30)])
    two = files.job(files.survey("q"), [Agent({"age": age, "town": "Oslo"}) for age in (35, 25)])
    first = Results.open(files.write(tmp_path / "one.run", one, lambda n: [f"a{n}"]))
    second = Results.open(files.write(tmp_path / "two.run", two, lambda n: [f"b{n}"]))
    with first, second:
        yield first, second


def test_two_runs_are_one(two: tuple[Results, Results]) -> None:
    both = two[0] + two[1]
    assert len(both) == 5
    assert [result.answer["q"] for result in both] == ["a0", "a1", "a2", "b0", "b1"]
    assert both.select("age", "job", "town").to_list() == [
        (20, "cook", None), (40, "cook", None), (30, "cook", None), (35, None, "Oslo"), (25, None, "Oslo"),
    ]  # fmt: skip
    assert both.columns[0] == "answer.q"
    assert {"agent.job", "agent.town"} <= set(both.columns)
    assert len(both.to_pandas()) == len(both.to_dicts()) == 5
    assert "b1" in str(both)
    assert both.stats().interviews == 5
    assert list(both.failed()) == []


def test_verbs_work_on_two_runs_as_on_one(two: tuple[Results, Results]) -> None:
    both = two[0] + two[1]
    assert both.order_by("age").select("age").to_list() == [20, 25, 30, 35, 40]
    backwards = both.order_by("age", reverse=True)
    assert backwards.select("age").to_list() == [40, 35, 30, 25, 20]
    assert [result.agent["age"] for result in backwards] == [40, 35, 30, 25, 20]
    assert backwards[1:4].select("age").to_list() == [35, 30, 25]
    assert backwards[1:4].filter("age != 30").select("age").to_list() == [35, 25]
    assert backwards[2].agent["age"] == 30
    assert both[3].answer["q"] == "b0"
    assert both[2:4].select("q").to_list() == ["a2", "b0"]
    assert both.tail(1).select("q").to_list() == ["b1"]
    assert both.filter("age > 25 and town == 'Oslo'").select("q").to_list() == ["b0"]
    assert both.filter("job is None").select("q").to_list() == ["b0", "b1"]
    assert both.mutate("double = age * 2").select("double").to_list() == [40, 80, 60, 70, 50]
    assert both.rename("town", "place").select("place").tally(output="dict") == {None: 3, "Oslo": 2}
    assert sorted(both.shuffle(1).select("age").to_list()) == [20, 25, 30, 35, 40]
    assert both.order_by("town", "age").select("age").to_list() == [20, 30, 40, 25, 35]
    assert len(both + two[0]) == 8
    assert [row["age"] for row in both.select("q", "age").to_scenario_list()] == [20, 40, 30, 35, 25]
    assert both.sql("select q, age, town from self where age > 20 order by age desc limit 2").to_list() == [
        ("a1", 40, None),
        ("b0", 35, "Oslo"),
    ]
    assert both.sql("select count(*) from self").first() == 5
    assert both.filter("age < 35").sort_by("age").sql('select "agent.age" from self').to_list() == [20, 25, 30]
    assert both.sql("select * from self").columns[0] == "q"


def test_chosen_columns_of_two_runs_stay_chosen(two: tuple[Results, Results]) -> None:
    assert (two[0].select("q") + two[1].select("q")).columns == ["answer.q"]


def test_an_error_in_a_filter_has_its_text(results: Results) -> None:
    with pytest.raises(ExpressionError, match="moood == 'x'"):
        results.filter("moood == 'x'")


# --- names that Headrace has too


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Results]:
    """A question `status`, a trait `ordinal` and a scenario's field `iteration`."""
    agents = [Agent({"ordinal": n}) for n in (7, 8)]
    of = files.job(files.survey("status"), agents, [Scenario(iteration="late")])
    with Results.open(files.write(tmp_path / "t.run", of, lambda n: [f"s{n}"])) as opened:
        yield opened


def test_a_question_trait_or_field_comes_before_a_column_of_our_own(taken: Results) -> None:
    names = ("status", "ordinal", "iteration")
    assert taken.select(*names).to_list() == [("s0", 7, "late"), ("s1", 8, "late")]
    assert ordinals(taken.filter("status == 's1' and ordinal == 8 and iteration == 'late'")) == [1]
    assert taken.sort_by("ordinal", reverse=True).select("status").to_list() == ["s1", "s0"]
    assert list(taken.sql("select status, ordinal, iteration from self")) == [("s0", 7, "late"), ("s1", 8, "late")]
    assert list(taken.sql('select "interview.status", "interview.ordinal" from self')) == [("done", 0), ("done", 1)]
    assert taken.select("interview.status").to_list() == ["done", "done"]


def test_without_prefixes_our_own_columns_keep_theirs(taken: Results) -> None:
    row = taken.to_dicts()[0]
    assert (row["status"], row["ordinal"], row["iteration"]) == ("s0", 7, "late")
    assert (row["interview.status"], row["interview.ordinal"], row["iteration.iteration"]) == ("done", 0, 0)
    assert list(taken.to_pandas(remove_prefix=True)["status"]) == ["s0", "s1"]
    assert list(taken.select("interview.status").to_dicts()[0]) == ["status"]


def test_a_new_column_may_have_the_name_of_our_own(results: Results) -> None:
    assert results.mutate("status = rating + 1").select("status").head(2).to_list() == [1, 4]
    assert results.rename("mood", "status").select("status").head(2).to_list() == ["Good", "Bad"]
    assert results.head(1).select("status").to_list() == ["done"]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("mood == Good", "put it in quotes: 'Good'"),
        ("mood.contains('G')", r"Write contains\(mood, 'G'\)\."),
        ("mood.strp() == 'Good'", "Did you mean 'strip'"),
        ("faild", "Did you mean 'failed'"),
        (lambda result: result, "filter takes a condition as text, not function"),
    ],
)
def test_a_filter_that_is_written_otherwise_says_how(results: Results, condition: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        results.filter(condition)
