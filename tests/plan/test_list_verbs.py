import copy
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Job, Model, ModelList, QuestionFreeText, Scenario, ScenarioList, Survey
from headrace.errors import ExpressionError, ListError
from headrace.plan.rows import row_order
from headrace.plan.rows import spool as spool_module
from headrace.plan.rows.spool import Spool

survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
cities = ScenarioList([{"city": "Oslo", "n": 1}, {"city": "Lima", "n": 2}, {"city": "Rome", "n": 3}])
people = AgentList(
    [Agent({"age": 36, "x": 1}, name="ada"), Agent({"age": 27, "x": 2}, name="bob"), Agent({"age": 58}, name="cleo")],
    codebook={"age": "Age in years"},
)


def ns(scenarios: ScenarioList) -> list[Any]:
    return [scenario.get("n") for scenario in scenarios]


def test_a_list_is_indexed_and_sliced_like_a_list():
    assert (cities[0], cities[-1], cities.at(1)) == (
        dict(cities[0]),
        {"city": "Rome", "n": 3},
        {"city": "Lima", "n": 2},
    )
    assert (cities.first()["n"], cities.last()["n"]) == (1, 3)
    assert ns(cities[1:]) == [2, 3]
    assert ns(cities[::-1]) == [3, 2, 1]
    assert ns(cities[::2]) == [1, 3]
    assert ns(cities[-2:-1]) == [2]
    assert isinstance(people[:1], AgentList)
    assert people[1] == Agent({"age": 27, "x": 2}, name="bob", codebook={"age": "Age in years"})
    for index in (3, -4):
        with pytest.raises(IndexError, match="3 scenarios"):
            _ = cities[index]


@pytest.mark.parametrize(
    "slices", [slice(7, 3000, 11), slice(None, None, -7), slice(4999, 10, -100), slice(9000, None)]
)
def test_slices_of_a_long_list_are_those_of_a_list(slices: slice):
    numbers = list(range(5000))
    assert ns(ScenarioList({"n": n} for n in numbers)[slices]) == numbers[slices]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "run file"])
def test_any_source_is_read_from_any_position(tmp_path: Path, kind: str):
    if kind == "csv":
        (tmp_path / "a.csv").write_text("n\n" + "\n".join(map(str, range(50))))
        listed = ScenarioList.from_csv(tmp_path / "a.csv")
    elif kind == "jsonl":
        (tmp_path / "a.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(50)))
        listed = ScenarioList.from_jsonl(tmp_path / "a.jsonl")
    else:
        made = ScenarioList({"n": n} for n in range(50))
        survey.by(made, Model("test", canned_response="x")).run(tmp_path / "a.run", limit=1)
        listed = Job.open(tmp_path / "a.run").scenarios
    assert (listed[30]["n"], listed[-1]["n"], ns(listed[10:40:10])) == (30, 49, [10, 20, 30])
    assert ns(listed.sample(3, seed=1)) == random.Random(1).sample(range(50), 3)
    listed.append(Scenario(n=50))
    assert ns(listed) == list(range(51))


def test_rows_of_any_length_are_found_by_position():
    sizes = [10, 300_000, 0, 5000, 4095, 4096, 4097, *range(100)] * 3
    spool = Spool(({"text": "x" * size} for size in sizes), "scenario")
    for position, size in enumerate(sizes):
        assert len(spool.row(position)) == len('{"text":""}') + size
        assert len(next(spool.rows(position))) == len('{"text":""}') + size


def test_marks_stay_few_however_long_the_list_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spool_module, "_MOST_MARKS", 4096)
    spool = Spool(({"n": n} for n in range(70_000)), "scenario")
    for position in (0, 1, 4095, 4096, 33_333, 69_999):
        assert spool.row(position) == b'{"n":%d}' % position
        assert next(spool.rows(position)) == b'{"n":%d}' % position
    assert len(spool._tape._marks) <= 4096


def test_lists_are_joined_and_crossed():
    more = ScenarioList([{"k": 1}, {"k": 2}])
    assert ns(cities + cities[:1]) == [1, 2, 3, 1]
    assert ns(cities + Scenario(n=4)) == [1, 2, 3, 4]
    crossed = cities * more
    assert len(crossed) == 6
    assert list(crossed)[:2] == [{"city": "Oslo", "n": 1, "k": 1}, {"city": "Oslo", "n": 1, "k": 2}]
    assert list(Scenario(a=1) * more) == list(more * Scenario(a=1)) == [{"k": 1, "a": 1}, {"k": 2, "a": 1}]
    assert list(Scenario(a=1) * Scenario(b=2)) == [{"a": 1, "b": 2}]
    assert list(ScenarioList([{"a": 1}]) * ScenarioList([{"a": 2}])) == [{"a": 2}]
    both = people * AgentList([Agent({"age": 1, "job": "cook"})])
    assert both[0].traits == {"age": 36, "x": 1, "age_1": 1, "job": "cook"}
    assert (both[0].name, both[0].codebook) == ("ada", {"age": "Age in years"})
    assert len(people + people) == 6
    for other in (people, 3, None):
        with pytest.raises(ListError, match="do not go together"):
            _ = cities + other


def test_a_derived_list_has_the_same_identity_in_every_program():
    def job() -> Job:
        agents = AgentList((Agent({"age": n}) for n in range(20)), codebook={"age": "Age"}).sample(5, seed=1)
        scenarios = (ScenarioList.from_list("a", [1, 2, 3]) * ScenarioList.from_list("b", [1, 2]))[1:5]
        return survey.by(agents, scenarios, Model("test"))

    assert job().identity() == job().identity()
    by_hand = ScenarioList([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 1}])
    assert job().scenarios.digest == by_hand.digest


def test_fields_are_renamed_kept_and_dropped():
    assert ScenarioList.from_list("a", [1]).rename({"a": "b"})[0] == {"b": 1}
    assert people.rename("age", "years").codebook == {"years": "Age in years"}
    assert people.rename("x", "y")[2].traits == {"age": 58}  # which has no x
    assert cities.keep("n")[0] == cities.select("n")[0] == cities.drop("city")[0] == cities.keep(["n"])[0] == {"n": 1}
    assert people.select("age").names == [None] * 3  # EDSL's way: a name is kept where it is named
    assert people.keep("age", "name").names == ["ada", "bob", "cleo"]
    assert people.drop("x")[0].to_dict() == {"traits": {"age": 36}, "name": "ada", "codebook": {"age": "Age in years"}}
    assert people.drop("codebook").codebook == {}


def test_a_filter_takes_either_spelling():
    assert ns(cities.filter("n > 1 and city != 'Rome'")) == [2]
    assert ns(cities.filter("{{ n }} > 1")) == ns(cities.filter("scenario.n > 1")) == [2, 3]
    assert people.filter("agent.age > 30").names == ["ada", "cleo"]
    assert people.filter("name == 'bob'").names == ["bob"]
    assert people.filter("x is None").names == ["cleo"]
    assert len(cities.filter("n > 9")) == 0
    nested = ScenarioList([{"a.b": 1, "c": {"d": 2}}, {"a.b": 2, "c": 3}])
    assert len(nested.filter("a.b == 1 and c.d == 2")) == 1
    assert len(ScenarioList([{"Review Text": "good"}]).filter("scenario['Review Text'] == 'good'")) == 1


def test_a_field_is_computed():
    assert [scenario["double"] for scenario in cities.mutate("double = n * 2")] == [2, 4, 6]
    assert cities.mutate("n = n + 1").to_list() == [("Oslo", 2), ("Lima", 3), ("Rome", 4)]
    assert [agent.traits["old"] for agent in people.mutate("old = age >= 36")] == [True, False, True]
    assert people.mutate("old = age > 1").names == ["ada", "bob", "cleo"]


def test_samples_and_shuffles_are_those_of_random():
    numbers = ScenarioList.from_list("n", range(100))
    expected = list(range(100))
    random.Random("42").shuffle(expected)
    assert ns(numbers.shuffle(seed="42")) == expected
    assert ns(numbers) == list(range(100))
    assert ns(numbers.sample(7, seed="42")) == random.Random("42").sample(range(100), 7)
    assert ns(numbers.sample(7, seed=0)) == ns(numbers.sample(7, seed=0))
    random.seed(5)
    first = ns(numbers.sample(5))
    assert first != ns(numbers.sample(5))
    random.seed(5)
    assert ns(numbers.sample(5)) == first
    left, right = numbers.split(0.3, seed=1)
    assert (len(left), len(right)) == (30, 70)
    assert sorted(ns(left) + ns(right)) == list(range(100))


def test_positions_of_a_long_list_lie_in_a_file(monkeypatch: pytest.MonkeyPatch):
    in_ram = list(row_order.shuffled(1000, 1))
    monkeypatch.setattr(row_order, "_MOST_IN_RAM", 10)
    assert list(row_order.shuffled(1000, 1)) == in_ram
    assert list(row_order.sampled(1000, 5, 1, "agent")) == in_ram[:5]
    assert ns(ScenarioList({"n": n} for n in range(1000)).shuffle(1)) == in_ram


def test_a_list_is_sorted(monkeypatch: pytest.MonkeyPatch):
    values = [3, None, "b", 1.5, "a", True, float("nan"), [1], 2]
    ordered = ScenarioList.from_list("v", values).order_by("v").to_list()
    assert repr(ordered) == repr([None, float("nan"), True, 1.5, 2, 3, "a", "b", [1]])
    assert cities.order_by("city").to_list() == [("Lima", 2), ("Oslo", 1), ("Rome", 3)]
    assert ns(cities.order_by("n", reverse=True)) == [3, 2, 1]
    monkeypatch.setattr(row_order, "_SORTED_TOGETHER", 10)
    monkeypatch.setattr(row_order, "_MERGED_TOGETHER", 4)
    rows = [{"k": n * 7 % 13, "n": n} for n in range(1000)]
    for reverse in (False, True):
        expected = sorted(rows, key=lambda row: row["k"], reverse=reverse)
        assert list(ScenarioList(rows).order_by("k", reverse=reverse)) == expected


def test_lists_in_a_field_become_rows():
    listed = ScenarioList([{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3]}, {"a": 3, "b": "text"}])
    assert listed.expand("b").to_list() == [(1, 1), (1, 2), (2, 3), (3, "text")]
    assert listed.expand("b", number_field=True)[1] == {"a": 1, "b": 2, "b_number": 2}
    paired = ScenarioList([{"a": [1, 2], "b": ["x", "y"]}])
    assert paired.expand("a", "b").to_list() == [(1, "x"), (2, "y")]
    with pytest.raises(ListError, match="'a' has 2, 'b' has 1 items"):
        len(ScenarioList([{"a": [1, 2], "b": [1]}]).expand("a", "b"))
    assert AgentList([Agent({"a": [1, 2]}, name="x")]).expand("a").names == ["x", "x"]


def test_a_list_grows_by_addition_without_being_copied(monkeypatch: pytest.MonkeyPatch):
    listed, agents = ScenarioList([{"n": 0}]), AgentList([Agent({"n": 0})])
    with monkeypatch.context() as patched:
        patched.setattr(Spool, "_copy", None)
        for n in range(1, 300):
            listed, agents = listed + Scenario(n=n), agents + Agent({"n": n})
    assert ns(listed) == [agent.traits["n"] for agent in agents] == list(range(300))
    assert listed.digest == ScenarioList({"n": n} for n in range(300)).digest
    one, two = cities + Scenario(n=4), cities + Scenario(n=5)
    assert (ns(one), ns(two), ns(cities)) == ([1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3])


def test_added_agents_keep_their_own_codebooks():
    plain = AgentList([Agent({"age": 1}), Agent({"age": 2})]).filter("age > 1")
    shared = AgentList([Agent({"age": 3})], codebook={"age": "Years"})
    other = Agent({"age": 4}, codebook={"age": "Age"})
    for made in (plain + shared + other, plain + (shared + other)):
        assert [dict(agent.codebook) for agent in made] == [{}, {"age": "Years"}, {"age": "Age"}]
    assert [dict(agent.codebook) for agent in shared + plain] == [{"age": "Years"}, {}]
    plain.append(other)
    assert [dict(agent.codebook) for agent in plain] == [{}, {"age": "Age"}]


def test_appending_does_not_change_what_was_taken_before():
    listed = ScenarioList()
    listed.append(Scenario(n=1))
    job = survey.by(listed, Model("test"))
    other = listed.duplicate()
    listed.append(Scenario(n=2))
    other.append(Scenario(n=3))
    listed.extend([Scenario(n=4)])
    assert (ns(listed), ns(other), ns(job.scenarios)) == ([1, 2, 4], [1, 3], [1])
    assert listed.digest == ScenarioList([{"n": 1}, {"n": 2}, {"n": 4}]).digest
    agents = AgentList()
    agents.append(Agent(age=1, codebook={"age": "A"}))
    before, digest = agents.duplicate(), agents.digest
    agents.append(Agent(age=2))
    assert [agent.codebook for agent in agents] == [{"age": "A"}, {}]
    assert (before.digest, len(before), len(before.settings.entries)) == (digest, 1, 1)
    assert agents.digest == AgentList([Agent(age=1, codebook={"age": "A"}), Agent(age=2)]).digest
    with pytest.raises(ListError, match="agent 2 of the list is a Scenario"):
        agents.append(Scenario())  # type: ignore[arg-type]
    assert len(agents) == 2


def test_agents_get_names_instructions_traits_and_wording():
    agents = AgentList([Agent(a=1, b="x"), Agent(a=2, b="y")])
    assert agents.with_names("a", "b").names == ["1,x", "2,y"]
    assert agents.with_names("a", remove_traits=False)[0].traits == {"a": 1, "b": "x"}
    agents.give_names("b")
    agents.set_instruction("Be brief.")
    agents.set_codebook({"a": "A"})
    agents.set_traits_presentation_template("{{ a }}")
    assert agents[1] == Agent({"a": 2}, "y", {"a": "A"}, "Be brief.", traits_presentation_template="{{ a }}")
    assert agents.add_trait("c", [5, 6]).add_trait("d", 7)[1].traits == {"a": 2, "c": 6, "d": 7}
    assert agents.remove_trait("a")[0].traits == {}
    assert agents.translate_traits({"a": {1: "one"}})[0].traits == {"a": "one"}
    assert agents.trait_keys == agents.all_traits == ["a"]
    with pytest.raises(ListError, match="has a name"):
        agents.with_names("a")
    with pytest.raises(ListError, match="fewer values than rows"):
        agents.add_trait("c", [1])
    with pytest.raises(ListError, match="different codebooks"):
        _ = AgentList([Agent(a=1, codebook={"a": "A"}), Agent(a=2)]).codebook


def test_scenarios_have_edsl_s_verbs_for_fields():
    listed = ScenarioList([{"a": 1, "t": [1, 2], "d": {"k": "v"}}])
    assert listed.add_value("z", 3)[0]["z"] == listed.add_list("z", [3])[0]["z"] == 3
    assert listed.transform("a", str)[0]["a"] == listed.apply(str, "a", "b")[0]["b"] == "1"
    assert "a" not in listed.apply(str, "a", "b", replace=True)[0]
    assert listed.unpack("t")[0]["t_1"] == 2
    assert listed.unpack_dict("d", prefix="p_", drop_field=True)[0] == {"a": 1, "t": [1, 2], "p_k": "v"}
    assert ScenarioList([{"a": 1, "b": "x", "c": 2}]).concatenate(["a", "b"])[0] == {"c": 2, "concat_a_b": "1;x"}
    assert ScenarioList([{"a": 1, "b": "x"}]).concatenate_to_list(["a", "b"], new_field_name="l")[0] == {"l": [1, "x"]}
    assert ScenarioList([{"a": None, "b": "nan", "c": 1}]).fillna(0)[0] == {"a": 0, "b": 0, "c": 1}
    assert len(ScenarioList([{"a": None}, {"a": 1}]).filter_na()) == 1
    assert ScenarioList([{"a": "1", "b": "1.5", "c": "x"}]).numberify()[0] == {"a": 1, "b": 1.5, "c": "x"}
    assert ScenarioList([{"a": 1, "b": "1"}]).replace_values({"1": "one"})[0] == {"a": "one", "b": "one"}
    assert ScenarioList([{"a": 1, "b": 2}]).replace_names(["x", "y"])[0] == {"x": 1, "y": 2}
    assert ScenarioList([{"id": 1, "a": 2, "b": 3}]).unpivot(["id"]).to_list() == [(1, "a", 2), (1, "b", 3)]
    assert ScenarioList.from_nested_dict({"a": [1, 2], "b": [3, 4]}).to_list() == [(1, 3), (2, 4)]
    assert ScenarioList.from_list("x", ["a", "b"], use_indexes=True)[1] == {"x": "b", "idx": 1}
    assert (listed.parameters, listed.to_scenario_list()) == ({"a", "t", "d"}, listed)


def test_lists_become_dicts_and_lists():
    assert cities.to_dicts() == [dict(city) for city in cities]
    assert people.to_dicts()[2] == {"age": 58, "x": None}
    assert (cities.select("n").to_list(), people.select("x").to_list(remove_none=True)) == ([1, 2, 3], [1, 2])
    assert ScenarioList([{"b": [1, 2]}, {"b": 3}]).to_list(flatten=True) == [1, 2, 3]
    for listed in (cities, people):
        assert type(listed).from_dict(listed.to_dict()) == listed
        assert type(listed).from_dict(listed.to_dict(add_edsl_version=True)) == listed
    assert people.to_dict()["codebook"] == {"age": "Age in years"}  # once, and not with every agent
    assert people.to_dict()["agent_list"][0] == {"traits": {"age": 36, "x": 1}, "name": "ada"}
    mixed = AgentList([Agent(a=1, codebook={"a": "A"}), Agent(a=2)])
    assert AgentList.from_dict(mixed.to_dict()) == mixed
    assert people.to_scenario_list()[0] == {"age": 36, "x": 1}
    assert ScenarioList([{"name": "ada", "age": 1}]).to_agent_list()[0] == Agent({"age": 1}, name="ada")
    with pytest.raises(ListError, match="no list 'agent_list'"):
        AgentList.from_dict({"scenarios": []})


def test_models_are_indexed_joined_and_filtered():
    models = ModelList([Model("test"), Model("gpt-4o", temperature=0.5)])
    assert models[1].name == "gpt-4o"
    assert isinstance(models[:1], ModelList)
    assert len(models + models) == len(models + ModelList([Model("test")]) + Model("test")) == 4
    assert [m.name for m in models.filter("service_name == 'test' or temperature > 0.4")] == ["test", "gpt-4o"]
    assert models.filter("model_name == 'gpt-4o'").names == {"gpt-4o"}
    assert ModelList.from_names("test", "gpt-4o", temperature=1)[0].parameters == {"temperature": 1}
    assert len(ModelList()) == 0


def test_one_scenario_has_the_verbs_too():
    scenario = Scenario({"a": 1, "b": [2]})
    assert scenario.rename("a", "x") == scenario.rename({"a": "x"}) == {"x": 1, "b": [2]}
    assert scenario.keep("a") == scenario.select(["a"]) == scenario.drop("b") == {"a": 1}
    assert scenario + Scenario(a=3, c=4) == {"a": 3, "b": [2], "c": 4}
    copied = scenario.copy()
    copied["b"].append(3)
    assert (scenario, type(copied)) == ({"a": 1, "b": [2]}, Scenario)
    assert Scenario.from_dict(scenario.to_dict(add_edsl_version=True)) == scenario
    assert (scenario.a, Scenario(items=1)["items"]) == (1, 1)
    assert len(scenario.replicate(3)) == 3
    assert not hasattr(scenario, "c")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Scenario(3), "cannot be made of 3"),
        (lambda: Scenario(a=1).rename("b", "c"), "no field 'b'"),
        (lambda: Scenario(a=1, b=2).rename("a", "b"), "'b' twice"),
        (lambda: Scenario(a=1).keep("b"), "no field 'b'"),
        (lambda: Scenario(a=1).drop(3), "not the name of a field"),
        (lambda: cities.rename("citty", "x"), "No scenario of the list has a field 'citty'. Did you mean 'city'"),
        (lambda: cities.rename("city", "n"), "'n' twice"),
        (lambda: cities.keep("m"), "field 'm'"),
        (lambda: people.drop("nam"), "Did you mean 'name'"),
        (lambda: cities.filter("citty == 'x'"), "field 'citty'. In: citty == 'x' Did you mean 'city'"),
        (lambda: cities.filter("n >"), "Not a valid expression"),
        (lambda: cities.filter(lambda s: True), "not an expression"),
        (lambda: cities.mutate("n * 2"), "names no new field"),
        (lambda: cities.mutate("a b = n"), "cannot be the name"),
        (lambda: cities.mutate("a == n"), "names no new field"),
        (lambda: cities.sample(4), "A sample of 4 cannot be drawn from 3 scenarios"),
        (lambda: cities.sample(-1), "cannot be drawn"),
        (lambda: cities.split(2), "cannot be split at 2"),
        (lambda: cities.order_by("m"), "field 'm'"),
        (cities.expand, "No field is named"),
        (lambda: cities.add_list("x", [1]), "fewer values than rows"),
        (lambda: cities.add_list("x", [1] * 4), "fewer rows than values"),
        (lambda: cities.concatenate("city"), "is one field"),
        (lambda: cities.unpack_dict("n"), "which is no dict"),
        (lambda: cities.unpack("n", ["a", "b"]), "no list of 2 items"),
        (lambda: cities.replace_names(["a"]), "1 names are given for 2 fields"),
        (lambda: cities.to_list(flatten=True), "has 2 fields"),
        (lambda: ScenarioList.from_nested_dict({"a": [1], "b": []}), "differ in length"),
        (lambda: AgentList([Agent(), Scenario()]), "agent 1 of the list is a Scenario"),
        (lambda: AgentList([Agent(x=object())]), "agent 0: 'x' holds a object"),
        (lambda: AgentList("agents"), "cannot be made of 'agents'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(act: Any, message: str):
    with pytest.raises((ListError, ExpressionError), match=message):
        list(act())  # what depends on rows is found when they are read


_VERBS = """
import resource, sys
from headrace import Agent, AgentList, ScenarioList
count = int(sys.argv[1])
rows = ({"n": n, "k": n * 7919 % count, "text": "some words in a field"} for n in range(count))
listed = ScenarioList(rows).filter("n != 5").shuffle(seed=1).order_by("k")
assert len(listed) == count - 1 and listed[-1]["k"] == count - 1 and len(listed[-10:]) == 10
agents = AgentList((Agent({"age": n}) for n in range(count)), codebook={"age": "Age"}).sample(1000, seed=1)
assert len(agents) == 1000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_verbs_over_a_long_list_take_no_memory():
    def peak_kb(count: int) -> int:
        command = [sys.executable, "-c", _VERBS, str(count)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)

    # 40,000 rows fill what a spool may hold in RAM; 200 bytes for each of the others are less than a row takes.
    assert peak_kb(100_000) < peak_kb(40_000) + 12_000


def test_a_source_is_read_by_its_kind_or_by_what_it_is(tmp_path: Path):
    import pandas as pd

    path = tmp_path / "a.csv"
    path.write_text("Who is it,Age\nada,36\n")
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1}\n')
    for args in (("csv", path), (path,), (str(path),)):
        assert ScenarioList.from_source(*args)[0] == {"who_is_it": "ada", "age": 36}
    assert ScenarioList.from_source("csv", path, snakify=False)[0] == {"Who is it": "ada", "Age": 36}
    assert AgentList.from_source(path, name_field="who_is_it", instructions="Be brief.", codebook={"age": "Age"})[
        0
    ] == (Agent({"age": 36}, "ada", {"age": "Age"}, "Be brief."))
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert list(ScenarioList.from_source(frame)) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert ScenarioList.from_source("list", "a", [1], use_indexes=True)[0] == {"a": 1, "idx": 0}
    assert ScenarioList.from_source([1])[0] == {"value": 1}
    assert ScenarioList.from_source([(1, 2)], field_names=["a", "b"])[0] == {"a": 1, "b": 2}
    assert ScenarioList.from_source([{"a": 1}])[0] == ScenarioList.from_source(lines)[0] == {"a": 1}
    assert ScenarioList.from_source({"a": [1, 2]})[1] == {"a": 2}
    assert ScenarioList.from_source({"k": {"a": 1}}, id_field="id")[0] == {"a": 1, "id": "k"}
    assert ScenarioList.from_source(cities.to_dict()) == cities
    assert ScenarioList([{"a b": 1, "A b": 2, "1": 3, "class": 4}]).snakify()[0] == {
        "a_b_1": 1, "a_b": 2, "_1": 3, "class_": 4
    }  # fmt: skip
    for given, message in [
        (("dta", "a.dta"), "Read it with pandas"),
        (("pdf", "a.pdf"), "Read it into a list of dicts first"),
        (("cvs", "a.csv"), "Did you mean 'csv'"),
        (("list", "a"), "Check its arguments"),
        ((3,), "cannot tell what 3 is"),
        (({"a": [1], "b": 2},), "not lists of one length"),
        (([(1, 2)],), "Give field_names"),
    ]:
        with pytest.raises(ListError, match=message):
            ScenarioList.from_source(*given)


def test_what_a_loop_changes_in_its_items_changes_the_list():
    agents = AgentList((Agent({"age": n, "tags": []}) for n in range(5)), codebook={"age": "Age"})
    job = survey.by(agents, Model("test"))
    for number, agent in enumerate(agents):
        if number == 1:
            agent.name = "one"
            agent.traits["tags"].append("x")
        if number == 2:
            agent.codebook = {}
        if number == 3:
            agent.add_direct_question_answering_method(lambda self, question, scenario: "y")
            break
    assert agents.names == [None, "one", None, None, None]
    assert [agent.traits["tags"] for agent in agents] == [[], ["x"], [], [], []]
    assert [agent.codebook for agent in agents] == [{"age": "Age"}, {"age": "Age"}, {}, {"age": "Age"}, {"age": "Age"}]
    assert [hasattr(agent, "answer_question_directly") for agent in agents] == [False, False, False, True, False]
    for agent in agents:
        agent.codebook["age"] = "Years"
        agent.functions.clear()
    assert agents.codebook == {"age": "Years"}
    assert not agents.settings.entries[0].functions
    assert job.agents.names == [None] * 5  # a job has the list as it was
    scenarios = ScenarioList.from_list("n", [1, 2, 3])
    for scenario in scenarios:
        scenario["double"] = scenario["n"] * 2
    assert scenarios.to_list() == [(1, 2), (2, 4), (3, 6)]
    assert scenarios.digest == ScenarioList({"n": n, "double": 2 * n} for n in (1, 2, 3)).digest


def test_a_loop_that_changes_nothing_leaves_the_list_alone():
    scenarios = ScenarioList([{"n": float("nan"), "t": (1, 2)}, {"n": 2}])
    source = scenarios.source
    assert len(list(scenarios)) == len([scenario for scenario in scenarios if scenario["n"] == 2]) + 1
    assert scenarios.source is source
    scenarios[0]["n"] = 5  # an item that is taken out is a copy
    assert scenarios.source is source


def test_a_deep_copy_is_a_list_of_its_own():
    rows = ScenarioList([{"a": 1}])
    other = copy.deepcopy({"rows": rows})["rows"]
    other.append(Scenario({"a": 2}))
    rows.append(Scenario({"a": 3}))
    assert [row["a"] for row in other] == [1, 2]
    assert [row["a"] for row in rows] == [1, 3]


def test_a_list_is_not_pickled_and_says_what_to_do():
    for rows in (ScenarioList([{"a": 1}]), ScenarioList([{"a": 1}]).filter("a > 0"), AgentList([Agent(a=1)])):
        with pytest.raises(ListError, match=r"is not pickled.*save\("):
            pickle.dumps(rows)
        assert len(copy.copy(rows)) == 1
