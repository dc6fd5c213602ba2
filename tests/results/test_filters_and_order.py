"""Filters give the same by SQL and row by row; order is total, stable and the same by either way."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.expressions import compile_closure, parse, truth
from headrace.results.columns.binding import bind
from headrace.results.reading import conditions, stages
from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.values import encode_value
from tests.results import files

NUMBERS = [None, 0, 1, 5, 7.5, 2**53, -3]
TEXTS = [None, "", "5", "07", "good", "b\0d", "😀"]
MIXED = [2**70, float("nan"), "5", 5, [1], {"a": 1}, None, True, -(2**65), "", [0]]
TAGS = [["a"], ["b", "a"], {"a": 1}, [], None, ["a\0b", 1, float("nan"), 2**70, ["a"]], {"$int": "1", "a": 2}]
LIKES = [["x", "y"], [], ["'; --", "x"], ["y\0", "é"]]
AGENTS = [
    Agent({"age": age, "flag": flag, "odd": odd, "likes": likes, 'q"uote': 1, "a\\b": 2})
    for age, flag, odd, likes in zip(
        [1, 2.5, 30, 5], [True, False, None, True], [2**70, "x", [1], 5], LIKES, strict=True
    )
] + [Agent({"lonely": 1})]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    path = tmp_path_factory.mktemp("filters") / "f.run"
    models = [Model("test", temperature=0.5, canned_response="x"), Model("test", temperature=None)]
    of = files.job(
        files.survey("number", "text", "mixed", "flag", "tags", bools=["flag"]),
        AGENTS,
        [Scenario(city="Oslo", size=1), Scenario(city="Lima", size=2**80), Scenario(city="5")],
        models,
    )
    files.write(
        path,
        of,
        lambda n: [NUMBERS[n % 7], TEXTS[n % 7], MIXED[n % 11], [True, False, files.MISSING][n % 3], TAGS[n % 7]],
        [n for n in range(30) if n != 4],
        n=2,
    )
    with Results.open(path) as opened:
        opened.close()  # each test opens it again, and the check for leaks sees it closed
        yield opened


@pytest.fixture(autouse=True)
def _closed(results: Results) -> Iterator[None]:
    yield
    results.close()


IN_LISTS = [
    "'a' in answer.tags",
    "'$int' in tags",
    "'a' not in answer.tags",
    "answer.tags[0] == 'a'",
    "answer.tags[-1] != 'a'",
    "tags[0] in ['b', 'a\\0b']",
    "len(answer.tags) == 1",
    "len(tags) * 2 > number",
    "'x' in agent.likes and agent.likes[0] == 'x'",
    "len(agent.likes) < 2 or 'é' in agent.likes",
]
FILTERS = [
    "answer.number > 1",
    "not (number > 1)",
    "number == None",
    "number in [None, 5, '5']",
    "text < 'a'",
    "text == '5' or number == 5",
    "'o' in text",
    "startswith(text, '0')",
    "contains(text, 'd')",
    "answer.flag",
    "answer.flag == 1",
    "not answer.flag",
    "answer.flag is None",
    "agent.age < 5 and scenario.city == 'Oslo'",
    "agent.age is None",
    "agent.flag",
    "agent.flag == True",
    "agent.age + number > 6",
    "number / agent.age > 1",
    "agent.age if answer.flag else number",
    "scenario.city == 5",
    "interview.ordinal == '5'",
    "interview.ordinal in [5, 6.0, '7']",
    "interview.status == 'failed'",
    "iteration.iteration == 1",
    "iteration == '1'",
    "model.model == 'test' and temperature == 0.5",
    "model.temperature is None",
    "scenario.size > 2",
    "mixed == 5",
    "mixed > 4",
    "mixed is None",
    "mixed == 'x' or mixed",
    "len(mixed) == 1",
    "lower(text) == 'good'",
    "number % 2 == 1",
    "agent.odd == 5",
    "agent.lonely == 1",
    "1 < number < 8",
    *IN_LISTS,
    "1 in tags",
    "'5' in mixed",
]


def by_hand(results: Results, expression: str) -> list[int]:
    rows = results.select("*").to_dicts(remove_prefix=False)
    catalog = results._parts[0].catalog()
    holds = truth(compile_closure(parse(expression), lambda name: _get(catalog.find(name).full_name)))
    return [row["interview.ordinal"] for row in rows if holds(row)]


def _get(name: str) -> Any:
    return lambda row: row[name]


@pytest.mark.parametrize("expression", FILTERS)
def test_a_filter_finds_what_the_closure_finds(results: Results, expression: str) -> None:
    found = results.filter(expression)
    expected = by_hand(results, expression)
    assert [result.ordinal for result in found] == expected
    assert len(found) == len(expected)
    assert [result.ordinal for result in found[1:3]] == expected[1:3]


@pytest.mark.parametrize("expression", FILTERS)
def test_a_filter_in_python_alone_finds_the_same(
    results: Results, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [result.ordinal for result in results.filter(expression)]
    monkeypatch.setattr(conditions, "compile_sql", lambda *_: None)
    found = results.filter(expression)
    assert [result.ordinal for result in found] == expected
    assert len(found) == len(expected)
    assert [row["interview.ordinal"] for row in found[2:5].to_dicts(remove_prefix=False)] == expected[2:5]


def test_most_filters_are_done_in_sql(results: Results) -> None:
    file = results._parts[0].file
    for expression in (
        "number > 1",
        "agent.age < 5",
        "text == '5'",
        "answer.flag",
        "model.temperature == 0.5",
        *IN_LISTS,
    ):
        asked = conditions.Conditions((bind(parse(expression), results._parts[0].catalog()),), file.header)
        with file.reader.snapshot() as connection:
            assert asked.split(connection)[1] == [], expression


def test_a_filter_that_sql_cannot_do_is_joined_to_one_that_it_can(results: Results) -> None:
    found = results.filter("number > 1").filter("len(text) == 4").filter("agent.age is not None")
    assert [result.ordinal for result in found] == by_hand(
        results, "number > 1 and len(text) == 4 and agent.age is not None"
    )
    assert found.columns == results.columns


@given(st.sampled_from(FILTERS), st.sampled_from(FILTERS), st.sampled_from(["and", "or"]))
def test_joined_filters_agree_with_the_closure(results: Results, one: str, other: str, joint: str) -> None:
    expression = f"({one}) {joint} not ({other})"
    assert [result.ordinal for result in results.filter(expression)] == by_hand(results, expression)


def place(value: Any) -> tuple[int, Any]:
    """How any value sorts: None and NaN, numbers, texts, then lists by their JSON."""
    match value:
        case None:
            return 0, 0
        case float() if math.isnan(value):
            return 0, 0
        case bool() | int() | float():
            return 1, value
        case str():
            return 2, value
        case _:
            return 3, encode_value(value)


SORTS = [
    ["number"], ["text"], ["mixed"], ["answer.flag"], ["agent.age"], ["agent.odd"], ["scenario.city", "number"],
    ["mixed", "text"], ["model.temperature", "agent.flag"], ["scenario.size"], ['agent.q"uote', "agent.a\\b"],
    ["interview.status", "iteration"],
]  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("columns", SORTS, ids=",".join)
def test_results_are_sorted_stably_with_none_first(results: Results, columns: list[str], reverse: bool) -> None:
    names = results.select(*columns).columns
    expected = sorted(
        results.select("*").to_dicts(remove_prefix=False),
        key=lambda row: [place(row[name]) for name in names],
        reverse=reverse,
    )
    found = results.sort_by(*columns, reverse=reverse)
    ordinals = [row["interview.ordinal"] for row in expected]
    assert [result.ordinal for result in found] == ordinals
    assert [result.ordinal for result in found[3:7]] == ordinals[3:7]
    assert len(found) == len(ordinals)


@pytest.mark.parametrize("columns", SORTS, ids=",".join)
def test_sorting_in_python_alone_gives_the_same(
    results: Results, columns: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [result.ordinal for result in results.sort_by(*columns)]
    monkeypatch.setattr(stages, "sorting_term", lambda *_: None)
    assert [result.ordinal for result in results.sort_by(*columns)] == expected


COMPUTED = ["-number", "number * 2 + agent.age", "1", "number if answer.flag else None", "len(tags)", "'a' in tags",
            "len(text) / 2", "answer.flag or number > 1"]  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("source", COMPUTED)
def test_a_computed_column_is_sorted_in_sql(
    results: Results, source: str, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = results.filter("interview.ordinal != 7").mutate(f"key = {source}")
    with monkeypatch.context() as patch:
        patch.setattr(stages, "sorting_term", lambda *_: None)
        expected = [result.ordinal for result in computed.sort_by("key", "text", reverse=[reverse, True])]
    monkeypatch.delattr(stages.ViewStage, "_choose_in_python")
    found = computed.sort_by("key", "text", reverse=[reverse, True])
    assert [result.ordinal for result in found] == expected
    assert [result.ordinal for result in found[2:9]] == expected[2:9]


def test_a_second_sort_keeps_the_first_among_equals(results: Results) -> None:
    once = results.sort_by("scenario.city", "number")
    twice = results.sort_by("number").sort_by("scenario.city")
    assert [result.ordinal for result in twice] == [result.ordinal for result in once]


def test_a_filter_may_come_before_or_behind_a_sort(results: Results) -> None:
    before = results.filter("len(text) > 0").sort_by("mixed", reverse=True)
    behind = results.sort_by("mixed", reverse=True).filter("len(text) > 0")
    assert [result.ordinal for result in before] == [result.ordinal for result in behind]
    assert len(before) == len(behind) > 0
