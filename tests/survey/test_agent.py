from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, Results, Scenario, Survey
from headrace.errors import HeadraceWarning, ListError, PlanMismatch, SurveyError
from headrace.survey.people.agent_settings import AgentSettings
from headrace.survey.prompts import persona
from headrace.survey.templates import CannotRender

survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
ada = Agent(
    {"age": 36, "hair": "brown"}, name="ada", instruction="Be brief.", codebook={"age": "Age in years", "hair": "Hair"}
)


def told(agent: Agent) -> str:
    return persona(agent.to_fields(), agent.settings)


def test_traits_are_keyword_arguments_and_attributes():
    agent = Agent(name="ada", age=36, hair="brown")
    assert agent == Agent({"age": 36, "hair": "brown"}, "ada")
    assert (agent.age, agent["hair"], agent["traits"]) == (36, "brown", {"age": 36, "hair": "brown"})
    with pytest.raises(AttributeError, match="neither a trait nor an attribute 'height'"):
        _ = agent.height
    assert not hasattr(agent, "__array__")  # what libraries look for is no trait


def test_a_trait_that_is_called_like_a_method_is_reached_by_its_name_in_brackets():
    agent = Agent({"keep": 1, "name": "Ada"}, name="a")
    assert (agent["keep"], agent["name"], agent.name) == (1, "Ada", "a")
    assert agent.keep("keep").traits == {"keep": 1}


def test_verbs_return_new_agents_and_keep_the_codebook_in_step():
    assert ada.rename("age", "years").codebook == {"years": "Age in years", "hair": "Hair"}
    assert ada.rename({"age": "years"}).traits == {"years": 36, "hair": "brown"}
    assert ada.keep("hair").to_dict() == {"traits": {"hair": "brown"}, "codebook": {"hair": "Hair"}}
    assert ada.select("hair", "name").name == "ada"
    assert ada.drop("hair", "instruction").to_dict() == {
        "traits": {"age": 36}, "name": "ada", "codebook": {"age": "Age in years"}
    }  # fmt: skip
    assert ada.drop(["age", "name"]).name is None
    assert ada.add_trait("city", "Oslo").add_trait({"n": 1}).traits == {
        "age": 36, "hair": "brown", "city": "Oslo", "n": 1
    }  # fmt: skip
    assert ada.remove_trait("age").remove_trait("none").traits == {"hair": "brown"}
    assert ada.update_trait("age", 37).age == 37
    assert Agent(hair=1, x=[1]).translate_traits({"hair": {1: "brown"}, "x": {1: 2}}).traits == {
        "hair": "brown", "x": [1]
    }  # fmt: skip
    assert ada.traits == {"age": 36, "hair": "brown"}
    assert ada.duplicate() == ada.copy() == ada


def test_two_agents_become_one():
    other = Agent({"age": 25, "height": 5.5}, name="bob", codebook={"age": "Age"})
    both = ada + other
    assert both.traits == {"age": 36, "hair": "brown", "age_1": 25, "height": 5.5}
    assert both.codebook == {"age": "Age in years", "hair": "Hair", "age_1": "Age"}
    assert (both.name, both.instruction) == ("ada", "Be brief.")
    assert (both + other).traits["age_2"] == 25
    assert Agent(x=1).add(Agent(x=2), conflict_strategy="repeated_observation").traits == {"x": [1, 2]}
    with pytest.raises(ListError, match="Both agents have the trait 'x'"):
        Agent(x=1).add(Agent(x=2), conflict_strategy="error")
    with pytest.raises(ListError, match="'other' is no conflict_strategy"):
        Agent(x=1).add(Agent(x=2), conflict_strategy="other")  # type: ignore[arg-type]


def test_a_dict_of_an_agent_makes_the_same_agent():
    agent = Agent({"age": 36}, codebook={"age": "Age"}, traits_presentation_template="{{ age }}", name=7)
    assert Agent.from_dict(agent.to_dict()) == Agent.from_dict(agent.to_dict(add_edsl_version=True)) == agent
    assert hash(Agent.from_dict(agent.to_dict())) == hash(agent)
    assert Agent(age=1).to_dict(full_dict=True)["codebook"] == {}
    with pytest.raises(ListError, match=r"no 'trait'.*Did you mean 'traits'"):
        Agent.from_dict({"trait": {}})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Agent([1]), "traits are"),
        (lambda: Agent({"age": 1}, city="Oslo"), r"'city' is given beside traits=.*Put it into traits"),
        (
            lambda: Agent({"age": 1}, instructions="Be brief."),
            r"no parameter 'instructions'. Did you mean 'instruction'",
        ),
        (lambda: Agent(instructions="Be brief."), r"Did you mean 'instruction'.*traits={'instructions': ...}"),
        (lambda: Agent(trait={"age": 1}), "no parameter 'trait'. Did you mean 'traits'"),
        (lambda: Agent(code_book={"age": "Age"}), "Did you mean 'codebook'"),
        (lambda: Agent({"agent_name": "x"}), "cannot be traits"),
        (lambda: Agent(codebook={"age": 1}), "codebook is"),
        (lambda: Agent(traits_presentation_template="{{ a b }}"), "not a valid template"),
        (lambda: Agent(trait_categories={"a": ["b"]}), "takes no trait_categories"),
        (lambda: Agent(answer_question_directly_source_code="x"), "Code is not read out of data"),
        (lambda: ada.rename("agee", "x"), "no field 'agee'. Did you mean 'age'"),
        (lambda: ada.rename("age", "hair"), "'hair' twice"),
        (lambda: ada.rename("age"), "no new name"),
        (ada.keep, "No field is named"),
        (lambda: ada.keep("nam"), "Did you mean 'name'"),
        (lambda: ada.drop("height"), "no field 'height'"),
        (lambda: ada.update_trait("height", 1), "no field 'height'"),
        (lambda: ada.add_trait({"a": 1}, 2), "a dict and a value"),
    ],
)
def test_what_cannot_be_is_refused_in_words(make: Any, message: str):
    with pytest.raises((ListError, SurveyError), match=message):
        make()


def test_the_codebook_says_what_traits_mean():
    assert told(ada) == "Be brief.\n\nAge in years: 36\nHair: brown"
    assert told(Agent(age=36, codebook={"other": "x"})).endswith("\n\nage: 36")


def test_a_template_writes_the_traits():
    template = "I am {{ age }}, my {{ codebook['hair'] }} is {{ traits.hair }}."
    agent = Agent({"age": 36, "hair": "{{ age }}"}, codebook={"hair": "colour"}, traits_presentation_template=template)
    assert told(agent).endswith("I am 36, my colour is {{ age }}.")  # data is never a template
    with pytest.raises(CannotRender):
        told(agent.drop("age"))


def test_a_trait_that_begins_with_an_underscore_is_not_told_to_the_model():
    assert told(Agent(age=36, _id="x")).endswith("\n\nage: 36")


def test_a_list_holds_a_codebook_once():
    agents = AgentList((Agent({"age": n}) for n in range(1000)), codebook={"age": "Age in years"})
    assert agents.settings.entries == (AgentSettings({"age": "Age in years"}),)
    assert b"years" not in b"".join(agents.source.rows())
    assert next(iter(agents)).codebook == {"age": "Age in years"}
    assert agents.digest != AgentList(Agent({"age": n}) for n in range(1000)).digest
    assert agents.digest == AgentList(Agent({"age": n}, codebook={"age": "Age in years"}) for n in range(1000)).digest


def test_agents_of_one_list_may_have_different_settings(tmp_path):
    agents = AgentList([Agent(age=1, codebook={"age": "A"}), Agent(age=2), Agent(age=3, codebook={"age": "A"})])
    assert [agent.codebook for agent in agents] == [{"age": "A"}, {}, {"age": "A"}]
    assert list(agents.source.census.kinds) == ["age"]
    results = survey.by(agents, Model("test", canned_response="x")).run(tmp_path / "a.run")
    assert [result.system_prompt.rpartition("\n")[2] for result in results] == ["A: 1", "age: 2", "A: 3"]
    assert [result.agent for result in results] == [{"age": 1}, {"age": 2}, {"age": 3}]


def test_a_resumed_job_tells_traits_as_the_first_run_did(tmp_path):
    agents = AgentList((Agent(age=n) for n in range(4)), traits_presentation_template="I am {{ age }}.")
    job = survey.by(agents, Model("test", canned_response="x"))
    job.run(tmp_path / "a.run", limit=2)
    again = Job.open(tmp_path / "a.run")
    assert again.identity() == job.identity()
    assert list(again.agents) == list(agents)
    again.run()
    assert all("I am" in result.system_prompt for result in Results.open(tmp_path / "a.run"))
    with pytest.raises(PlanMismatch):
        survey.by(AgentList(Agent(age=n) for n in range(4)), Model("test", canned_response="x")).run(tmp_path / "a.run")


def test_a_list_that_grew_keeps_the_settings_of_its_first_agents(tmp_path):
    def job(count: int, codebook: dict[str, str]) -> Job:
        first = [Agent(age=1, codebook=codebook), Agent(age=2), Agent(age=3, codebook={"age": "C"})]
        return survey.by(AgentList(first[:count]), Model("test", canned_response="x"))

    job(2, {"age": "A"}).run(tmp_path / "a.run")
    with pytest.raises(PlanMismatch, match="codebook"):
        job(3, {"age": "B"}).run(tmp_path / "a.run", extend=True)
    results = job(3, {"age": "A"}).run(tmp_path / "a.run", extend=True)
    assert [result.system_prompt.rpartition("\n")[2] for result in results] == ["A: 1", "age: 2", "C: 3"]


def test_an_agent_that_its_template_does_not_fit_fails_alone(tmp_path):
    agents = AgentList([Agent(age=1), Agent(hair="red")], traits_presentation_template="I am {{ age }}.")
    results = survey.by(agents, Model("test", canned_response="x")).run(tmp_path / "a.run")
    assert [result.answer["q"] for result in results] == ["x", None]
    assert "traits_presentation_template" in results[1].failures[0].message
    mistyped = survey.by(Agent(age=1, traits_presentation_template="I am {{ agee }}."), Model("test"))
    with pytest.raises(SurveyError, match=r"names 'agee'.*Did you mean 'age'"):
        mistyped.run(tmp_path / "b.run")


def test_a_csv_file_of_agents_has_a_codebook_and_instructions(tmp_path):
    (tmp_path / "a.csv").write_text("who,age\nada,36\n")
    (agent,) = AgentList.from_csv(
        tmp_path / "a.csv", name_field="who", codebook={"age": "Age"}, instructions="Be brief."
    )
    assert agent == Agent({"age": 36}, "ada", {"age": "Age"}, "Be brief.")
    (tmp_path / "b.csv").write_text("agent_settings\n1\n")
    with pytest.raises(ListError, match="column 'agent_settings'"):
        AgentList.from_csv(tmp_path / "b.csv")


def test_a_trait_may_have_a_name_that_resembles_a_parameter():
    assert Agent(surname="Lovelace", game="chess", portrait="oil").traits.keys() == {"surname", "game", "portrait"}
    assert Agent(traits={"instructions": "a manual", "trait": 1}).traits["trait"] == 1


def test_a_codebook_that_describes_a_misspelt_trait_is_warned_of_once(tmp_path: Path):
    with pytest.warns(HeadraceWarning, match="describes 'heigth', which is no trait. Did you mean 'height'"):
        Agent({"height": 5.5}, codebook={"heigth": "Height in feet"})
    Agent({"height": 5.5}, codebook={"heigth": "Height in feet"})
    (tmp_path / "people.csv").write_text("income\n1\n", "utf-8")
    with pytest.warns(HeadraceWarning, match="Did you mean 'income'"):
        AgentList.from_csv(tmp_path / "people.csv", codebook={"incme": "Income"})
    with pytest.warns(HeadraceWarning, match="Did you mean 'region'"):
        AgentList([Agent(region="north")], codebook={"regions": "Region"})


def test_a_codebook_may_describe_more_than_an_agent_has():
    agents = [Agent({"q17": 1}, codebook={"q117": "Another question", "city": "City"})]
    assert len(AgentList(agents, codebook={"q117": "Another question", "country": "Country"})) == 1


def test_an_agent_shows_what_a_model_is_told_of_it():
    assert Agent({"age": 36}, codebook={"age": "Age in years"}, instruction="Be brief.").prompt() == (
        "Be brief.\n\nAge in years: 36"
    )
    assert Agent().prompt() == ""


def test_what_edsl_has_and_an_agent_has_not_is_said_in_words():
    for held in (Agent(age=36), Scenario(city="Oslo")):
        with pytest.raises(AttributeError, match=r"is not there in Headrace\. Save a list"):
            _ = held.to_yaml
        with pytest.raises(AttributeError, match="has neither a"):
            _ = held.height
