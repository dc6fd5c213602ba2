from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, QuestionNumerical, ScenarioList, Survey
from headrace.errors import ListError

numbers = Survey([QuestionNumerical(question_name="n", question_text="How many of {{ scenario.price }}?", max_value=9)])
texts = Survey(
    [
        QuestionFreeText(question_name="young", question_text="How are you?"),
        QuestionFreeText(question_name="old", question_text="How are you at {{ agent.age }}?"),
    ]
)
never = Model("test", canned_response="never", price={"input": 1, "output": 1})


def double(self: Agent, question: Any, scenario: Any) -> Any:
    scenario["price"] *= 2  # its own copy
    return scenario["price"] + self.traits.get("more", 0)


def by_question(question: Any) -> dict[str, Any]:
    return {"age": 10 if question.question_name == "young" else 90}


def answering(method: Any = double, **traits: Any) -> Agent:
    return Agent(traits).add_direct_question_answering_method(method)


def test_a_function_answers_in_the_models_place(tmp_path: Path):
    agents = AgentList([answering(), answering(more=1), Agent()])
    job = numbers.by(agents, ScenarioList.from_list("price", [3, 4, 5]), Model("test", canned_response="7"))
    results = job.run(tmp_path / "a.run")
    assert [result.answer["n"] for result in results] == [6, 8, None, 7, 9, None, 7, 7, 7]
    assert "must be at most 9" in results[2].failures[0].message or "9" in results[2].failures[0].message
    assert results.stats().calls == 3
    assert [result.scenario["price"] for result in results[:3]] == [3, 4, 5]


def test_an_error_in_a_function_is_one_answers_failure(tmp_path: Path):
    def fails(self: Agent, question: Any, scenario: Any) -> Any:
        raise KeyError("price")

    def gives_an_object(self: Agent, question: Any, scenario: Any) -> Any:
        return object()

    agents = AgentList([answering(fails), answering(gives_an_object), answering()])
    results = numbers.by(agents, ScenarioList.from_list("price", [3]), never).run(tmp_path / "a.run")
    assert [result.answer["n"] for result in results] == [None, None, 6]
    assert "raised KeyError" in results[0].failures[0].message
    assert "cannot be stored" in results[1].failures[0].message


def test_a_function_chooses_the_traits_for_each_question(tmp_path: Path):
    agents = AgentList([Agent({"age": 1}, name="ada", instruction="Be brief.", dynamic_traits_function=by_question)])
    results = texts.by(agents, Model("test", canned_response="fine")).run(tmp_path / "a.run")
    young, old = (results.select(f"prompt.{name}_system_prompt").to_list()[0] for name in ("young", "old"))
    assert (young, old) == ("Be brief.\n\nage: 10", "Be brief.\n\nage: 90")
    assert "at 90" in results[0].prompts["old"]
    assert results[0].agent["age"] == 1


def test_a_function_of_nothing_chooses_traits_too(tmp_path: Path):
    agent = Agent(dynamic_traits_function=lambda: {"age": 5})
    results = texts.by(agent, Model("test", canned_response="fine")).run(tmp_path / "a.run")
    assert "at 5" in results[0].prompts["old"]


def test_verbs_keep_an_agents_functions():
    agent = answering(age=1)
    for changed in (agent.copy(), agent.rename("age", "years"), agent.keep("age"), agent + Agent(x=1)):
        assert changed.answer_question_directly(None, {"price": 2}) == 4
    (listed,) = AgentList([agent]).mutate("x = age + 1")
    assert listed.answer_question_directly(None, {"price": 2}) == 4
    agent.remove_direct_question_answering_method()
    assert not hasattr(agent, "answer_question_directly")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Agent(dynamic_traits_function=lambda a, b: {}), "takes 2 arguments"),
        (lambda: Agent(dynamic_traits_function=3), "3 is not a function"),
        (lambda: Agent().add_direct_question_answering_method(lambda question: 1), "takes 1 arguments"),
    ],
)
def test_a_function_with_other_parameters_is_refused(make: Any, message: str):
    with pytest.raises(ListError, match=message):
        make()
