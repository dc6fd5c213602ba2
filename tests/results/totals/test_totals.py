"""Totals give what the rows would have given, bounded, and encoded as JSON alone."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionFreeText, Results, Survey
from headrace.errors import InvalidInput, OptionError
from headrace.results.totals import running_totals
from headrace.results.totals.aggregate_functions import FUNCTIONS, accumulator
from headrace.results.totals.written_totals import written_totals
from headrace.survey.values import decode_value, encode_value

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=False),
    st.text(max_size=5),
)


def same(one: Any, other: Any) -> bool:
    return one == other or (isinstance(one, float) and math.isclose(one, other, rel_tol=1e-12))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values=st.lists(VALUES, max_size=30), cut=st.integers(0, 30))
def test_a_state_that_was_written_down_goes_on_exactly(values: list[Any], cut: int):
    for function in FUNCTIONS:
        whole, first, second = (accumulator(function, of_rows=False) for _ in range(3))
        for value in values:
            whole.add(value)
        for value in values[:cut]:
            first.add(value)
        second.decode(decode_value(encode_value(first.encode())))
        for value in values[cut:]:
            second.add(value)
        assert second.value() == whole.value(), function


@settings(max_examples=40, deadline=None, derandomize=True)
@given(values=st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=40), shuffled=st.randoms(use_true_random=False))
def test_no_order_shows_in_a_sum(values: list[float], shuffled: Any):
    other = list(values)
    shuffled.shuffle(other)
    for function in ("sum", "mean", "var", "std"):
        one, two = accumulator(function, of_rows=False), accumulator(function, of_rows=False)
        for value, again in zip(values, other, strict=True):
            one.add(value)
            two.add(again)
        assert one.value() == two.value(), function
    total = accumulator("sum", of_rows=False)
    for value in values:
        total.add(value)
    assert total.value() == math.fsum(values)


def test_totals_are_what_group_by_gives_of_the_same_rows(tmp_path: Path):
    ages = [20, 21.5, None, 30, 2**60, -3, 0.1, True, 44, 0.2]
    people = AgentList(
        Agent(traits={"age": ages[number % 10], "city": ("Oslo", "Lima", None)[number % 3]}) for number in range(50)
    )
    job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(
        people, Model("test", canned_response="x")
    )
    of_age = ("count", "sum", "mean", "min", "max", "var", "std", "any", "all")
    functions = {"n": "count()", **{name: f"{name}(agent.age)" for name in of_age}, "old": "share(agent.age > 25)"}
    results = job.run(tmp_path / "a.run", aggregate=functions, group_by="agent.city")
    rows = results.aggregate().to_dicts()
    grouped = {row["city"]: row for row in results.group_by("agent.city").agg(**functions).to_dicts()}
    assert len(rows) == len(grouped) == 3
    for row in rows:
        other = grouped[row["city"]]
        assert all(same(row[name], other[name]) for name in functions), (row, other)


@pytest.mark.parametrize("function", ["median(answer.q)", "quantile(answer.q, 0.5)", "nunique(answer.q)"])
def test_a_function_that_needs_every_value_is_refused(function: str):
    with pytest.raises(OptionError, match="needs every value at once"):
        written_totals({"x": function}, ())


@pytest.mark.parametrize("wrong", ["mean", "mean answer.q", "mean()", "mean(answer.q) + 1", "mean(", "avg(answer.q)"])
def test_a_text_that_is_no_function_is_refused(wrong: str):
    with pytest.raises(OptionError, match=r"aggregate 'x'"):
        written_totals({"x": wrong}, ())


def test_more_groups_than_may_be_are_an_error_and_what_was_committed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running_totals, "MOST_GROUPS", 3)
    people = AgentList(Agent(traits={"number": number}) for number in range(9))
    job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(
        people, Model("test", canned_response="x")
    )
    with pytest.raises(InvalidInput, match=r"group_by of agent\.number has more than 3 groups"):
        job.run(tmp_path / "a.run", keep="nothing", aggregate={"n": "count()"}, group_by="agent.number")
    with Results.open(tmp_path / "a.run") as results:
        assert len(results) == len(results.aggregate().to_dicts()) <= 3


class Letters:
    def __init__(self) -> None:
        self.count = 0

    def add(self, result: Any) -> None:
        if result.agent["number"] == 7 and self.count >= 0 and FAILING:
            raise ZeroDivisionError("seven")
        self.count += len(result.answer["q"])

    def encode(self) -> bytes:
        return str(self.count).encode()

    def decode(self, state: bytes) -> None:
        self.count = int(state)


FAILING = False


def test_an_aggregator_of_the_user_s_own_goes_on_after_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.run"
    people = AgentList(Agent(traits={"number": number}) for number in range(20))
    job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(
        people, Model("test", canned_response="abc")
    )
    job.run(path, keep="nothing", aggregate=Letters(), limit=5)
    monkeypatch.setattr(f"{__name__}.FAILING", True)
    with pytest.raises(ZeroDivisionError, match="seven"):
        job.run(path, aggregate=Letters())
    monkeypatch.setattr(f"{__name__}.FAILING", False)
    with pytest.raises(InvalidInput, match=r"adds its results up with Letters.*aggregate=Letters\(\)"):
        job.run(path)
    with pytest.raises(OptionError, match="has other totals"):
        job.run(path, aggregate={"n": "count()"})
    results = job.run(path, aggregate=Letters())
    assert results.aggregate(Letters()).count == 60
    with pytest.raises(InvalidInput, match=r"results\.aggregate\(Letters\(\)\)"):
        results.aggregate()
