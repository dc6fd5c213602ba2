from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionCompute,
    QuestionFunctional,
    QuestionNumerical,
    QuestionRandom,
    Results,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import HeadraceError, PlanMismatch, SurveyError
from headrace.survey.questions.computed import drawn_fraction

price = QuestionNumerical(question_name="price", question_text="What is the price?")
seven = Model("test", canned_response="7")


def computed(text: str, **answers: Any) -> QuestionCompute:
    return QuestionCompute(question_name="c", question_text=text, **answers)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{{ price.answer * 2 }}", 14),
        ("{{ price.answer + scenario.x }}", 8.5),
        ("{{ price.answer }}{{ agent.y }}", 72),
        (" -0.5 ", -0.5),
        ("1e3", 1000.0),
        ("Hello {{ agent.y }}", "Hello 2"),
        ("1,000", "1,000"),
        ("nan", "nan"),
        ("1_000", "1_000"),
    ],
)
def test_a_computed_answer_is_its_text_or_the_number_that_it_is(tmp_path: Path, text: str, answer: Any):
    job = Survey([price, computed(text)]).by(Agent({"y": 2}), Scenario({"x": 1.5}), seven)
    result = job.run(tmp_path / "a.run")[0]
    assert result.answer == {"price": 7, "c": answer}
    assert type(result.answer["c"]) is type(answer)


def test_nothing_is_called_for_a_computed_answer(tmp_path: Path):
    job = Survey([computed("Hello {{ scenario.name }}!")]).by(ScenarioList.from_list("name", ["you", "world"]), seven)
    assert job.estimate().calls == 0
    results = job.run(tmp_path / "a.run")
    assert [result.answer["c"] for result in results] == ["Hello you!", "Hello world!"]
    assert results.stats().calls == 0


def test_a_text_that_cannot_be_computed_fails_alone(tmp_path: Path):
    job = Survey([computed("{{ 1 + scenario.n }}"), price]).by(ScenarioList.from_list("n", [1, "one", 3]), seven)
    results = job.run(tmp_path / "a.run")
    assert [result.answer["c"] for result in results] == [2, None, 4]
    assert [result.answer["price"] for result in results] == [7, 7, 7]
    assert [failure.cause for failure in results[1].failures] == ["data does not fit the question"]


def test_answers_are_never_templates(tmp_path: Path):
    model = Model("test", canned_response={"price": "{{ agent.y }}"})
    told = QuestionNumerical(question_name="price", question_text="?")
    job = Survey([told, computed("{{ scenario.x }}")]).by(Scenario({"x": "{{ 1 + 1 }}"}), model)
    assert job.run(tmp_path / "a.run")[0].answer["c"] == "{{ 1 + 1 }}"


def test_a_random_number_is_the_same_in_every_run_and_another_in_each_interview(tmp_path: Path):
    draws = [QuestionRandom(question_name="one"), QuestionRandom(question_name="two")]
    job = Survey(draws).by(AgentList(Agent({"n": n}) for n in range(50)), seven)
    first = [result.answer for result in job.run(tmp_path / "a.run", limit=10)]
    every = [result.answer for result in job.run(tmp_path / "a.run")]
    again = [result.answer for result in job.run(tmp_path / "b.run")]
    assert every[:10] == first
    assert every == again
    numbers = [number for answer in every for number in answer.values()]
    assert len(set(numbers)) == 100
    assert all(0 <= number < 1 for number in numbers)
    assert [result.answer for result in Results.open(tmp_path / "a.run")] == every


def test_another_seed_draws_otherwise(tmp_path: Path):
    draw = QuestionRandom(question_name="one")
    drawn = [Survey([draw], seed=seed).by(seven).run(tmp_path / f"{n}.run")[0] for n, seed in enumerate([0, 1, 1])]
    first, second, third = (result.answer["one"] for result in drawn)
    assert first != second == third


def test_one_of_the_options_is_drawn(tmp_path: Path):
    draw = QuestionRandom(question_name="arm", question_options=["a", "b", "{{ scenario.third }}"])
    later = computed("You are in {{ arm.answer }}.")
    people = AgentList(Agent({"n": n}) for n in range(60))
    results = Survey([draw, later]).by(people, Scenario({"third": "c"}), seven).run(tmp_path / "a.run")
    assert {result.answer["arm"] for result in results} == {"a", "b", "c"}
    assert all(result.answer["c"] == f"You are in {result.answer['arm']}." for result in results)


@settings(max_examples=300)
@given(st.integers(), st.integers(0, 10**12), st.text(min_size=1, max_size=10))
def test_a_draw_is_decided_by_seed_ordinal_and_question(seed: int, ordinal: int, name: str):
    fraction = drawn_fraction(seed, ordinal, name)
    assert 0 <= fraction < 1
    assert fraction == drawn_fraction(seed, ordinal, name)
    assert fraction != drawn_fraction(seed, ordinal + 1, name)


def test_draws_are_even():
    draws = [drawn_fraction(0, ordinal, "q") for ordinal in range(10_000)]
    assert 0.48 < sum(draws) / len(draws) < 0.52
    assert all(900 < sum(low <= draw * 10 < low + 1 for draw in draws) < 1100 for low in range(10))


def total(scenario: Any, agent_traits: Any) -> Any:
    return scenario["a"] + agent_traits["b"]


def failing(scenario: Any, agent_traits: Any) -> Any:
    return 1 // scenario["a"]


def a_set(scenario: Any, agent_traits: Any) -> Any:
    return {scenario["a"]}


def seen(scenario: Any, agent_traits: Any) -> Any:
    return [scenario, agent_traits]


def asked_with(func: Any) -> Any:
    question = QuestionFunctional(question_name="f", func=func)
    return Survey([question, price]).by(ScenarioList.from_list("a", [1, 0]), Agent({"b": 10}, name="ada"), seven)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_function_gets_the_scenario_and_the_traits(tmp_path: Path, workers: int):
    results = asked_with(total).run(tmp_path / "a.run", workers=workers)
    assert [result.answer["f"] for result in results] == [11, 10]
    assert results.stats().calls == 2
    assert asked_with(seen).run(tmp_path / "b.run")[0].answer["f"] == [{"a": 1}, {"b": 10}]


def test_a_function_that_raises_fails_its_question_alone(tmp_path: Path):
    results = asked_with(failing).run(tmp_path / "a.run")
    assert [result.answer["f"] for result in results] == [1, None]
    assert [result.answer["price"] for result in results] == [7, 7]
    (failure,) = results[1].failures
    assert "its function raised ZeroDivisionError" in failure.message


def test_what_a_function_returns_must_be_json(tmp_path: Path):
    (failure, _) = (result.failures[0] for result in asked_with(a_set).run(tmp_path / "a.run"))
    assert "holds a set, which cannot be stored" in failure.message


def test_a_file_names_a_function_and_does_not_hold_it(tmp_path: Path):
    path = tmp_path / "a.run"
    asked_with(total).run(path, limit=1)
    assert Results.open(path)[0].answer["f"] == 11
    opened = Job.open(path)
    with pytest.raises(HeadraceError, match=r"needs the function .*:total@"):
        opened.run()
    assert [result.answer["f"] for result in asked_with(total).run(path)] == [11, 10]
    with pytest.raises(PlanMismatch):
        asked_with(seen).run(path)


@pytest.mark.parametrize("func", [None, "def f(): pass", 5])
def test_what_is_no_function_is_refused(func: Any):
    with pytest.raises(SurveyError, match="for its func"):
        QuestionFunctional(question_name="f", func=func)
