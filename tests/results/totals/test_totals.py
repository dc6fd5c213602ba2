"""Totals give what the rows would have given, bounded, and encoded as JSON alone."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionFreeText, Results, Survey
from headrace.errors import InvalidInput, OptionError, RunFileDamaged
from headrace.results.aggregates.function_states import STATE_FUNCTIONS, FunctionState, is_missing, new_state
from headrace.results.totals import running_totals
from headrace.results.totals.totals_table import check_totals
from headrace.results.totals.written_totals import written_totals
from headrace.store.whole_files import verify
from headrace.survey.values import decode_value, encode_value

NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.booleans(), st.integers(-3, 3), st.integers(-(2**70), 2**70), st.floats(allow_nan=True, allow_infinity=True)
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), NUMBERS, st.text(max_size=5), st.lists(st.integers(-3, 3), max_size=2)
)
QUESTION = QuestionFreeText(question_name="q", question_text="Well?")
MODEL = Model("test", canned_response="x")


def state_of(function: str, values: Iterable[Any]) -> FunctionState:
    state = new_state(function)
    for value in values:
        if not is_missing(value):
            state.add(value)
    return state


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values=st.lists(VALUES, max_size=30), cut=st.integers(0, 30))
def test_a_state_that_was_written_down_goes_on_exactly(values: list[Any], cut: int):
    for function in STATE_FUNCTIONS:
        state = new_state(function)
        state.decode(decode_value(encode_value(state_of(function, values[:cut]).encode())))
        for value in values[cut:]:
            if not is_missing(value):
                state.add(value)
        assert repr(state.result()) == repr(state_of(function, values).result()), function


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values=st.lists(VALUES, max_size=20), chance=st.randoms(use_true_random=False))
def test_neither_an_order_nor_counting_equal_values_shows_in_a_result(values: list[Any], chance: Any):
    shuffled = sorted(values, key=lambda _: chance.random())
    for function in STATE_FUNCTIONS:
        counted = new_state(function)
        for value in values:
            if not is_missing(value):
                counted.add(value, 3)
        thrice = state_of(function, [*shuffled, *values, *shuffled])
        assert counted.result() == thrice.result(), function


@settings(max_examples=40, deadline=None, derandomize=True)
@given(values=st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=40))
def test_a_sum_is_rounded_once(values: list[float]):
    assert state_of("sum", values).result() == math.fsum(values)


@pytest.mark.parametrize("held", [NUMBERS, st.integers(-9, 9), st.booleans(), st.text(max_size=3), VALUES])
def test_totals_are_what_group_by_gives_of_the_same_rows(tmp_path: Path, held: st.SearchStrategy[Any]):
    """Whole numbers, bools and texts are computed by SQLite there, everything else in Python."""
    functions = {"n": "count()", **{name: f"{name}(agent.x)" for name in STATE_FUNCTIONS}, "high": "share(agent.x > 1)"}
    rows = st.lists(st.tuples(held, st.sampled_from(["Oslo", "Lima", None, 2, True])), min_size=1, max_size=12)

    @settings(max_examples=6, deadline=None, derandomize=True)
    @given(rows=rows)
    def compare(rows: list[tuple[Any, Any]]) -> None:
        job = QUESTION.by(AgentList(Agent(traits={"x": x, "city": city}) for x, city in rows)).by(MODEL)
        results = job.run(tmp_path / "a.run", aggregate=functions, group_by="agent.city", fresh=True)
        grouped = results.group_by("agent.city").agg(**functions)
        assert list(results.aggregate()) == list(grouped)

    compare()


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": '["a","b","c"]'}, "a group has 3 values"),
        ({"key": '"ab"'}, "a group has 2 values"),
        ({"state": b"[1,2,3,4]"}, "totals"),
        ({"state": b"[[-5],[5,false,15,0.0,[]],[[5,false,15,0.0,[]],[5,false,45,0.0,[]]],[3]]"}, "-5 is no count"),
        ({"state": b'[[5],["5",false,15,0.0,[]],[[5,false,15,0.0,[]],[5,false,45,0.0,[]]],[3]]'}, "5 is no count"),
        (
            {"state": b'[[5],[5,false,"x",0.0,[]],[[5,false,15,0.0,[]],[5,false,45,0.0,[]]],[3]]'},
            "a sum that was never",
        ),
        ({"state": b"[[5],[5,true,0,0.0,[[9999,1]]],[[5,false,15,0.0,[]],[5,false,45,0.0,[]]],[3]]"}, "fractions"),
    ],
)
def test_totals_that_were_never_written_are_damage_also_with_a_right_checksum(
    tmp_path: Path, wrong: dict[str, Any], said: str
):
    path = tmp_path / "a.run"
    functions = {"n": "count()", "s": "sum(agent.x)", "v": "var(agent.x)", "m": "max(agent.x)"}
    job = QUESTION.by(AgentList(Agent(traits={"x": 3, "city": "Oslo"}) for _ in range(5))).by(MODEL)
    job.run(path, keep="nothing", aggregate=functions, group_by="agent.city").close()
    assert not verify(path, check_totals).findings
    _change_totals(path, **wrong)
    assert [*verify(path, check_totals).findings] == ["totals"]
    with Results.open(path) as results:
        for look in (lambda: list(results.aggregate()), lambda: str(results)):
            with pytest.raises(RunFileDamaged, match=said):
                look()


def test_groups_of_fewer_than_no_interviews_are_damage(tmp_path: Path):
    path = tmp_path / "a.run"
    people = AgentList(Agent(traits={"city": city}) for city in ("Oslo", "Lima"))
    QUESTION.by(people).by(MODEL).run(path, aggregate={"n": "count()"}, group_by="agent.city").close()
    _change_totals(path, interviews=-200)
    _change_totals(path, '["Lima"]', interviews=202)
    assert verify(path, check_totals).findings["totals"].what.endswith("are of -200 interviews).")


def _change_totals(path: Path, of: str = '["Oslo"]', **changed: Any) -> None:
    """Change the group with the key `of` as somebody would who can write its checksum."""
    connection = apsw.Connection(str(path))
    sql = "SELECT key, interviews, state FROM totals WHERE key = ?"
    ((key, interviews, state),) = connection.execute(sql, (of,)).fetchall()
    held = {"key": key, "interviews": interviews, "state": state, **changed}
    checksum = crc32(held["state"], crc32(f"{held['interviews']} {held['key']}".encode()))
    connection.execute(
        "UPDATE totals SET key = ?, interviews = ?, state = ?, checksum = ? WHERE key = ?",
        (*held.values(), checksum, of),
    )
    connection.close()
