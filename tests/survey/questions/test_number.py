import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionBudget, QuestionDemand, QuestionNumerical, ScenarioList, Survey
from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions import question_from_dict
from tests.survey.questions.written_forms import answer_to, written_forms

TEXT = {"question_name": "q", "question_text": "How many?"}
rating = QuestionNumerical(**TEXT, min_value=0, max_value=10)
budget = QuestionBudget(**TEXT, question_options=["Pizza", "Ice cream", "Salad"], budget_sum=100)
demand = QuestionDemand(**TEXT, prices=[1, 2.5])
numbers = st.integers(0, 10) | st.floats(0, 10).map(lambda number: round(number, 3))
SENTENCES = ["{}", " {} ", "I would say {}.", "{}\nThat is what I think.", "{} units", "Answer: {}", "**{}**", "${}"]


@settings(max_examples=300)
@given(numbers, st.sampled_from([*SENTENCES, '{{"answer": {}}}', '{{"answer": "{}", "comment": "so"}}']))
def test_a_number_in_any_form_is_accepted_with_the_same_value(number: float, form: str):
    accepted = answer_to(rating, form.format(number))
    assert accepted == number
    assert type(accepted) is type(number)


@settings(max_examples=300)
@given(numbers, numbers, st.sampled_from(["{} or {}", "between {} and {}", "{}-{}", "{} {}", "{}/{}"]))
def test_two_different_numbers_are_never_accepted(one: float, other: float, form: str):
    if one != other or form in ("{}-{}", "{}/{}"):
        with pytest.raises(InvalidAnswer):
            answer_to(rating, form.format(one, other))


@settings(max_examples=300)
@given(st.integers(11, 10**9) | st.integers(-(10**9), -1) | st.floats(10.01, 1e9), st.sampled_from(SENTENCES))
def test_a_number_out_of_bounds_is_never_accepted(number: float, form: str):
    with pytest.raises(InvalidAnswer):
        answer_to(rating, form.format(number))


def test_a_bound_of_0_is_told():
    assert "at least 0" in QuestionNumerical(**TEXT, min_value=0).instructions()
    assert "at most 0" in QuestionNumerical(**TEXT, max_value=0).instructions()
    assert QuestionNumerical(**TEXT, min_value=0).schema() == {"type": "number", "minimum": 0}


def test_bounds_are_told_and_not_kept_where_that_is_permitted():
    loose = QuestionNumerical(**TEXT, min_value=0, max_value=10, permissive=True)
    assert "between 0 and 10" in loose.instructions()
    assert loose.accept("11") == 11


def test_bounds_may_be_templates(tmp_path: Any):
    question = QuestionNumerical(**TEXT, min_value="{{ scenario.least }}", max_value="{{ agent.most }}")
    people = AgentList([Agent({"most": 10}), Agent({"most": "7"}), Agent({"most": "many"}), Agent({"most": -5})])
    job = Survey([question]).by(people, ScenarioList.from_list("least", [0])).by(Model("test", canned_response="8"))
    results = job.run(tmp_path / "a.run")
    assert [result.answer["q"] for result in results] == [8, None, None, None]
    told = [failure.message for result in results for failure in result.failures]
    assert "8 is above the greatest value 7" in told[0]
    assert "the bound 'many'" in told[1]
    assert "min_value 0 above max_value -5" in told[2]


@st.composite
def shares(draw: st.DrawFn) -> list[float]:
    first = draw(st.integers(0, 100))
    second = draw(st.integers(0, 100 - first))
    return [first, second, 100 - first - second]


@settings(max_examples=300)
@given(shares(), st.data())
def test_a_budget_in_any_form_is_accepted_with_the_same_value(value: list[float], data: st.DataObject):
    expected = [{"Pizza": value[0]}, {"Ice cream": value[1]}, {"Salad": value[2]}]
    by_option = dict(zip(["Pizza", "ice cream ", "SALAD"], value, strict=True))
    by_code = {str(code): share for code, share in enumerate(value)}
    as_texts = [f"${share}" for share in value]
    for form in (value, by_option, by_code, as_texts, expected):
        assert answer_to(budget, data.draw(written_forms(form))) == expected
    assert answer_to(budget, ", ".join(map(str, value))) == expected


@pytest.mark.parametrize(
    "given",
    [
        [50, 50],
        [50, 50, 50],
        [50, 60, -10],
        [30, 30, 30],
        {"Pizza": 50, "Salad": 50},
        {"Pizza": 50, "Ice cream": 0, "Salad": 50, "Beer": 0},
        {"Pizza": 50, "pizza": 50, "Salad": 0},
        [{"Pizza": 50}, {"Pizza": 50}, {"Salad": 50}],
        ["half", "half", "none"],
        [50, 50, None],
        [True, 50, 49],
        "I would not",
        {"answer": 100},
    ],
)
def test_other_budgets_are_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(budget, given if isinstance(given, str) else json.dumps(given))


def test_what_is_left_of_a_budget_goes_where_it_is_said():
    loose = QuestionBudget(**TEXT, question_options=["a", "b"], budget_sum=100, permissive=True)
    assert loose.accept([20, 30]) == [{"a": 20}, {"b": 30}]
    rest = QuestionBudget(**TEXT, question_options=["a", "b"], budget_sum=100, remainder_option="b")
    assert rest.accept([20, 30]) == [{"a": 20}, {"b": 80}]
    for question in (loose, rest):
        with pytest.raises(InvalidAnswer, match="add up to 130"):
            question.accept([100, 30])


@settings(max_examples=200)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=2), st.data())
def test_a_demand_in_any_form_is_accepted_with_the_same_value(value: list[int], data: st.DataObject):
    expected = [{"$1.00": value[0]}, {"$2.50": value[1]}]
    for form in (value, {"$1.00": value[0], "$2.50": value[1]}, {"0": value[0], "1": value[1]}):
        assert answer_to(demand, data.draw(written_forms(form))) == expected


@pytest.mark.parametrize("given", [[1], [1, -1], [1, 2, 3], {"$1.00": 1}, "a few"])
def test_other_demands_are_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(demand, given if isinstance(given, str) else json.dumps(given))


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuestionBudget(**TEXT, question_options=["a", "a"], budget_sum=1),
        lambda: QuestionBudget(**TEXT, question_options=[], budget_sum=1),
        lambda: QuestionBudget(**TEXT, question_options=["a"], budget_sum=-1),
        lambda: QuestionBudget(**TEXT, question_options=["a"], budget_sum="all"),
        lambda: QuestionBudget(**TEXT, question_options=["a"], budget_sum=1, remainder_option="b"),
        lambda: QuestionDemand(**TEXT, prices=[]),
        lambda: QuestionDemand(**TEXT, prices=["cheap"]),
        lambda: QuestionDemand(**TEXT, prices=[-1]),
        lambda: QuestionDemand(**TEXT, prices=5),
    ],
)
def test_settings_that_cannot_be_met_are_refused(make: Any):
    with pytest.raises(SurveyError):
        make()


def test_prices_that_look_alike_when_rounded_are_shown_in_full():
    assert QuestionDemand(**TEXT, prices=[0.001, 0.002]).things == ["$0.001", "$0.002"]


def test_a_budget_and_its_options_may_be_templates(tmp_path: Any):
    question = QuestionBudget(**TEXT, question_options="{{ scenario.things }}", budget_sum="{{ scenario.money }}")
    about = ScenarioList([{"things": ["a", "b"], "money": 10}, {"things": ["c", "d"], "money": 11}])
    results = Survey([question]).by(about).by(Model("test", canned_response="[4, 6]")).run(tmp_path / "a.run")
    assert [result.answer["q"] for result in results] == [[{"a": 4.0}, {"b": 6.0}], None]


@pytest.mark.parametrize("question", [rating, budget, demand], ids=lambda question: question.kind)
def test_a_question_comes_back_from_its_settings(question: Any):
    assert question_from_dict(json.loads(json.dumps(question.to_dict()))) == question
    assert question.listing() + question.instructions()
