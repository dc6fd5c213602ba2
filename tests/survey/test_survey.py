from dataclasses import replace

import pytest

from headrace import (
    Agent,
    AgentList,
    Model,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionYesNo,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import ExpressionError, ListError, SurveyError
from headrace.survey.asked_question import AskedQuestion
from headrace.survey.prompts import persona
from headrace.survey.templates import CannotRender


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


@pytest.mark.parametrize(
    ("questions", "told"),
    [
        ([free("a"), free("a")], "called 'a'"),
        ([free("mood"), free("Mood")], "'mood' and 'Mood'"),
        ([free("a", "You said {{ b.answer }}"), free("b")], "'b' is not asked before it"),
        ([free("a"), free("b", "You said {{ a }}")], "'a' is a question"),
        ([free("a"), free("b", "You said {{ a.anwser }}")], "'a.anwser' is not known"),
        ([free("a", "{{ scenario.city")], "not a valid template"),
        (["a question"], "is not a question"),
    ],
)
def test_a_survey_that_cannot_be_asked_is_refused(questions: list[QuestionFreeText], told: str):
    with pytest.raises(SurveyError, match=told):
        Survey(questions)


def test_an_unknown_name_in_a_text_says_where_and_what_it_could_be():
    with pytest.raises(SurveyError, match=r"Question 'b', question_text.*Did you mean 'mood'"):
        Survey([free("mood"), free("b", "{{ moood.answer }}")])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("How is {{ scenario.town }}?", "no scenario has a field 'town'. Known here: city"),
        ("You are {{ agent.agee }}.", "no agent has a field 'agee'. Did you mean 'age'"),
    ],
)
def test_a_field_that_nobody_has_is_an_error_before_anything_runs(text: str, told: str, tmp_path):
    job = Survey([free("a", text)]).by(Agent({"age": 1}), Scenario({"city": "Oslo"}), Model("test"))
    with pytest.raises(SurveyError, match=told):
        job.run(tmp_path / "a.run")
    assert list(tmp_path.iterdir()) == []


def test_a_skip_rule_s_names_are_checked():
    survey = Survey([free("a"), free("b")])
    with pytest.raises(SurveyError, match="no question 'c'"):
        survey.add_skip_rule("b", "{{ c.answer }} == 1")
    with pytest.raises(SurveyError, match="no question 'z'"):
        survey.add_skip_rule("z", "True")
    with pytest.raises(ExpressionError):
        survey.add_skip_rule("b", "__import__('os')")


def test_a_survey_survives_being_stored():
    survey = Survey([free("a"), QuestionYesNo(question_name="b", question_text="{{ a.answer }}?")])
    survey.add_skip_rule("b", "a.answer is None")
    again = Survey.from_row(survey.to_row())
    assert again.questions == survey.questions
    assert again.to_row() == survey.to_row()


def test_a_job_keeps_the_survey_as_it_was():
    survey = Survey([free("a"), free("b")])
    job = survey.by(Model("test"))
    before = job.identity()
    survey.add_skip_rule("b", "True")
    assert job.identity() == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "empty"),
        (AgentList([]), "agents is empty"),
        (ScenarioList([]), "scenarios is empty"),
        ("Oslo", "cannot be made with a str"),
        (7, "cannot be made with a int"),
        ([Agent(), Scenario()], "agent 1 of the list is a Scenario"),
        ([Agent({"when": object()})], "agent 0: 'when' holds a object"),
    ],
)
def test_lists_that_cannot_be_used_are_refused(given, told: str):
    with pytest.raises(ListError, match=told):
        Survey([free("a")]).by(given)


def test_single_items_of_a_kind_given_together_are_a_list():
    job = Survey([free("a")]).by(
        Model("a", service_name="test"), Agent(name="x"), Model("b", service_name="test"), Agent()
    )
    assert ([model.name for model in job.models], len(job.agents)) == (["a", "b"], 2)
    assert len(Survey([free("a")]).by({"city": "Oslo"}, Scenario({"city": "Lima"})).scenarios) == 2


def test_template_syntax_in_data_is_data():
    asked = AskedQuestion(Survey([free("a", "Hello {{ agent.name }} {{ scenario.x }}")]), 0)
    context = {"agent": {"name": "{{ scenario.secret }}"}, "scenario": {"x": "{% for i in x %}", "secret": "no"}}
    assert asked.write(context)[0].startswith("Hello {{ scenario.secret }} {% for i in x %}")
    assert "{{ scenario.secret }}" in persona({"name": "{{ scenario.secret }}"})


def test_options_may_name_data():
    pick = QuestionMultipleChoice(
        question_name="pick", question_text="Which?", question_options=["{{ scenario.first }}", "Other"]
    )
    prompt, filled, _ = AskedQuestion(Survey([pick]), 0).write({"scenario": {"first": "Oslo"}, "agent": {}})
    assert filled == replace(pick, question_options=("Oslo", "Other"))
    assert "1. Oslo\n2. Other" in prompt


def test_options_may_be_a_list_of_the_data():
    pick = QuestionMultipleChoice(
        question_name="pick", question_text="Which?", question_options="{{ scenario.brands }}"
    )
    asked = AskedQuestion(Survey([pick]), 0)
    for brands in (["a", "b"], ["{{ agent.age }}", "{% if %}"]):
        filled = asked.write({"scenario": {"brands": brands}, "agent": {}})[1]
        assert filled == replace(pick, question_options=tuple(brands))
    for bad in ("ab", ["a"], ["a", "a"], None, "{{ scenario.brands }}"):
        with pytest.raises(CannotRender):
            asked.write({"scenario": {"brands": bad}, "agent": {}})


def test_the_persona_holds_traits_and_not_the_name():
    assert persona({}) == ""
    told = persona({"agent_name": "p1", "age": 36})
    assert "age: 36" in told
    assert "p1" not in told
    assert persona({"agent_instruction": "Be brief.", "age": 1}) == "Be brief.\n\nage: 1"


def test_a_text_that_is_not_unicode_is_refused_before_anything_runs(tmp_path):
    pick = QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=["a", "b\ud800"])
    with pytest.raises(SurveyError, match=r"cannot be stored: a text in it is not Unicode"):
        pick.by(Model("test", canned_response="a")).run(tmp_path / "a.run")
    assert list(tmp_path.iterdir()) == []
