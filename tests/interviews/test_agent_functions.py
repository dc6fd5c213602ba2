"""Agents that answer themselves, and agents whose traits depend on the question."""

from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionFreeText,
    QuestionNumerical,
    QuestionYesNo,
    Scenario,
    Survey,
)
from headrace.errors import InvalidInput, ListError
from headrace.models.provider import Request


def say_where(agent: Agent, question: Any, scenario: Scenario) -> str:
    return f"{agent.traits['age']} in {scenario['city']}: {question.question_text}"


def age_of(question: Any) -> dict[str, Any]:
    return {"age": 10 if question.question_name == "young" else 80, "hat": "red"}


def system_prompt(request: Request) -> str:
    return f"{request.system_prompt.splitlines()[-2:]} {request.user_prompt}"


def free(name: str, text: str = "Well?") -> QuestionFreeText:
    return QuestionFreeText(question_name=name, question_text=text)


def direct(method: Any = say_where, **traits: Any) -> Agent:
    return Agent(traits).add_direct_question_answering_method(method)


@pytest.mark.parametrize("workers", [None, 2])
def test_an_agent_s_method_answers_in_place_of_a_model(workers: int | None, tmp_path: Path):
    survey = Survey([free("a", "How is {{ scenario.city }}?"), free("b", "After {{ a.answer }}?")])
    agents = AgentList([direct(age=5), Agent(age=7), direct(age=6)])
    job = survey.by(agents, Scenario({"city": "Oslo"}), Model("test", canned_response="x"))
    with job.run(tmp_path / "a.run", workers=workers) as results:
        assert [result.answer["a"] for result in results] == ["5 in Oslo: How is Oslo?", "x", "6 in Oslo: How is Oslo?"]
        assert results[0].answer["b"] == "5 in Oslo: After 5 in Oslo: How is Oslo??"
        assert results.stats().calls == 2


def test_no_model_is_needed_where_all_agents_answer_themselves(tmp_path: Path):
    asked = QuestionNumerical(question_name="n", question_text="How many?")
    agent = Agent().add_direct_question_answering_method(
        lambda self, question, scenario: {"any": ["value"]}, validate_response=False
    )
    with asked.by(agent).run(tmp_path / "a.run") as results:
        assert results[0].answer == {"n": {"any": ["value"]}}


def test_what_a_method_raises_fails_its_question_alone(tmp_path: Path):
    def answer(self: Agent, question: Any, scenario: Any) -> Any:
        return {"a": 1, "b": object()}[question.question_name]

    survey = Survey(
        [free("a"), free("b"), free("c"), QuestionYesNo(question_name="d", question_text="You said {{ c.answer }}?")]
    )
    with survey.by(direct(answer)).run(tmp_path / "a.run") as results:
        failures = {failed.question: (failed.cause, failed.message) for failed in results[0].failures}
        assert failures["c"] == (
            "data does not fit the question",
            "the agent's answer_question_directly raised KeyError: 'c'",
        )
        assert "cannot be stored" in failures["b"][1]
        assert (results[0].answer["a"], set(failures)) == ("1", {"b", "c"})


def test_traits_may_depend_on_the_question(tmp_path: Path):
    agent = Agent(name="ada", traits={"age": 1}, dynamic_traits_function=age_of)
    survey = Survey([free("young", "Age {{ agent.age }}?"), free("old"), free("last")]).add_skip_rule(
        "last", "agent.age < 5"
    )
    with survey.by(agent, Model("test", canned_response=system_prompt)).run(tmp_path / "a.run") as results:
        answer = results[0].answer
        assert answer["young"].startswith("['age: 10', 'hat: red'] Age 10?")
        assert answer["old"].startswith("['age: 80', 'hat: red']")
        assert answer["last"] is None  # a rule knows the agent as it is in the list
        assert results[0].agent["age"] == 1
        prompts = results.select("prompt.young_system_prompt", "prompt.old_system_prompt").to_dicts()[0]
        assert ["age: 10" in text for text in prompts.values()] == [True, False]


def test_a_file_names_functions_and_holds_none(tmp_path: Path):
    job = Survey([free("a")]).by(AgentList([direct(age=1), direct(age=2)]), Scenario({"city": "Oslo"}))
    job.run(tmp_path / "a.run", limit=1)
    with pytest.raises(ListError, match=r"needs the function .*:say_where"):
        Job.open(tmp_path / "a.run").run()
    with job.run(tmp_path / "a.run") as results:
        assert [result.answer["a"] for result in results] == ["1 in Oslo: Well?", "2 in Oslo: Well?"]


def test_functions_that_cannot_be_used_are_refused(tmp_path: Path):
    with pytest.raises(ListError, match=r"takes 1 arguments. It is called with \(agent, question, scenario\)"):
        direct(lambda question: 1)
    with pytest.raises(ListError, match="is not a function"):
        Agent(dynamic_traits_function="age_of")
    with pytest.raises(InvalidInput, match="run without workers"):
        Survey([free("a")]).by(direct(lambda a, b, c: 1)).run(tmp_path / "a.run", workers=2)


def test_two_closures_of_one_source_stay_apart(tmp_path: Path):
    agents = [direct(_saying(number), n=number) for number in range(3)]
    with Survey([free("a")]).by(AgentList(agents)).run(tmp_path / "a.run") as results:
        assert [result.answer["a"] for result in results] == ["0", "1", "2"]


def _saying(number: int) -> Any:
    return lambda agent, question, scenario: number
