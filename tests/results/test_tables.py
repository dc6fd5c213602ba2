"""Tables, such as `tally` and `sql` give: their verbs, compared with the same on lists of rows."""

import copy
import math
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ExpressionError, InvalidInput
from headrace.results.columns.value_keys import sort_keys
from headrace.results.results import Results
from headrace.results.tables.table import Table
from headrace.results.tables.table_rows import TableRows
from tests.results import files
from tests.results.rows import ListedRows

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["'; drop table rows; --", "{{ mood }}", 'quo"te', "é", "\0"])
    | st.lists(st.integers(0, 3), max_size=2)
)
ROWS = st.lists(st.tuples(VALUES, VALUES, st.integers(0, 3)), max_size=12)
NAMES = ["answer.mood", "agent.age", "count"]
quick = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


def table(rows: list[tuple[Any, ...]], names: list[str] = NAMES) -> Table:
    return Table(ListedRows(names, rows))


@quick
@given(ROWS)
def test_rows_come_back_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    made = table(rows)
    assert list(made) == rows
    assert [type(value) for row in made for value in row] == [type(value) for row in rows for value in row]
    assert len(made) == len(rows)
    assert made.columns == NAMES
    assert list(made.sort_by()) == rows
    assert list(made.tail(10**6)) == rows


@quick
@given(ROWS, st.booleans(), st.booleans())
def test_sorting_is_stable_and_each_key_has_its_direction(rows: list[Any], first: bool, second: bool) -> None:
    expected = sorted(rows, key=lambda row: row[2], reverse=second)
    expected = sorted(expected, key=lambda row: _place(row[0]), reverse=first)
    if first:  # Python keeps equal rows in order when it reverses, as we do
        expected = sorted(
            sorted(rows, key=lambda row: row[2], reverse=second), key=lambda row: _place(row[0]), reverse=True
        )
    assert list(table(rows).sort_by("mood", "count", reverse=[first, second])) == expected


def _place(value: Any) -> tuple[int, Any, Any]:
    stored, tie = sort_keys(value)
    if stored is None:
        return 0, 0, ""
    if isinstance(stored, str):
        return 2, stored.encode(), ""
    return 3 if isinstance(stored, bytes) else 1, stored, tie or ""


@quick
@given(ROWS, st.integers(-14, 14) | st.none(), st.integers(-14, 14) | st.none())
def test_a_slice_is_the_slice_of_a_list(rows: list[Any], start: int | None, stop: int | None) -> None:
    assert list(table(rows)[start:stop]) == rows[start:stop]
    assert len(table(rows)[start:stop]) == len(rows[start:stop])
    if start is not None and -len(rows) <= start < len(rows):
        assert table(rows)[start] == rows[start]


@quick
@given(ROWS, st.integers(0, 14))
def test_head_and_tail_give_the_ends(rows: list[Any], n: int) -> None:
    assert list(table(rows).head(n)) == list(table(rows).limit(n)) == rows[:n]
    assert list(table(rows).tail(n)) == rows[len(rows) - min(n, len(rows)) :]


@quick
@given(ROWS)
def test_a_filter_keeps_what_is_true(rows: list[Any]) -> None:
    assert list(table(rows).filter("count > 1 and mood is not None")) == [
        row for row in rows if row[2] > 1 and row[0] is not None
    ]
    assert list(table(rows).filter("agent.age == mood")) == [row for row in rows if row[1] == row[0]]


@quick
@given(ROWS, st.integers(0, 14), st.integers())
def test_a_sample_has_each_row_at_most_once_and_is_the_same_for_a_seed(rows: list[Any], n: int, seed: int) -> None:
    numbered = [(number, *row) for number, row in enumerate(rows)]
    made = table(numbered, ["n", *NAMES])
    drawn = list(made.sample(n, seed=seed))
    assert len(drawn) == len({row[0] for row in drawn}) == min(n, len(rows))
    assert drawn == list(made.sample(n, seed=seed)) == list(made.shuffle(seed))[:n]
    assert sorted(made.shuffle(seed), key=lambda row: row[0]) == numbered
    assert len(made.sample(frac=0.5, seed=seed)) == len(rows) // 2


def test_columns_are_chosen_renamed_dropped_and_computed() -> None:
    made = table([("Good", 30, 2), (None, 40, 3)])
    assert made.select("count", "answer.*").columns == ["count", "answer.mood"]
    assert list(made.select("count", "mood")) == [(2, "Good"), (3, None)]
    assert made.drop("age").columns == ["answer.mood", "count"]
    assert made.rename("count", "people").columns == ["answer.mood", "agent.age", "people"]
    assert made.rename({"mood": "m", "agent.age": "years"}).columns == ["m", "years", "count"]
    assert list(made.mutate("double = count * 2 + agent.age").select("double")) == [(34,), (46,)]
    assert made.mutate("double = count * 2").mutate("four = double * 2").to_dicts()[0]["four"] == 8


def test_verbs_run_nothing_and_tables_stay_as_they_are() -> None:
    source = ListedRows(NAMES, [("Good", 30, 2)] * 5)
    made = Table(source)
    verbs = made.filter("count > 1").sort_by("mood").select("mood").rename("mood", "m").mutate("x = m + 'x'")
    verbs.head(3).tail(2).sample(1).shuffle()[1:-1].drop("x")
    assert source.reads == 0
    assert list(verbs.head(1)) == [("Good", "Goodx")]
    assert (made.columns, len(made)) == (NAMES, 5)


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (lambda t: t.filter("cuont > 1"), "Did you mean 'count'"),
        (lambda t: t.filter("mood == Good"), "put it in quotes: 'Good'"),
        (lambda t: t.select("agent.agee"), "Did you mean 'agent.age'"),
        (lambda t: t.select("agents.*"), "No column is called like 'agents.*'"),
        (lambda t: t.sort_by("moo"), "Did you mean 'mood'"),
        (lambda t: t.sort_by("mood", "count", reverse=[True]), "2 columns and 1 directions"),
        (lambda t: t.rename("count", "answer.mood"), "a column 'answer.mood' already"),
        (lambda t: t.mutate("count = 1"), "a column 'count' already"),
        (lambda t: t.mutate("1 + 1"), "names no new column"),
        (lambda t: t.sample(), "sample takes n or frac"),
        (lambda t: t.sample(frac=2), "from 0 to 1"),
        (lambda t: t[::2], "in steps of 2"),
    ],
)
def test_a_mistake_is_refused_at_once_with_what_to_write(verb: Any, said: str) -> None:
    source = ListedRows(NAMES, [])
    with pytest.raises((InvalidInput, ExpressionError)) as caught:
        verb(Table(source))
    assert said in str(caught.value)
    assert source.reads == 0


def test_a_row_that_is_not_there_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="no row 3 among 2"):
        table([("Good", 30, 2)] * 2)[3]
    with pytest.raises(IndexError, match="no row -3 among 2"):
        table([("Good", 30, 2)] * 2)[-3]


def test_columns_with_one_name_are_kept_and_refused_by_name() -> None:
    made = table([(1, 2)], ["x", "x"])
    assert list(made.sort_by()) == [(1, 2)]
    with pytest.raises(InvalidInput, match="'x' could be several columns"):
        made.select("x")


def test_sql_and_tally_give_tables_with_verbs(results: Results, tmp_path: Path) -> None:
    moods = results.tally("mood")
    assert list(moods.filter("mood is not None").sort_by("mood").select("mood")) == [("Bad",), ("Good",)]
    assert [row[1] for row in moods.sort_by("count")] == sorted(row[1] for row in moods)
    ages = results.sql('select "agent.age" as age, count(*) as n from self group by 1')
    assert list(ages.filter("age > 37").mutate("m = n * 10")) == [(38, 2, 20), (39, 2, 20)]
    assert list(ages.tail(1)) == [ages[-1]] == [(39, 2)]
    assert ages.head(2).to_csv(tmp_path / "a.csv").read_text().split() == ["age,n", "20,2", "21,2"]
    assert str(ages.sort_by("age", reverse=True).head(3)).splitlines()[2].split() == ["39", "2"]


def test_printing_a_sorted_table_says_how_many_rows_there_are() -> None:
    many = table([("Good", n, 1) for n in range(50)])
    assert str(many).endswith("and more")
    assert str(many.sort_by("age", reverse=True)).endswith("and 30 more")


def test_a_source_that_holds_a_read_is_read_to_its_end_before_rows_are_given() -> None:
    source: TableRows = ListedRows(["n"], [(n,) for n in range(2_500)])
    source.holds_read = True
    rows = iter(Table(source).filter("n % 2 == 0"))
    assert next(rows) == (0,)
    assert isinstance(source, ListedRows)
    assert source.is_open is False
    assert sum(1 for _ in rows) == 1_249


def test_several_columns_are_made_at_once(results: Results) -> None:
    for one in (results, results.tally("rating").rename("count", "n")):
        found = one.mutate("twice = rating * 2", "four = twice * 2").select("rating", "twice", "four")
        assert next(row for row in found.to_list() if row[0] == 3) == (3, 6, 12)
    assert len(results.mutate("x = age", {}).columns) == len(results.columns) + 1
    with pytest.raises(InvalidInput, match="no functions of yours"):
        results.mutate("x = f(age)", {"f": abs})


@pytest.mark.parametrize("n", [0, 1, 3, -1, -3, -100, 100])
def test_head_and_tail_are_those_of_pandas(results: Results, n: int) -> None:
    frame = pd.DataFrame({"x": range(40)})
    numbered = results.select("interview.ordinal")
    for one in (numbered, numbered[:25] + numbered[25:], numbered.distinct()):
        assert [*one.head(n).to_list()] == frame.head(n)["x"].tolist()
        assert [*one.tail(n).to_list()] == frame.tail(n)["x"].tolist()
    assert len(results.sample(1_000)) == 40 == len(numbered.distinct().sample(1_000))


def test_printed_numbers_are_rounded_and_missing_groups_named(results: Results) -> None:
    found = table([(None, 2 / 3, 1), ("Good", 1234567.891234, 2), ("Bad", 1e-7 / 3, 3), ("", math.inf, 4)])
    lines = [line.split() for line in str(found).splitlines()]
    assert lines[2:] == [
        ["None", "0.666667", "1"],
        ["Good", "1234567.9", "2"],
        ["Bad", "3.33333e-08", "3"],
        ["inf", "4"],
    ]
    assert "<td>None</td><td>0.666667</td>" in found._repr_html_()
    assert found.to_list()[0] == (None, 2 / 3, 1)
    assert "0.6666666666666666" in found.to_markdown()
    assert ["None"] in [line.split()[:1] for line in str(results.tally("mood")).splitlines()]


def test_a_column_in_brackets_copies_and_pickles_say_what_to_do(results: Results) -> None:
    made: Any
    for made in (results, results.tally("mood")):
        with pytest.raises(InvalidInput, match=r'select\("mood"\)'):
            made["mood"]
        assert copy.deepcopy(made).to_list() == copy.copy(made).to_list() == made.to_list()
        with pytest.raises(InvalidInput, match=r"cannot be pickled.*Results.open\("):
            pickle.dumps(made)


@pytest.mark.parametrize(
    ("name", "way"),
    [("groupby", "group_by("), ("value_counts", "tally("), ("sort_values", "sort_by("), ("query", "filter(")],
)
def test_names_of_pandas_say_what_to_write(results: Results, name: str, way: str) -> None:
    for made in (results, results.tally("mood")):
        with pytest.raises(AttributeError, match=re.escape(way)):
            getattr(made, name)
    with pytest.raises(AttributeError, match=r"group_by\(\)"):
        getattr(results, "describe")  # noqa: B009


def test_failed_questions_say_how_they_are_read(results: Results) -> None:
    assert "print(results.failed())" in repr(results.failed())
    assert len(list(results.failed())) == len(list(iter(results.failed()))) > 0
