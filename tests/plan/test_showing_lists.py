"""Lists can be looked at in a terminal, and exported as results are."""

from pathlib import Path

import pytest

from headrace import Agent, AgentList, Model, ModelList, ScenarioList
from headrace.errors import ListError, OptionError


def _people() -> AgentList:
    return AgentList([Agent(name="Ada", age=36, instruction="Be brief."), Agent(name="Bob", age=20, city="Lima")])


def test_a_list_prints_as_a_table_of_its_first_rows():
    shown = str(ScenarioList.from_list("number", range(100_000))).splitlines()
    assert shown[0] == "number"
    assert shown[2:4] == ["0", "1"]
    assert len(shown) == 23
    assert shown[-1] == "and 99,980 more"


def test_agents_are_shown_with_their_names_first_and_their_instructions_last(capsys: pytest.CaptureFixture[str]):
    _people().print()
    head, _, ada, bob = capsys.readouterr().out.splitlines()
    assert head.split() == ["agent_name", "age", "city", "agent_instruction"]
    assert ada.split() == ["Ada", "36", "Be", "brief."]
    assert bob.split() == ["Bob", "20", "Lima"]


def test_many_fields_are_not_all_shown_unless_they_are_chosen():
    wide = ScenarioList([{f"field_{number}": number for number in range(40)}])
    assert str(wide).splitlines()[-1] == "30 of 40 columns"
    assert str(wide.table("field_39", pretty_labels={"field_39": "Last"})).split() == ["Last", "────", "39"]
    assert len(wide.to_pandas().columns) == 40


def test_a_table_of_a_field_that_no_item_has_is_refused():
    with pytest.raises(ListError, match="Did you mean 'city'"):
        _people().table("ctiy")
    with pytest.raises(ListError, match="format='latex'"):
        _people().table(tablefmt="latex")


def test_an_empty_list_says_so():
    assert str(AgentList()).endswith("0 agents")
    assert str(ScenarioList([{}])).endswith("1 scenario")


def test_a_long_text_does_not_take_the_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = str(ScenarioList([{"text": "word " * 10_000, "number": 1}])).splitlines()
    assert len(shown) == 3
    assert max(map(len, shown)) <= 60


def test_an_escape_sequence_in_a_field_does_not_steer_the_terminal():
    assert "\x1b" not in str(ScenarioList([{"text": "\x1b[31mred"}]))


def test_a_list_becomes_a_data_frame():
    frame = _people().to_pandas()
    assert list(frame.columns) == ["agent_name", "age", "city", "agent_instruction"]
    assert frame["age"].tolist() == [36, 20]
    assert frame["agent_name"].tolist() == ["Ada", "Bob"]


def test_a_list_is_written_as_csv_and_as_json_lines_and_read_again(tmp_path: Path):
    cities = ScenarioList([{"city": "Oslo", "people": 700_000}, {"city": "Lima; Peru", "people": 10_000_000}])
    assert ScenarioList.from_csv(cities.to_csv(tmp_path / "cities.csv")) == cities
    assert ScenarioList.from_jsonl(cities.to_jsonl(tmp_path / "cities.jsonl")) == cities
    named = AgentList([Agent(name="Ada", age=36), Agent(name="Bob", age=20)])
    assert AgentList.from_csv(named.to_csv(tmp_path / "people.csv")) == named


def test_a_list_does_not_replace_the_file_it_is_read_from(tmp_path: Path):
    path = tmp_path / "cities.csv"
    path.write_text("city\nOslo\n", "utf-8")
    with pytest.raises(OptionError, match="another path"):
        ScenarioList.from_csv(path).to_csv(path)
    assert path.read_text("utf-8") == "city\nOslo\n"


def test_models_are_shown_a_line_each(tmp_path: Path):
    models = ModelList([Model("gpt-4o", temperature=0.5), Model("test")])
    head, _, first, second = str(models).splitlines()
    assert head.split() == ["model", "service", "temperature"]
    assert first.split() == ["gpt-4o", "openai", "0.5"]
    assert second.split() == ["test", "test"]
    assert repr(models) == "ModelList(2 models)"
    assert list(models.to_pandas()["model"]) == ["gpt-4o", "test"]
    assert models.to_csv(tmp_path / "models.csv").read_text("utf-8").startswith("model,service,temperature\n")


def test_a_function_of_a_model_is_shown_by_its_name():
    async def answer(_: object) -> str:
        return "yes"

    assert "<function" in str(ModelList([Model.from_function(answer)]))


def test_the_services_are_shown_a_line_each():
    assert "\nopenai\n" in str(Model.services())
