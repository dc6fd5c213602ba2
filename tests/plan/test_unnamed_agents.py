"""An agent without a name is called by its place in the list, and so in results, texts and rules alike."""

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.errors import SurveyError

MIXED = AgentList([Agent(traits={"a": 1}), Agent(name="B"), Agent(traits={"a": 3})])


def job():
    greeted = QuestionMultipleChoice(
        question_name="greeted", question_text="Hello {{ agent.name }}!", question_options=["{{ agent.name }}", "x"]
    )
    later = QuestionFreeText(question_name="later", question_text="And now?")
    survey = Survey([greeted, later]).add_skip_rule("later", "{{ agent.name }} == 'Agent_2'")
    return survey.by(MIXED).by(Model("test", canned_response="x"))


@pytest.mark.parametrize("workers", [0, 1])
def test_texts_options_rules_and_results_have_one_name_for_an_agent(tmp_path, workers):
    results = job().run(tmp_path / "a.run", workers=workers)
    assert not list(results.failed())
    asked = results.select("agent_name", "prompt.greeted_user_prompt", "later", "greeted_question_options").to_list()
    assert [(name, prompt.partition("!")[0], later) for name, prompt, later, _ in asked] == [
        ("Agent_0", "Hello Agent_0", "x"),
        ("B", "Hello B", "x"),
        ("Agent_2", "Hello Agent_2", None),
    ]
    assert [options for *_, options in asked] == [["Agent_0", "x"], ["B", "x"], ["Agent_2", "x"]]
    shown = [result["question_options"]["greeted_question_options"] for result in results]
    assert shown == [["Agent_0", "x"], ["B", "x"], ["Agent_2", "x"]]


def test_previews_and_conditions_know_it_too(tmp_path):
    shown = job().prompts().select("user_prompt").to_list()
    assert [text.partition("!")[0] for text in shown[::2]] == ["Hello Agent_0", "Hello B", "Hello Agent_2"]
    results = job().where("agent.name == 'Agent_2'").run(tmp_path / "a.run")
    assert results.select("agent_name").to_list() == ["Agent_2"]


def test_names_that_no_agent_has_are_refused_with_the_way_to_give_them():
    agents = AgentList([Agent(traits={"a": 1})])
    with pytest.raises(SurveyError, match=r"no agent has a field 'name'\. Give the agents names"):
        QuestionFreeText(question_name="q", question_text="{{ agent.name }}?").by(agents).by(Model("test")).run()
