"""Verbs of lists that would lose values or cannot go on say so; and verbs under the names that results have."""

import pytest

from headrace import Agent, AgentList, ScenarioList
from headrace.errors import HeadraceWarning, ListError

NUMBERS = ScenarioList.from_list("n", [3, 1, 2])


def test_pivot_refuses_two_values_for_one_field():
    twice = [{"id": 1, "variable": "x", "value": 1}, {"id": 1, "variable": "x", "value": 2}]
    with pytest.raises(ListError, match=r"two values 'x' in the row of id '1'"):
        ScenarioList(twice).pivot(["id"]).to_dicts()
    with pytest.raises(ListError, match="two values 'id'"):
        ScenarioList([{"id": 1, "variable": "id", "value": 2}]).pivot(["id"]).to_dicts()


@pytest.mark.parametrize("verb", [lambda: NUMBERS.create_comparisons(num_options=4), lambda: NUMBERS.choose_k(4)])
def test_more_options_than_rows_are_refused(verb):
    with pytest.raises(ListError, match="4 rows cannot be taken together: there are 3"):
        len(verb())


def test_equal_rows_are_one_whatever_form_their_values_have():
    assert ScenarioList([{"a": 1, "b": None}, {"a": 1}, {"a": 1.0}, {"a": True}]).unique().to_dicts() == [
        {"a": 1, "b": None},
        {"a": True, "b": None},
    ]
    assert ScenarioList([{"a": 1}, {"a": 1.0}]).tally("a").to_dicts() == [{"a": 1, "count": 2}]


def test_a_directory_is_as_many_rows_by_any_reader_that_takes_a_path_alone(tmp_path):
    (tmp_path / "below").mkdir()
    for path in (tmp_path / "a.txt", tmp_path / "below" / "b.txt"):
        path.write_text("text", encoding="utf-8")
    assert len(ScenarioList.from_file(tmp_path)) == len(ScenarioList.from_source(tmp_path)) == 2
    with pytest.warns(HeadraceWarning, match="below .a directory: recursive=True looks into it"):
        assert len(ScenarioList.from_directory(tmp_path)) == 1
    assert len(ScenarioList.from_directory(tmp_path, recursive=False)) == 1
    with pytest.raises(ListError, match="is a directory"):
        ScenarioList.from_file(tmp_path, sheet="2026")


def test_functions_are_refused_with_the_way():
    for arguments in ((lambda row: row,), ("z = f(n)", {"f": abs})):
        with pytest.raises(ListError, match="transform"):
            NUMBERS.mutate(*arguments)


def test_dicts_are_no_agents_and_the_way_is_said():
    with pytest.raises(ListError, match=r"AgentList.from_source"):
        AgentList([{"a": 1}])  # pyright: ignore[reportArgumentType]


def test_lists_sort_and_end_as_results_do():
    assert NUMBERS.sort_by("n", reverse=True).to_list() == [3, 2, 1]
    assert NUMBERS.tail(2).to_list() == [1, 2]
    assert len(NUMBERS.tail(9)) == 3
    assert not len(NUMBERS.tail(0))
    with pytest.raises(ListError, match="tail"):
        NUMBERS.tail(-1)
    assert [agent.name for agent in AgentList([Agent(name="a"), Agent(name="b")]).tail(1)] == ["b"]
    with pytest.raises(AttributeError, match="field_names"):
        NUMBERS.columns  # noqa: B018


def test_a_json_file_is_a_kind_of_source(tmp_path):
    (tmp_path / "rows").write_text('[{"a": 1}]', encoding="utf-8")
    assert ScenarioList.from_source("json", tmp_path / "rows").to_dicts() == [{"a": 1}]


def test_chosen_fields_stand_in_the_order_in_which_they_are_named():
    rows = ScenarioList([{"a": 1, "b": 2, "c": 3}])
    assert rows.select("c", "a").to_list() == [(3, 1)]
    assert list(rows.keep("c", "a").to_dicts()[0]) == rows.keep("c", "a").field_names == ["c", "a"]
    assert rows.reorder_keys(["b", "c", "a"]).to_list() == [(2, 3, 1)]
    people = AgentList([Agent(name="Ada", a=1, b=2)])
    assert people.keep("b", "a", "name").to_list() == [(2, 1)]
