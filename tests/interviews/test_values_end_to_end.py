import math
from pathlib import Path
from typing import Any

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, QuestionMultipleChoice, Results, ScenarioList, Survey
from headrace.models.provider import Request

ODD = [
    float("nan"),
    float("inf"),
    2**70,
    -(2**70),
    2**63 - 1,
    True,
    "07",
    [1, [2, None]],
    {"$int": "5"},
    "🎈",
    "a\0b",
    "",
]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return type(left) is type(right) and left == right


def test_odd_values_of_agents_and_scenarios_come_back_as_they_were(tmp_path: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="{{ agent.odd }} and {{ scenario.odd }}?")])
    agents = AgentList(Agent({"odd": value}) for value in ODD)
    job = asked.by(agents, ScenarioList.from_list("odd", ODD[::-1]), Model("test", canned_response="x"))
    results = job.run(tmp_path / "a.run")
    assert len(results) == len(ODD) ** 2
    assert results.stats().failed == 0
    for result in results:
        agent, scenario = divmod(result.ordinal, len(ODD))
        assert same(result.agent["odd"], ODD[agent])
        assert same(result.scenario["odd"], ODD[-1 - scenario])


@pytest.mark.parametrize(
    "answer", ["07", "🎈 and \U0001f9d1\u200d\U0001f33e", "a\0b", "{{ agent.x }}", "x" * 300_000, "'\"\\"]
)
def test_odd_texts_are_kept_as_answers(tmp_path: Path, answer: str):
    asked = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    result = asked.by(Model("test", canned_response=answer)).run(tmp_path / "a.run")[0]
    assert result.answer["q"] == result.raw_responses["q"] == answer


def test_an_unpaired_surrogate_in_an_answer_is_replaced(tmp_path: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    results = asked.by(Model("test", canned_response="half \ud83c of a pair")).run(tmp_path / "a.run")
    assert results[0].answer["q"] == "half \ufffd of a pair"


def test_options_of_any_kind_come_back_in_their_own_type(tmp_path: Path):
    options = [1, True, "07", 2**70, 2.5, [1, 2], float("nan")]
    pick = QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=options)
    agents = AgentList(Agent({"n": number}) for number in range(len(options)))

    def choose(request: Request) -> str:
        return str(options[request.agent["n"]])

    results = Survey([pick]).by(agents, Model("test", canned_response=choose)).run(tmp_path / "a.run")
    assert results.stats().failed == 0
    assert all(same(result.answer["pick"], options[result.ordinal]) for result in results)
    assert [r.ordinal for r in results.filter("answer.pick == 1")] == [0, 1]  # True is 1, as in Python
    assert [r.ordinal for r in results.filter("answer.pick > 2")] == [3, 4]


def test_a_question_with_boolean_options_has_boolean_answers(tmp_path: Path):
    pick = QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=[True, False])
    results = Survey([pick]).by(Model("test", canned_response="false")).run(tmp_path / "a.run")
    assert results[0].answer["pick"] is False
    assert len(results.filter("not answer.pick")) == 1


@pytest.mark.parametrize("count", [300, 1_500])
def test_a_long_survey_keeps_every_answer(tmp_path: Path, count: int):
    questions = [QuestionFreeText(question_name=f"q{n}", question_text=f"Number {n}?") for n in range(count)]

    def answer(request: Request) -> str:
        return f"{request.question_name} of {request.agent['n']}"

    job = Survey(questions).by(AgentList(Agent({"n": n}) for n in range(3)), Model("test", canned_response=answer))
    path = tmp_path / "a.run"
    job.run(path)
    for result in Results.open(path):
        assert result.answer == {f"q{n}": f"q{n} of {result.ordinal}" for n in range(count)}
    last = f"q{count - 1}"
    assert Results.open(path).filter(f"answer.{last} == '{last} of 1'")[0].ordinal == 1
    assert list(Results.open(path).sql(f"select {last} from self order by 1")) == [
        (f"{last} of {n}",) for n in range(3)
    ]
