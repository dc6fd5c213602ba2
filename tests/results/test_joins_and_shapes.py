"""`join`, `long` and `wide`, compared with the same in pandas."""

import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import InvalidInput
from headrace.results.results import Results
from headrace.results.tables.table import Table
from tests.results import files
from tests.results.rows import ListedRows

TEXTS = ["Oslo", "São Paulo", "'; drop table rows; --", "{{ agent.city }}", 'quo"te', "", "NULL"]
KEYS = st.none() | st.sampled_from(TEXTS) | st.just(2**70)
VALUES = st.none() | st.integers(0, 3) | st.sampled_from(TEXTS) | st.lists(st.integers(0, 3), max_size=2)
SIDE = st.lists(st.tuples(KEYS, VALUES), max_size=12)
quick = settings(max_examples=60, deadline=None, derandomize=True)


def table(rows: list[tuple[Any, ...]], names: list[str]) -> Table:
    return Table(ListedRows(names, rows))


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


@quick
@given(SIDE, SIDE, st.sampled_from(["inner", "left"]))
def test_a_join_is_that_of_pandas(left: list[Any], right: list[Any], how: Any) -> None:
    found = list(table(left, ["k", "x"]).join(table(right, ["k", "x"]), on="k", how=how))
    # pandas joins None with None; here, as in SQL, it matches nothing.
    one = pd.DataFrame(left, columns=["k", "x"], dtype=object)
    other = pd.DataFrame([row for row in right if row[0] is not None], columns=["k", "x"], dtype=object)
    merged = one.merge(other, on="k", how=how, suffixes=("", "_right"))
    expected = [tuple(None if _is_nan(value) else value for value in row) for row in merged.itertuples(index=False)]
    if how == "left":
        assert found == expected  # pandas keeps the left side's order
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


@quick
@given(SIDE, SIDE)
def test_lists_frames_and_tables_join_alike(left: list[Any], right: list[Any]) -> None:
    start = table(left, ["k", "x"])
    expected = list(start.join(table(right, ["k", "y"]), on="k", how="left"))
    if right:
        dicts = [{"k": key, "y": value} for key, value in right]
        assert list(start.join(dicts, on="k", how="left")) == expected
    frame = pd.DataFrame(right, columns=["k", "y"], dtype=object)
    assert list(start.join(frame, on={"k": "k"}, how="left")) == expected


def test_results_join_another_run_and_a_list(results: Results, tmp_path: Path) -> None:
    people = [{"city": "Oslo", "people": 700}, {"city": "Rome", "people": 9}]
    joined = results.select("agent.age", "scenario.city", "rating").join(people, on={"scenario.city": "city"})
    assert joined.columns == ["agent.age", "scenario.city", "answer.rating", "people"]
    assert (len(joined), joined[0]) == (20, (20, "Oslo", 0, 700))
    with Results.open(files.city(tmp_path / "other.run")) as other:
        both = results.select("ordinal", "rating").join(other.select("ordinal", "rating"), on="interview.ordinal")
        assert both.columns == ["interview.ordinal", "answer.rating", "answer.rating_right"]
        assert all(row[1] == row[2] for row in both)
        assert len(both) == 40
    means = results.group_by("city").agg(mean="mean(rating)")
    above = results.select("city", "rating").join(means, on="city").filter("rating > mean")
    assert list(above.tally("city")) == [("Oslo", 8), ("Lima", 8)]


def test_dates_numpys_numbers_and_what_is_missing_come_from_a_frame_as_ours() -> None:
    frame = pd.DataFrame(
        {
            "k": [1, 2, 3],
            "day": pd.to_datetime(["2026-01-02", None, "2026-01-04"]),
            "n": pd.array([1, None, 3], "Int64"),
        }
    )
    rows = list(table([(1,), (2,), (2.0,), (True,)], ["k"]).join(frame, on="k"))
    assert rows == [(1, "2026-01-02T00:00:00", 1), (2, None, None), (2.0, None, None)]
    dicts = [{"k": 1, "day": dt.date(2026, 1, 2), "bad": "\ud800"}]
    assert list(table([(1,)], ["k"]).join(dicts, on="k")) == [(1, "2026-01-02", "�")]


@pytest.mark.parametrize(
    ("join", "said"),
    [
        (lambda t: t.join([{"k": 1}], on="kk"), "no column 'kk'"),
        (lambda t: t.join([{"kk": 1}], on="k"), "Did you mean 'kk'"),
        (lambda t: t.join([{"k": 1}], on="k", how="outer"), 'Use "inner" or "left"'),
        (lambda t: t.join([{"k": 1}], on=[]), "needs a column"),
        (lambda t: t.join(5, on="k"), "not int"),
        (lambda t: t.join([{"k": 1, "x": 2}], on="k", suffix=""), "Two columns would be called 'x'"),
    ],
)
def test_a_join_that_cannot_be_says_what_to_write(join: Any, said: str) -> None:
    source = ListedRows(["k", "x"], [])
    with pytest.raises(InvalidInput) as caught:
        join(Table(source))
    assert said in str(caught.value)
    assert source.reads == 0


def test_long_has_a_row_for_each_interview_and_question_and_wide_is_its_reverse(results: Results) -> None:
    long = results.long("agent.age")
    assert long.columns == ["interview.ordinal", "agent.age", "question", "answer"]
    assert list(long.head(3)) == [(0, 20, "mood", "Good"), (0, 20, "rating", 0), (1, 20, "mood", "Bad")]
    assert len(long) == 80
    wide = long.wide(["interview.ordinal", "agent.age"], "question", "answer")
    assert wide.columns == ["interview.ordinal", "agent.age", "mood", "rating"]
    assert list(wide) == results.select("ordinal", "age", "mood", "rating").to_list()
    assert results.wide("agent.age", "scenario.city", "rating").head(2).to_list() == [(20, 0, 3), (21, 6, 9)]


@quick
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(TEXTS), VALUES), unique_by=lambda row: row[:2]))
def test_wide_is_pandas_pivot(rows: list[Any]) -> None:
    made = table(rows, ["k", "name", "value"])
    found = made.wide("k", "name", "value")
    frame = pd.DataFrame(rows, columns=["k", "name", "value"]).astype(object)
    pivoted = frame.pivot(index="k", columns="name", values="value")
    assert sorted(found.columns[1:]) == sorted(pivoted.columns)
    for row in found:
        expected = {name: value for key, name, value in rows if key == row[0]}
        assert dict(zip(found.columns[1:], row[1:], strict=True)) == {name: expected.get(name) for name in pivoted}
    assert [row[0] for row in found] == list(pivoted.index)


def test_wide_refuses_two_values_for_one_place_and_too_many_columns() -> None:
    twice = table([(1, "a", 1), (1, "a", 2)], ["k", "name", "value"])
    with pytest.raises(InvalidInput, match=r"Two rows have 'a' of 'name' for 1\..*group_by"):
        list(twice.wide("k", "name", "value"))
    many = table([(1, n, n) for n in range(1_001)], ["k", "name", "value"])
    with pytest.raises(InvalidInput, match="more than 1,000 values"):
        many.wide("k", "name", "value")
    with pytest.raises(InvalidInput, match="Two columns would be called 'k'"):
        table([(1, "k", 1)], ["k", "name", "value"]).wide("k", "name", "value")


def test_a_joined_column_does_not_hide_one_by_its_bare_name(results: Results) -> None:
    found = results.select("city", "rating").join([{"city": "Oslo", "rating": 99, "ordinal": 1}], on="city")
    assert found.columns == ["scenario.city", "answer.rating", "rating_right", "ordinal"]
    assert len(found.filter("rating > 50")) == 0
    assert len(found.filter("rating_right > 50")) == 20
    tallied = results.select("interview.ordinal").join([{"ordinal": 1, "x": 2}], on={"ordinal": "ordinal"})
    assert tallied.columns == ["interview.ordinal", "x"]


def test_an_empty_list_joins_nothing_and_a_polars_frame_as_one_of_pandas(results: Results) -> None:
    chosen = results.select("city", "rating")
    assert list(chosen.join([], on="city")) == []
    assert list(chosen.join([], on="city", how="left")) == chosen.to_list()
    rows = {"city": ["Oslo", None], "day": [dt.date(2026, 1, 2), None]}
    expected = list(chosen.join(pd.DataFrame(rows, dtype=object), on="city"))
    assert list(chosen.join(pl.DataFrame(rows), on="city")) == expected
    assert expected[0][2] == "2026-01-02"


def test_questions_come_back_from_long_in_the_order_in_which_they_were_asked(tmp_path: Path) -> None:
    path = files.write(tmp_path / "a.run", files.job(files.survey("zeal", "mood", "age")), lambda _: ["x", "y", "z"])
    with Results.open(path) as results:
        long = results.long("agent.*")
        assert long.columns[:2] == ["interview.ordinal", "agent.agent_name"]
        wide = long.wide("interview.ordinal", "question", "answer")
        assert wide.columns == ["interview.ordinal", "zeal", "mood", "age"]


def test_values_of_numpy_join_as_plain_ones_and_columns_have_texts_as_names(results: Results) -> None:
    side = [{"city": "Oslo", "since": np.datetime64("1048-01-01"), "two": np.array([1, 2])}]
    joined = results.select("city").distinct().join(side, on="city")
    assert joined.to_list() == [("Oslo", "1048-01-01", [1, 2])]
    with pytest.raises(InvalidInput, match="called by a text, not by 1"):
        results.join([{"city": "Oslo", 1: 2}], on="city")  # pyright: ignore[reportArgumentType]
