"""Verbs of lists read nothing before rows are asked for, and then no further than they must."""

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import ListError
from headrace.plan.rows.derived import DerivedRows
from headrace.plan.sources.csv_file import CsvSource


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("n,city\n" + "".join(f"{n},{'Oslo' if n % 2 else 'Lima'}\n" for n in range(5_000)))
    return ScenarioList.from_csv(path)


@pytest.fixture
def rows_read(monkeypatch):
    """How many rows were read from files."""
    count, fields = [0], CsvSource.fields

    def counted(source, first=0):
        for row in fields(source, first):
            count[0] += 1
            yield row

    monkeypatch.setattr(CsvSource, "fields", counted)
    return lambda: count[0]


def test_verbs_upon_verbs_read_as_far_as_is_asked(people, rows_read):
    chosen = (
        people.filter("city == 'Oslo'").rename("n", "number").mutate("double = number * 2").keep("double", "city")
        .unpivot(["city"]).order_by("value")
    )  # fmt: skip
    first = people.filter("n > 10").drop("city").head(3)
    assert rows_read() == 0
    assert first.to_list() == [11, 12, 13]
    assert rows_read() <= 600
    assert len(chosen) == 2_500
    assert rows_read() <= 5_600


def test_joins_and_unique_give_what_they_have_before_the_list_is_read(people, rows_read):
    lands = ScenarioList([{"city": "Oslo", "land": "Norway"}])
    for made in (people.left_join(lands, by="city"), people.inner_join(lands, by="city"), people.unique()):
        before = rows_read()
        assert len(made.head(3).to_dicts()) == 3
        assert rows_read() - before < 5_000


def test_what_needs_all_rows_takes_one_pass(people, rows_read):
    chosen = people.filter("n >= 100")
    assert len(chosen) == 4_900
    assert chosen[7]["n"] == 107
    assert chosen.digest == ScenarioList(chosen.to_dicts()).digest
    assert chosen.sample(3, seed=1) == chosen.sample(3, seed=1)
    assert rows_read() == 5_000


def test_a_list_that_grows_later_leaves_what_was_made_of_it(people):
    listed = ScenarioList(people)
    chosen = listed.filter("n >= 4_998")
    listed.append({"n": 9_999, "city": "Rome"})
    assert [row["n"] for row in chosen] == [4_998, 4_999]


def test_many_verbs_in_a_row(people):
    chosen = people
    for _ in range(300):
        chosen = chosen.head(100)
    assert len(chosen.mutate("m = n + 1").filter("m > 50")) == 50


def test_agents_with_a_codebook_of_their_own_keep_it():
    ages = {"age": "Age in years"}
    agents = AgentList([Agent({"age": age}, codebook=ages if age > 30 else None) for age in range(20, 40)])
    assert [dict(agent.codebook) for agent in agents.filter("age in [25, 35]")] == [{}, ages]
    plain = AgentList([Agent({"age": age}, name=f"a{age}") for age in range(20, 40)])
    assert isinstance(plain.filter("age > 30").source, DerivedRows)
    assert plain.filter("age == 31")[0].name == "a31"


def test_a_run_of_a_derived_list_is_that_of_its_rows(people, tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="What of {{ scenario.n }}?")])
    chosen = people.filter("n < 20").rename("city", "town")
    model = Model("test", canned_response="Fine.")
    assert len(survey.by(chosen).by(model).run(tmp_path / "a.run")) == 20
    again = survey.by(ScenarioList(chosen.to_dicts())).by(model)  # or the file would refuse it
    assert len(again.run(tmp_path / "a.run")) == 20


def test_an_error_in_a_row_comes_when_it_is_read(tmp_path):
    listed = ScenarioList([{"a": [1, 2], "b": [1, 2]}, {"a": [1, 2], "b": [1]}]).expand("a", "b")
    assert listed.head(2).to_list() == [(1, 1), (2, 2)]
    with pytest.raises(ListError, match="Row 1 cannot be expanded"):
        len(listed)
