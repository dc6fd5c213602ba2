"""Equal values are one value wherever values are compared, and whole numbers of any size have their exact order."""

import math
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import apsw
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionFreeText, Results
from headrace.results.columns.value_keys import sort_keys, value_key
from headrace.results.tables.table import Table
from tests.results import files
from tests.results.rows import ListedRows

EDGES = [2**53, 2**63, 2**64, 10**20, int(sys.float_info.max), 10**400]
HUGE = st.builds(
    lambda edge, step, sign: sign * (edge + step), st.sampled_from(EDGES), st.integers(-3, 3), st.sampled_from([1, -1])
)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([float(edge) for edge in EDGES[:-1]] + [-(2.0**63), -0.0])
NUMBERS = st.integers(-2, 2) | HUGE | FLOATS
SCALARS = NUMBERS | st.none() | st.booleans() | st.just(math.nan) | st.sampled_from(["", "1", "true", "nan"])
VALUES = SCALARS | st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "$int"]), inner, max_size=2),
    max_leaves=4,
)
KNOWN = [
    [2**63, float(2**63), 2**63 + 1, -(2**63), -(2**63) - 1],
    [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}, {"a": True, "b": 2}],
    [[1], [1.0], [True], 1, 1.0, True, "1", [math.nan], [math.nan], math.nan],
]
quick = settings(max_examples=60, deadline=None, derandomize=True)


def _same(one: Any, other: Any) -> bool:
    """What Python finds equal, but a bool is no number, and NaN is NaN."""
    if isinstance(one, list) and isinstance(other, list):
        left, right = cast("list[Any]", one), cast("list[Any]", other)
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(one, dict) and isinstance(other, dict):
        held, there = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return held.keys() == there.keys() and all(_same(held[key], there[key]) for key in held)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _groups(values: list[Any]) -> list[list[Any]]:
    """The values with those that are the same together, as they first occur."""
    found: list[list[Any]] = []
    for value in values:
        for group in found:
            if _same(group[0], value):
                group.append(value)
                break
        else:
            found.append([value])
    return found


@quick
@given(st.lists(VALUES, max_size=8))
@example(KNOWN[0])
@example(KNOWN[1])
@example(KNOWN[2])
def test_values_share_a_key_where_they_are_equal_and_only_there(values: list[Any]):
    for one, other in combinations(values, 2):
        assert (value_key(one) == value_key(other)) == _same(one, other), (one, other)


@quick
@given(st.lists(NUMBERS, max_size=12))
@example([*KNOWN[0], math.inf, -math.inf, 10**400, -(10**400), -(10**401), int(sys.float_info.max) + 1])
def test_sqlite_sorts_numbers_of_any_size_by_their_sort_keys_as_python_does(values: list[Any]):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE numbers(position INTEGER PRIMARY KEY, one, two)")
    connection.executemany("INSERT INTO numbers(one, two) VALUES(?, ?)", [sort_keys(value) for value in values])
    places = [place - 1 for (place,) in connection.execute("SELECT position FROM numbers ORDER BY one, two, position")]
    assert [values[place] for place in places] == sorted(values)
    table = Table(ListedRows(["v"], [(value,) for value in values]))
    assert [value for (value,) in table.sort_by("v")] == sorted(values)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(VALUES, min_size=1, max_size=8))
@example(KNOWN[0])
@example(KNOWN[1])
@example(KNOWN[2])
def test_every_verb_has_the_same_groups_of_traits_answers_and_rows_of_a_table(values: list[Any]):
    groups = _groups(values)
    there = [group for group in groups if not (group[0] is None or group[0] != group[0])]
    pairs = sum(len(group) ** 2 for group in there)
    with tempfile.TemporaryDirectory() as directory:
        job = files.job(files.survey("q"), [Agent(traits={"v": value}) for value in values])
        path = files.write(Path(directory) / "v.run", job, lambda ordinal: [values[ordinal]])
        with Results.open(path) as results:
            table = Table(ListedRows(["v", "n"], [(value, number) for number, value in enumerate(values)]))
            for source, name in ((results, "agent.v"), (results, "answer.q"), (table, "v")):
                assert [count for _, count in source.distinct(name).tally(name)] == [1] * len(groups)
                assert [count for _, count in source.tally(name)] == sorted(map(len, groups), reverse=True)
                counted = list(source.group_by(name).agg(n="count()", u=f"nunique({name})", first=f"first({name})"))
                assert sorted(n for _, n, _, _ in counted) == sorted(map(len, groups))
                assert sum(unique for _, _, unique, _ in counted) == len(there)
                assert len(source.select(name).join(table, on={name: "v"})) == pairs


def test_totals_of_a_run_have_the_groups_of_group_by(tmp_path: Path):
    for number, values in enumerate(KNOWN):
        people = AgentList(Agent(traits={"v": value}) for value in values)
        job = QuestionFreeText(question_name="q", question_text="Well?").by(people).by(Model("test"))
        options: dict[str, Any] = {"aggregate": {"n": "count()"}, "group_by": "agent.v"}
        job.run(tmp_path / f"{number}.run", limit=2, **options).close()
        with job.run(tmp_path / f"{number}.run", **options) as results:
            totals = [count for _, count in results.aggregate()]
            assert totals == [count for _, count in results.group_by("agent.v").agg(n="count()")]
            assert sorted(totals) == sorted(map(len, _groups(values)))


def test_a_wide_table_has_one_column_for_values_that_are_equal():
    rows = [("x", 1, "a"), ("y", 1.0, "b"), ("x", {"a": 1, "b": 2}, "c"), ("y", {"b": 2, "a": 1}, "d")]
    wide = Table(ListedRows(["who", "what", "value"], rows)).wide("who", columns="what", values="value")
    assert wide.columns == ["who", "1", "{'a': 1, 'b': 2}"]
    assert list(wide) == [("x", "a", "c"), ("y", "b", "d")]


def test_results_of_several_files_are_sorted_exactly(tmp_path: Path):
    values = [-(2**63), -(2**63) - 1, 2**63 + 1, 2**63, 10**400, math.inf]
    parts: list[Results] = []
    for number in range(2):
        job = files.job(files.survey("q"), [Agent(traits={"v": value}) for value in values[number::2]])
        parts.append(Results.open(files.write(tmp_path / f"{number}.run", job, lambda _: ["x"])))
    with parts[0], parts[1]:
        assert (parts[0] + parts[1]).sort_by("agent.v").select("agent.v").to_list() == sorted(values)
