"""`group_by(...).agg(...)`, `distinct` and `tally`: the same in a run file, in several, and on a table's rows, and the
same as pandas computes.
"""

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import ExpressionError, InvalidInput
from headrace.results.columns.value_keys import sort_keys
from headrace.results.reading.file_view import FileView
from headrace.results.results import Results
from headrace.results.tables.table import Table
from headrace.survey.agent import Agent
from tests.results import files
from tests.results.rows import ListedRows

TEXTS = ["Oslo", "São Paulo", "'; drop table interviews; --", "{{ agent.city }}", 'quo"te', "", "%s", "NULL"]
CITIES = st.none() | st.sampled_from(TEXTS)
WHOLE = st.none() | st.integers(-3, 3) | st.integers()
REAL = st.none() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False, width=32)
ANY = WHOLE | REAL | st.sampled_from(TEXTS) | st.booleans() | st.just(math.nan) | st.just(files.MISSING)
PEOPLE = st.lists(st.tuples(CITIES, WHOLE | ANY, ANY), min_size=1, max_size=15)
NUMERIC = ("sum", "mean", "median", "std", "var")
OTHERS = ("count", "min", "max", "first", "last", "nunique", "any", "all", "share")
ALL = {
    **{name: f"{name}(answer.rating)" for name in (*NUMERIC, *OTHERS)},
    "upper": "quantile(answer.rating, 0.9)",
    "people": "count()",
    "high": "share(answer.rating > 1)",
    "double": "mean(answer.rating * 2)",
}
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _written(directory: str, people: list[tuple[Any, Any, Any]], name: str = "g.run") -> Path:
    agents = [Agent({"city": city}, name=f"p{n}") for n, (city, _, _) in enumerate(people)]
    answers = [[mood, rating] for _, mood, rating in people]
    return files.write(Path(directory) / name, files.job(files.survey("mood", "rating"), agents), answers.__getitem__)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


def _assert_same(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert all(map(_same, left, right)), (left, right)


@quick
@given(PEOPLE)
def test_groups_of_a_file_of_two_files_and_of_a_table_are_exactly_the_same(people: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory, Results.open(_written(directory, people)) as results:
        rows = [tuple(row) for row in results.select("agent.city", "mood", "rating").to_list()]
        table = Table(ListedRows(["agent.city", "answer.mood", "answer.rating"], rows))
        for keys in (["agent.city"], ["answer.mood"], ["agent.city", "answer.mood"]):
            found = list(results.group_by(*keys).agg(**ALL))
            _assert_same(found, list(table.group_by(*keys).agg(**ALL)))
            quickly = {name: call for name, call in ALL.items() if name in ("count", "min", "max", "sum", "mean")}
            _assert_same(list(results.group_by(*keys).agg(**quickly)), list(table.group_by(*keys).agg(**quickly)))
            _assert_same(list(results.distinct(*keys)), list(table.distinct(*keys)))
            _assert_same(list(results.tally(*keys)), list(table.tally(*keys)))
            half = len(rows) // 2
            both = results[:half] + results[half:]
            _assert_same(list(both.group_by(*keys).agg(**ALL)), found)


@quick
@given(st.lists(st.tuples(CITIES, st.sampled_from(TEXTS), REAL | st.just(files.MISSING)), min_size=1, max_size=20))
def test_groups_are_those_of_pandas(people: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory, Results.open(_written(directory, people)) as results:
        frame = pd.DataFrame(
            [tuple(row) for row in results.select("agent.city", "mood", "rating").to_list()],
            columns=["city", "mood", "rating"],
        )
        frame["rating"] = frame["rating"].astype("float64")
        groups = frame.groupby(["city", "mood"], dropna=False, sort=False)["rating"]
        found = results.group_by("agent.city", "mood").agg(**ALL).to_dicts()
        assert len(found) == len(groups)
        expected = {tuple(None if pd.isna(k) else k for k in key): held for key, held in groups}
        for row in found:
            held = expected[row["city"], row["mood"]]
            for name in (*NUMERIC, "min", "max", "count", "nunique"):
                _assert_near(row[name], getattr(held, name)())
            _assert_near(row["first"], held.dropna().iloc[0] if held.notna().any() else None)
            _assert_near(row["last"], held.dropna().iloc[-1] if held.notna().any() else None)
            _assert_near(row["upper"], held.quantile(0.9))
            assert row["people"] == len(held)
            _assert_near(row["high"], (held.dropna() > 1).mean())
            _assert_near(row["double"], (held * 2).mean())
            assert (row["any"], row["all"]) == (bool(held.any()), bool(held.dropna().astype(bool).all()))


def _assert_near(found: Any, expected: Any) -> None:
    if expected is None or pd.isna(expected):
        assert found is None
    else:
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@quick
@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_sums_and_means_are_exact_and_rounded_once(numbers: list[Any]) -> None:
    total = sum(map(Fraction, numbers))
    table = Table(ListedRows(["k", "x"], [(1, number) for number in numbers]))
    ((_, found, mean),) = table.group_by("k").agg("sum(x)", "mean(x)")
    is_whole = all(isinstance(number, int) for number in numbers)
    assert found == (int(total) if is_whole else _rounded(total))
    assert mean == _rounded(total / len(numbers))
    assert type(found) is (int if is_whole else float)


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@quick
@given(st.lists(st.tuples(CITIES | ANY.filter(lambda v: v is not files.MISSING), st.integers(0, 3)), max_size=15))
def test_groups_come_in_the_order_of_their_keys_none_first(rows: list[Any]) -> None:
    keys = [key for key, _ in Table(ListedRows(["k", "x"], rows)).group_by("k").agg("count()")]
    places = [_place(key) for key in keys]
    assert places == sorted(places)
    table = Table(ListedRows(["k", "x"], rows))
    _assert_same(list(table.distinct("k").sort_by("k").tally("k").select("count")), [(1,)] * len(keys))


def _place(value: Any) -> tuple[int, Any, Any]:
    stored, tie = sort_keys(value)
    if stored is None:
        return 0, 0, ""
    return (2, stored.encode(), "") if isinstance(stored, str) else (1, stored, tie or "")


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


def test_what_the_issue_writes_runs(results: Results) -> None:
    found = results.group_by("scenario.city").agg(mean="mean(answer.rating)", count="count()")
    assert found.columns == ["scenario.city", "mean", "count"]
    assert list(found) == [("Lima", 5.0, 20), ("Oslo", 4.0, 20)]
    assert list(found.filter("mean > 4.5").select("city")) == [("Lima",)]


def test_names_of_what_has_no_name(results: Results) -> None:
    found = results.group_by("city").agg("mean(answer.rating)", "count()", "quantile(rating, 0.9)")
    assert found.columns == ["city", "mean_rating", "count", "quantile_rating_0_9"]
    assert list(results.group_by("city").count()) == [("Lima", 20), ("Oslo", 20)]


def test_details_computed_columns_and_views_are_grouped(results: Results) -> None:
    tokens = results.group_by("city").agg(tokens="sum(raw_model_response.mood_input_tokens)")
    assert list(tokens) == [("Lima", 200), ("Oslo", 200)]
    doubled = results.mutate("double = rating * 2").filter("agent.age < 25").sort_by("rating", reverse=True)
    pairs = doubled.select("city", "rating").to_list()
    lima, oslo = ([rating for of, rating in pairs if of == city] for city in ("Lima", "Oslo"))
    found = doubled.group_by("city").agg("sum(double)", "first(rating)")
    assert list(found) == [("Lima", sum(lima) * 2, max(lima)), ("Oslo", sum(oslo) * 2, max(oslo))]
    by_double = results.mutate("double = rating * 2").group_by("double").agg(n="count()")
    assert list(by_double)[:2] == [(0, 4), (2, 4)]
    assert list(results.group_by("interview.status").agg("count()")) == [("done", 34), ("failed", 6)]


def test_a_group_by_of_groups(results: Results) -> None:
    by_age = results.group_by("agent.age", "mood").agg(n="count()")
    ages: dict[Any, list[int]] = {}
    for age, mood in results.select("age", "mood").to_list():
        ages.setdefault(mood, []).append(age)
    expected = [(mood, len(ages[mood]), max(ages[mood])) for mood in (None, "Bad", "Good")]
    assert list(by_age.group_by("mood").agg("sum(n)", "max(age)")) == expected


@pytest.mark.parametrize(
    ("keys", "call", "said"),
    [
        (["agent.agee"], "count()", "Did you mean 'agent.age'"),
        (["mood"], "men(answer.rating)", "Did you mean 'mean'"),
        (["mood"], "mean(answer.ratng)", "Did you mean 'answer.rating'"),
        (["mood"], "mean()", "Write mean(answer.rating)"),
        (["mood"], "quantile(rating)", "Write quantile(answer.rating, 0.9)"),
        (["mood"], "quantile(rating, 9)", "from 0 to 1"),
        (["mood"], "mean(rating) + 1", "no call of a function"),
        (["mood"], "mean(rating * 2)", 'agg(name="mean(rating * 2)")'),
        (["mood"], "mean(__import__('os'))", "There is no function"),
        (["mood"], "mean(x for x in y)", "not part of the language"),
        (["mood"], "mean(rating", "Not a valid expression"),
        (["mood"], "mood(rating)", "no function mood"),
    ],
)
def test_a_mistake_says_what_to_write(results: Results, keys: list[str], call: str, said: str) -> None:
    with pytest.raises((InvalidInput, ExpressionError)) as caught:
        results.group_by(*keys).agg(call)
    assert said in str(caught.value)


def test_what_pandas_takes_is_answered_with_what_to_write(results: Results) -> None:
    groups: Any = results.group_by("city")
    with pytest.raises(InvalidInput, match=r'agg\("mean\(rating\)"\)'):
        groups.agg({"rating": "mean"})
    with pytest.raises(InvalidInput, match=r'agg\(x="mean\(answer.rating\)"\)'):
        groups.agg(x=np.mean)
    with pytest.raises(InvalidInput, match="not int"):
        groups.agg(5)
    with pytest.raises(AttributeError, match=r"agg\(mean="):
        groups.mean()
    assert repr(groups) == (
        "GroupBy('city'): agg(...) gives a table with a row for each group, count() how many rows each has"
    )


def test_two_columns_of_one_name_are_refused(results: Results) -> None:
    with pytest.raises(InvalidInput, match="Two columns would be called 'mood'"):
        results.group_by("mood").agg(mood="count()")
    with pytest.raises(InvalidInput, match="nothing to compute"):
        results.group_by("mood").agg()


def test_sums_beyond_64_bits_stay_exact(tmp_path: Path) -> None:
    people = [("Oslo", "x", 2**63 - 1)] * 5 + [("Lima", "x", -(2**63))] * 3
    with Results.open(_written(str(tmp_path), people)) as results:
        found = list(results.group_by("city").agg("sum(rating)", "mean(rating)"))
    assert found == [("Lima", -3 * 2**63, float(-(2**63))), ("Oslo", 5 * (2**63 - 1), float(2**63 - 1))]


def test_a_list_of_a_table_makes_its_rows_once() -> None:
    source = ListedRows(["k"], [(n % 3,) for n in range(3_000)])
    table = Table(source)
    assert len(list(table)) == 3_000
    assert source.reads == 1
    assert list(table.group_by("k").count()) == [(0, 1000), (1, 1000), (2, 1000)]
    assert source.reads == 2


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 5", [False, True]),
        ("not x > 5", [True, False]),
        ("x != 7", [True, False]),
        ("x in [7]", [False, True]),
        ("x in [7, None]", [False, True, True, False]),
        ("x is None", [False, False, True, False]),
        ("x > 5 or x is None", [False, True, True]),
        ("3 < x < 9 and k == 1", [False, True]),
        ("x > 5 and k == 2", [False] * 4),
        ("not (x > 5 and k == 2)", [True] * 4),
        ("x", [True, True]),
    ],
)
def test_a_condition_on_a_missing_value_is_missing(tmp_path: Path, condition: str, expected: list[bool]) -> None:
    numbers = [3, 7, None, math.nan]
    functions = {
        **{name: f"{name}({condition})" for name in ("share", "mean", "any", "all", "sum")},
        "n": f"count({condition})",
    }
    share = sum(expected) / len(expected)
    row = (share, share if condition != "x" else 5.0, any(expected), all(expected))
    row = (*row, sum(expected) if condition != "x" else 10, len(expected))
    table = Table(ListedRows(["k", "x"], [(1, number) for number in numbers]))
    assert list(table.group_by("k").agg(**functions)) == [(1, *row)]
    asked = files.job(files.survey("q"), [Agent({"k": 1, "x": number}) for number in numbers])
    run = asked.run(tmp_path / "a.run", aggregate=functions, group_by="k", progress_bar=False)
    assert list(run.group_by("k").agg(**functions)) == [(1, *row)]
    assert [found[: len(row) + 1] for found in run.aggregate()] == [(1, *row)]


def test_a_condition_is_computed_by_sqlite_as_by_python(tmp_path: Path) -> None:
    people = [("Oslo", "Good", number) for number in (3, 7, None, files.MISSING)]
    with Results.open(_written(str(tmp_path), people)) as results:
        functions = {name: f"{name}(rating > 5)" for name in ("share", "any", "all", "count", "sum")}
        rows = [tuple(row) for row in results.select("city", "rating").to_list()]
        expected = [("Oslo", 0.5, True, False, 2, 1)]
        assert list(results.group_by("city").agg(**functions)) == expected
        assert list(Table(ListedRows(["city", "rating"], rows)).group_by("city").agg(**functions)) == expected


def test_without_columns_all_rows_are_one_group(results: Results) -> None:
    functions = {"mean": "mean(rating)", "n": "count()", "middle": "median(rating)", "first": "first(mood)"}
    ratings = results.select("rating").to_list(remove_none=True)
    for one in (results, results.select("rating", "mood").join([{"mood": "Good"}], on="mood", how="left")):
        found = one.group_by().agg(**functions)
        assert found.columns == ["mean", "n", "middle", "first"]
        ((mean, n, _, _),) = found
        assert (mean, n) == (pytest.approx(sum(ratings) / len(ratings)), 40)
        assert list(one.group_by().agg("mean(rating)", "count()")) == [(mean, 40)]
        assert list(one.group_by().count()) == [(40,)]
        assert list(one.filter("rating > 99").group_by().agg(**functions)) == [(None, 0, None, None)]
        assert list(one.filter("rating > 99").group_by().agg("sum(rating)", "count()")) == [(0, 0)]


def test_the_columns_of_a_file_are_looked_up_once_however_many_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each column, a thousand of them took ten seconds."""
    asked: list[FileView] = []
    catalog = FileView.catalog
    monkeypatch.setattr(FileView, "catalog", lambda self: asked.append(self) or catalog(self))
    counts: list[int] = []
    for width in (3, 30):
        names = [f"q{number}" for number in range(width)]
        path = files.write(tmp_path / f"{width}.run", files.job(files.survey(*names)), lambda _, w=width: ["x"] * w)
        with Results.open(path) as results:
            asked.clear()
            sums = results.group_by(*names).agg(**{f"n{name}": f"count({name})" for name in names})
            assert len(results.long()) == width
            assert len(results.tally()) == len(results.distinct()) == len(sums) == 1
        counts.append(len(asked))
    assert counts[0] == counts[1]
