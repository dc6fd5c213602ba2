import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Agent,
    AgentList,
    Model,
    QuestionBudget,
    QuestionCompute,
    QuestionDict,
    QuestionFreeText,
    QuestionList,
    QuestionMatrix,
    QuestionMultipleChoice,
    QuestionNumerical,
    Results,
    ScenarioList,
    Survey,
)
from headrace.errors import ExpressionError
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


PARTS = [
    QuestionList(question_name="foods", question_text="Which?"),
    QuestionBudget(question_name="shares", question_text="How?", question_options=["a", "b"], budget_sum=10),
    QuestionMatrix(question_name="grid", question_text="How?", question_items=["i", "j"], question_options=[1, 2]),
    QuestionDict(question_name="recipe", question_text="How?", answer_keys=["title", "n"], value_types=[str, int]),
    QuestionNumerical(question_name="count", question_text="{{ foods.answer[0] }}: {{ recipe.answer.title }}?"),
    QuestionCompute(question_name="sum", question_text="{{ count.answer + grid.answer.i + recipe.answer['n'] }}"),
]
ANSWERS = [
    {
        "foods": ["é", 'a "b"', 3],
        "shares": [{"a": 4.0}, {"b": 6.0}],
        "grid": {"i": 1, "j": 2},
        "recipe": {"title": "T, x", "n": n},
        "count": 5,
        "sum": 6 + n,
    }
    for n in range(3)
]


def answer_with_parts(request: Request) -> Any:
    answer = ANSWERS[request.agent["n"]][request.question_name]
    return json.dumps(answer)


@pytest.fixture(scope="module")
def with_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "a.run"
    people = AgentList(Agent({"n": n}) for n in range(3))
    Survey(PARTS).by(people, Model("test", canned_response=answer_with_parts)).run(path)
    return path


def test_lists_and_objects_come_back_as_they_were(with_parts: Path):
    results = Results.open(with_parts)
    assert [result.answer for result in results] == ANSWERS
    assert results.select("foods").to_list() == [answer["foods"] for answer in ANSWERS]


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("'é' in answer.foods", 3),
        ("'x' in answer.foods", 0),
        ("len(answer.foods) == 3", 3),
        ("answer.foods[0] == 'é'", 3),
        ("answer.foods[-1] > 2", 3),
        ("answer.recipe['n'] > 0", 2),
        ("answer.recipe.n > 0", 2),
        ("recipe.answer.n == 2 and answer.grid['i'] == 1", 1),
        ("answer.shares[1]['b'] == 6", 3),
        ("answer.recipe['none'] == 1", 0),
        ("answer.foods is None", 0),
    ],
)
def test_filters_look_into_lists_and_objects(with_parts: Path, condition: str, count: int):
    assert len(Results.open(with_parts).filter(condition)) == count


def test_a_misspelt_name_is_no_key(with_parts: Path):
    with pytest.raises(ExpressionError, match=r"no column 'recipe.anwser'"):
        Results.open(with_parts).filter("recipe.anwser == 1")


def test_lists_and_objects_are_json_in_sql(with_parts: Path):
    query = "select json_extract(recipe, '$.title'), foods ->> 0, json_array_length(foods), shares from self"
    assert list(Results.open(with_parts).sql(query)) == [("T, x", "é", 3, [{"a": 4.0}, {"b": 6.0}])] * 3


def test_lists_and_objects_are_json_in_text_files(with_parts: Path, tmp_path: Path):
    results = Results.open(with_parts).select("answer.*")
    results.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    read = [{name.removeprefix("answer."): json.loads(cell) for name, cell in row.items()} for row in rows]
    assert read == ANSWERS
    results.to_jsonl(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text("utf-8").splitlines()
    assert [
        {name.removeprefix("answer."): cell for name, cell in json.loads(line).items()} for line in lines
    ] == ANSWERS


def test_lists_and_objects_are_themselves_in_pandas_and_typed_in_parquet(with_parts: Path, tmp_path: Path):
    pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    results = Results.open(with_parts).select("answer.*")
    frame = results.to_pandas(remove_prefix=True)
    assert frame.to_dict("records") == ANSWERS
    results.to_parquet(tmp_path / "a.parquet")
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    mixed = ("foods", "shares")
    for row, answer in zip(rows, ANSWERS, strict=True):
        names = {name.removeprefix("answer."): cell for name, cell in row.items()}
        assert {name: json.loads(cell) if name in mixed else cell for name, cell in names.items()} == answer
