"""Lists out of files, data frames and tuples; which column becomes an agent's name."""

from pathlib import Path

import pandas as pd
import pytest

from headrace import Agent, AgentList, Scenario, ScenarioList
from headrace.errors import ListError


def _file(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def _names_and_traits(agents: AgentList) -> list[tuple[object, dict[str, object]]]:
    return [(agent.name, agent.traits) for agent in agents]


def test_a_column_name_is_the_agents_name(tmp_path: Path):
    ada = [("Ada", {"age": 36})]
    path = _file(tmp_path / "people.csv", "name,age\nAda,36\n")
    for people in (AgentList.from_csv(path), AgentList.from_file(path), AgentList.from_source(path)):
        assert _names_and_traits(people) == ada
    assert _names_and_traits(AgentList.from_csv(path).filter("name == 'Ada'")) == ada
    lines = _file(tmp_path / "people.jsonl", '{"name": "Ada", "age": 36}\n')
    for people in (AgentList.from_jsonl(lines), AgentList.from_file(lines), AgentList.from_source(lines)):
        assert _names_and_traits(people) == ada


def test_a_column_agent_name_is_the_name_and_name_a_trait_beside_it(tmp_path: Path):
    path = _file(tmp_path / "people.csv", "agent_name,name\nA-1,Ada\n")
    for people in (AgentList.from_csv(path), AgentList.from_source(path)):
        assert _names_and_traits(people) == [("A-1", {"name": "Ada"})]


def test_name_field_says_which_column_is_the_name(tmp_path: Path):
    path = _file(tmp_path / "people.csv", "Full Name,name\nAda Lovelace,Ada\n")
    named = [("Ada Lovelace", {"name": "Ada"})]
    assert _names_and_traits(AgentList.from_csv(path, name_field="Full Name")) == named
    assert _names_and_traits(AgentList.from_source(path, name_field="Full Name")) == named
    assert _names_and_traits(AgentList.from_pandas(pd.read_csv(path), name_field="Full Name")) == named


def test_a_name_field_that_is_not_there_is_refused(tmp_path: Path):
    path = _file(tmp_path / "people.csv", "who,age\nAda,36\n")
    lines = _file(tmp_path / "people.jsonl", '{"who": "Ada", "age": 36}\n')
    for read, given in ((AgentList.from_csv, path), (AgentList.from_source, path), (AgentList.from_jsonl, lines)):
        with pytest.raises(ListError, match="Did you mean 'who'"):
            read(given, name_field="whom")


def test_a_file_without_names_is_the_list_that_it_was(tmp_path: Path):
    """Its digest names it in run files."""
    for name, text in (("people.csv", "age\n36\n"), ("people.jsonl", '{"age": 36}\n'), ("none.jsonl", "")):
        path = _file(tmp_path / name, text)
        assert AgentList.from_file(path).digest == ScenarioList.from_file(path).digest


def test_lists_are_made_of_data_frames():
    frame = pd.DataFrame({"name": ["Ada", "Bob"], "age": [36, None]})
    assert _names_and_traits(AgentList.from_pandas(frame)) == [("Ada", {"age": 36.0}), ("Bob", {"age": None})]
    assert dict(ScenarioList.from_pandas(frame)[0]) == {"name": "Ada", "age": 36.0}
    with pytest.raises(ListError, match="no data frame"):
        ScenarioList.from_pandas([{"age": 36}])


def test_lists_are_made_of_tuples():
    rows = [("Oslo", 2020), ("Lima", 2025)]
    made = ScenarioList.from_list_of_tuples(["city", "year"], rows, use_indexes=True)
    assert [dict(row) for row in made][1] == {"city": "Lima", "year": 2025, "idx": 1}
    people = AgentList.from_list_of_tuples(["name", "age"], [("Ada", 36)], instructions="Be brief.")
    assert list(people) == [Agent(name="Ada", age=36, instruction="Be brief.")]
    with pytest.raises(ListError, match="Tuple 0 has 2 items for 1 names"):
        ScenarioList.from_list_of_tuples(["city"], rows)


def test_there_are_examples_to_try_things_with():
    assert Agent.example().traits == {"age": 22, "hair": "brown", "height": 5.5}
    assert len(AgentList.example(codebook={"age": "Age in years"})) == len(ScenarioList.example()) == 2
    assert Scenario.example() == Scenario.example()
    assert Scenario.example(randomize=True) != Scenario.example(randomize=True)
