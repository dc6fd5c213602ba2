"""Keys in brackets behind a column, `book["pages"]`, by its bare name as by its full one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Agent, Results
from headrace.errors import ExpressionError
from tests.results import files


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    people = [Agent({"home": {"city": "Oslo", "zip": number}}) for number in range(4)]
    asked = files.job(files.survey("book"), people)
    files.write(tmp_path / "a.run", asked, lambda n: [{"pages": 100 * n, "by": {"first": f"A{n}"}}])
    with Results.open(tmp_path / "a.run") as opened:
        yield opened


@pytest.mark.parametrize("name", ["book", "answer.book", "book.answer"])
def test_a_key_of_a_dict_is_found_behind_any_name_of_its_column(results: Results, name: str):
    assert results.filter(f"{name}['pages'] > 150").select("interview.ordinal").to_list() == [2, 3]
    assert results.filter(f"{name}['by']['first'] == 'A1'").select("interview.ordinal").to_list() == [1]
    assert results.mutate(f"long = {name}['pages'] + 1").select("long").to_list() == [1, 101, 201, 301]
    assert results.group_by("home").agg(most=f"max({name}['pages'])").select("most").to_list() == [0, 100, 200, 300]


def test_a_table_has_keys_too(results: Results):
    table = results.distinct("book", "home")
    assert table.filter("book['pages'] >= 200 and home['zip'] < 3").select("home").to_list() == [
        {"city": "Oslo", "zip": 2}
    ]


def test_a_dot_behind_a_bare_name_is_still_a_mistake(results: Results):
    with pytest.raises(ExpressionError, match=r"There is no column 'book\.pages'"):
        results.filter("book.pages > 150")


@pytest.mark.parametrize(("wrong", "right"), [("null", "None"), ("true", "True"), ("NULL", "None")])
def test_a_constant_of_another_language_is_named_as_here(results: Results, wrong: str, right: str):
    with pytest.raises(ExpressionError, match=f"Write {right}\\."):
        results.filter(f"book == {wrong}")
