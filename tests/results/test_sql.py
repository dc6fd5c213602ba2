"""The user's own SQL: what `self` is, what is refused, and what the refusals say."""

import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from headrace.errors import InvalidInput
from headrace.results.results import Results
from headrace.results.tables import sql_table
from headrace.survey.agent import Agent
from headrace.survey.scenario import Scenario
from tests.results import files


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run")) as opened:
        yield opened


def test_the_contract_line_gives_a_row_for_each_mood(results: Results) -> None:
    table = results.sql("select mood, avg(rating) from self group by mood")
    assert table.columns == ["mood", "avg(rating)"]
    moods = {result.answer["mood"] for result in results}
    assert {mood for mood, _ in table} == moods == {None, "Good", "Bad"}
    assert table.to_dicts()[0].keys() == {"mood", "avg(rating)"}


def test_fields_are_columns_in_double_quotes(results: Results) -> None:
    table = results.sql(
        'select "agent.age", "scenario.city", "interview.status", "model.model", "iteration.iteration"'
        ' from self where "interview.ordinal" = 3'
    )
    assert list(table) == [(21, "Lima", "failed", "test", 0)]


def test_self_is_the_view_in_its_order(results: Results) -> None:
    view = results.filter("rating > 5").sort_by("rating", "agent.age", reverse=True)[1:6]
    expected = [(result.answer["rating"],) for result in view]
    assert list(view.sql("select rating from self")) == expected
    assert list(view.sql("select count(*) from self")) == [(5,)]
    assert list(results.filter("len(mood) == 4").sql("select count(*) from self where mood = 'Bad'")) == [(0,)]


VALUES = [[1, "é"], 2**70, {"a": None}, [], {"b": [2**70, math.inf]}, True, 2.5, None]


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Results]:
    """VALUES as answers `q`, traits `t` and fields `s`; `mixed` has texts too."""
    agents = [Agent({"t": value}) for value in VALUES]
    of = files.job(files.survey("q", "mixed"), agents, [Scenario({"s": value}) for value in VALUES])
    wide = len(VALUES)
    path = files.write(tmp_path / "v.run", of, lambda n: [VALUES[n % wide], VALUES[n % wide] if n % 3 else "[]"])
    with Results.open(path) as opened:
        yield opened


def _parts(results: Results) -> Results:
    return results.head(9) + results[9:]


@pytest.mark.parametrize("view", [lambda r: r, lambda r: r.mutate("q2 = q"), _parts])
@pytest.mark.parametrize("name", ["q", "t", "s", '"answer.q"', "x.Q"])
def test_lists_and_numbers_that_sqlite_lacks_come_back_where_a_column_is_selected(
    odd: Results, view: Callable[[Results], Results], name: str
) -> None:
    found = view(odd).sql(f"select {name} as v from self x order by ordinal").to_list()
    group = name.strip('"').removeprefix("answer.").removeprefix("x.").lower()
    assert found == odd.select(group).to_list()
    inner = f"with i as (select {name} as v, ordinal from self x) select v from i order by ordinal"
    assert view(odd).sql(inner).to_list() == found


@pytest.mark.parametrize("view", [lambda r: r, lambda r: r.filter("len(str(ordinal)) > 0"), _parts])
@pytest.mark.parametrize("name", ["q", "t", "s", "mixed"])
def test_lists_and_dicts_are_json_texts_inside_sql(odd: Results, view: Callable[[Results], Results], name: str) -> None:
    def count(condition: str) -> int:
        return view(odd).sql(f"select count(*) from self where {condition}").first()

    values = odd.select(name).to_list()
    assert count(f"{name} = '[]'") == sum(value in ([], "[]") for value in values) > 0
    assert count(f"{name} like '%é%'") == values.count([1, "é"]) > 0
    assert count(f"substr({name}, 1, 1) = '{{' and length({name}) = 10") == values.count({"a": None}) > 0
    assert count(f"json_extract({name}, '$[0]') = 1 and typeof({name}) = 'text'") == values.count([1, "é"])
    assert count(f"{name} = 1") == sum(value is True for value in values) > 0
    assert count(f"typeof({name}) = 'blob'") == 0


def test_a_text_is_never_taken_for_a_list(odd: Results) -> None:
    kept = odd.select("mixed").to_list()
    found = odd.sql("select mixed from self").to_list()
    assert [value for value in found if isinstance(value, list)] == []
    assert [each for each, value in zip(found, kept, strict=True) if value == "[]"] == ["[]"] * kept.count("[]")
    assert odd.sql("select max(t) as t, t || '' as u from self where t = '[]'").to_list() == [("[]", "[]")]
    union = odd.sql("select t from self where t = '[]' union all select mixed from self where mixed = '[]'")
    assert set(union.to_list()) == {"[]"}
    assert odd.sql("select x'5b5d' as b, x'ff00' as c").to_list() == [(b"[]", b"\xff\x00")]


def test_many_rows_are_read_without_holding_the_file(tmp_path: Path) -> None:
    path = files.city(tmp_path / "many.run", people=2_000)
    with Results.open(path) as results:
        table = results.sql('select "interview.ordinal" as n from self')
        rows = iter(table)
        assert next(rows) == (0,)
        results.close()
        assert str(path) not in {str(link.readlink()) for link in _descriptors()}
        assert sum(1 for _ in rows) == 3_999
        assert table.to_pandas()["n"].tolist() == list(range(4_000))
        assert len(table.to_csv(tmp_path / "t.csv").read_text().splitlines()) == 4_001


def _descriptors() -> list[Path]:
    return [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]


def test_a_table_exports_to_parquet_by_what_it_holds(results: Results, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = results.sql("select mood, count(*) as n, avg(rating) as r from self group by mood order by n")
    read = pq.read_table(table.to_parquet(tmp_path / "t.parquet"))
    assert [str(field.type) for field in read.schema] == ["string", "int64", "double"]
    assert read.to_pylist() == table.to_dicts()


def test_a_table_shows_its_first_rows(results: Results) -> None:
    shown = repr(results.sql("select mood, rating from self"))
    assert shown.splitlines()[0].split() == ["mood", "rating"]
    assert shown.splitlines()[2].split() == ["Good", "0"]
    assert shown.endswith("and more")
    assert len(shown.splitlines()) == 23
    assert "&lt;b&gt;" in results.sql("select '<b>' as x")._repr_html_()


@pytest.mark.parametrize(
    "query",
    [
        "insert into interviews(ordinal) values(99)",
        "update questions set name = 'x'",
        "delete from interviews",
        "drop view results",
        "create temp table t(x)",
        "attach 'other.db' as other",
        "pragma user_version = 5",
        "vacuum into 'copy.db'",
        "begin",
        "select 1; delete from interviews",
        "select load_extension('x')",
    ],
)
def test_whatever_is_not_reading_is_refused(
    results: Results, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InvalidInput):
        list(results.sql(query))
    assert len(list(results)) == 40
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_unquoted_field_is_refused_with_how_to_write_it(results: Results) -> None:
    with pytest.raises(InvalidInput, match=r'no such column: agent.age.*double quotes: "agent.age"'):
        results.sql("select agent.age from self")
    with pytest.raises(InvalidInput, match=r'"scenario.city"'):
        results.sql("select avg(rating) from self group by scenario.city")
    with pytest.raises(InvalidInput, match="write rating"):
        results.sql("select answer.rating from self")


def test_a_misspelt_column_is_refused_with_the_nearest(results: Results) -> None:
    with pytest.raises(InvalidInput, match=r"Did you mean 'rating'"):
        results.sql("select ratng from self")
    with pytest.raises(InvalidInput, match=r"Did you mean 'agent.age'"):
        results.sql('select "agent.agee" from self')


def test_an_error_in_the_query_has_sqlites_words(results: Results) -> None:
    with pytest.raises(InvalidInput, match='near "selec": syntax error'):
        results.sql("selec 1")
    with pytest.raises(InvalidInput, match="malformed JSON"):
        list(results.sql("select json_extract(mood, '$.x') from self"))


@pytest.mark.parametrize("query", ["", "-- nothing", "select 1; select 2"])
def test_one_query_is_needed(results: Results, query: str) -> None:
    with pytest.raises(InvalidInput, match="One query"):
        results.sql(query)


def test_a_semicolon_and_a_comment_behind_a_query_are_fine(results: Results) -> None:
    assert list(results.sql("select 1 as x; -- done\n")) == [(1,)]


def test_field_names_that_sql_has_no_way_to_write_do_not_spoil_the_rest(tmp_path: Path) -> None:
    odd = {'quo"te': 1, "back\\": 2, "nul\0": 3, "apo'strophe": 4, "": 5, "Case": 6, "case": 7, "a.b c": 8}
    of = files.job(files.survey("q"), [Agent(odd)], [Scenario(odd)])
    with Results.open(files.write(tmp_path / "o.run", of, lambda _: ["x"])) as results:
        assert list(results.sql('select q, "agent.apo\'strophe", "scenario.a.b c", "agent.Case" from self')) == [
            ("x", 4, 8, 6)
        ]
        row = results.select("agent.*").to_dicts(remove_prefix=False)[0]
        assert row == {f"agent.{name}": value for name, value in odd.items()}
        for name in odd:
            assert len(results.sort_by(f"agent.{name}")) == 1
            assert [r.ordinal for r in results.sort_by(f"agent.{name}")] == [0]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select mood from results", "called self: select ... from self"),
        ("select mood from answers", "called self: select ... from self"),
        ("select mood", "called self: select ... from self"),
        ("select rating from self where mood = Good", "put it in single quotes: 'Good'"),
    ],
)
def test_a_query_of_another_table_or_without_quotes_says_what_to_write(results: Results, query: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        results.sql(query)
    assert told in str(caught.value)


INNER = [
    "interviews", "main.interviews", "temp.interviews", "agents", "meta", "failures", "details", "sqlite_schema",
    "sqlite_master", "main.sqlite_schema", "sqlite_temp_schema", "sqlite_temp_master",
    "pragma_table_info('interviews')", "pragma_database_list", "pragma_function_list", "dbstat",
    "headrace_computed", "temp.headrace_computed", "results", "main.self", "chosen0", "sqlite_stat1",
    "pragma_compile_options",
]  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "select * from {}",
        "select count(*) from {}",
        "select 1 from self, {}",
        "select (select count(*) from {}) from self",
        "with self as (select * from {}) select * from self",
        "with r as (select 1 from {}) select count(*) from r",
        "select mood from self where exists (select 1 from {})",
    ],
)
def test_nothing_but_self_can_be_read(results: Results, query: str) -> None:
    for view, table in product((results, results.sort_by("rating").mutate("double = rating * 2")), INNER):
        with pytest.raises(InvalidInput, match=r"select \.\.\. from self"):
            print(table, list(view.sql(query.format(table))))  # shown where it fails


def test_a_querys_own_tables_and_lists_in_json_may_be_read(results: Results) -> None:
    assert results.sql(
        "with interviews as (select rating as r from self) select count(*), sum(r) from interviews"
    ).first()
    assert list(results.sql("select e.value from self, json_each('[1, 2]') e limit 3")) == [(1,), (2,), (1,)]


def test_computed_columns_are_columns_of_self(results: Results) -> None:
    view = results.mutate("double = rating * 2").filter("double > 4").sort_by("double", reverse=True)
    expected = [(result.answer["rating"] * 2, result.agent["age"]) for result in view]
    assert list(view.sql("select double, age from self")) == expected
    assert list(view.sql("select s.double, s.age from self s")) == expected
    assert "double" in view.sql("select * from self").columns
    assert view.sql("select sum(double) from self").first() == sum(double for double, _ in expected)
    assert list(view.sql('select "answer.double" from self limit 1')) == [expected[0][:1]]


def test_columns_out_of_the_detail_are_columns_of_self(results: Results) -> None:
    found = results.sql(
        'select mood_comment, "comment.mood_comment" as c, mood_user_prompt, rating_validated from self'
    )
    prompts = {row[2] for row in found}
    assert prompts == {"Please answer 0."}
    assert {row[:2] for row in found} == {("since it rains", "since it rains")}
    assert {row[3] for row in found} == {1}
    assert results.sql("select sum(mood_input_tokens) from self").first() == 400
    assert "mood_comment" not in results.sql("select * from self").columns


def test_renamed_columns_go_by_their_new_names(results: Results) -> None:
    view = results.rename({"mood": "feeling", "agent.age": "years"})
    found = view.sql("select feeling, years from self where feeling = 'Good' order by years limit 1")
    assert found.to_list() == [("Good", 20)]
    assert {"feeling", "agent.years"} < set(view.sql("select * from self").columns)
    with pytest.raises(InvalidInput, match="no such column: mood"):
        view.sql("select mood from self")


def test_only_columns_that_a_query_names_are_computed(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    view = results.mutate("double = rating * 2")
    monkeypatch.setattr(sql_table, "fill_computed", lambda *_: pytest.fail("computed unasked"))
    assert view.sql("select count(*) from self where rating > 5").first() == 16


# --- bare names are columns, whatever else is called so


@pytest.mark.parametrize("view", [lambda r: r, _parts])
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select 'x' as city, count(*) from self where city = 'Oslo'", [("x", 20)]),
        ("select count(*) from (select 1 as age from self where age >= 30)", [20]),
        (
            "select city, case when age > 29 then 1 else 0 end as age, count(*) from self group by city, age limit 2",
            [("Lima", 0, 1), ("Lima", 0, 1)],
        ),
        ("select 1 as mood_comment from self where mood_comment = 'since it rains' limit 1", [1]),
        ("select 'x' as [city], `age` from self where \"city\" = 'Lima' limit 1", [("x", 20)]),
        (
            'select AGE, Mood, CITY, "Agent.Age" from self s where S.Age = 38 and S.Ordinal = 36',
            [(38, "Good", "Oslo", 38)],
        ),
        ("select count(*) from self a join self b using (ordinal, age)", [40]),
        ("select count(*) from (select age, ordinal from self) natural join self", [40]),
        ("select /* city */ 'city' -- city\n from self limit 1", ["city"]),
    ],
)
def test_a_bare_name_is_found_as_a_column_of_a_table_would_be(
    results: Results, view: Callable[[Results], Results], query: str, rows: list[object]
) -> None:
    assert view(results).sql(query).to_list() == rows


def test_an_alias_alone_does_not_rename_what_a_star_gives(results: Results) -> None:
    plain = results.sql("select * from self").columns
    assert results.sql("select *, 'x' as city, count(*) over () from self").columns[: len(plain)] == plain


def test_names_that_differ_by_case_alone_are_told_apart_or_refused(tmp_path: Path) -> None:
    of = files.job(files.survey("Mood"), [Agent({"mood": "trait", "Age": 1, "age": 2})])
    with Results.open(files.write(tmp_path / "c.run", of, lambda _: ["answer"])) as results:
        assert results.sql("select mood from self").to_list() == ["trait"]
        assert results.sql("select Mood from self").to_list() == ["answer"]
        assert results.sql('select "answer.Mood", "agent.mood" from self').to_list() == [("answer", "trait")]
        assert results.sql("select Age from self").to_list() == [1]
        assert results.sql('select "agent.age" from self').to_list() == [2]
        with pytest.raises(InvalidInput, match=r'Write "answer.Mood" or "agent.mood"'):
            results.sql("select MOOD from self")
        with pytest.raises(InvalidInput, match="Rename one"):
            results.sql("select Mood, mood from self")
        assert {"answer.Mood", "agent.mood", "agent.Age", "agent.age_2"} < set(
            results.sql("select * from self").columns
        )


def test_columns_of_a_query_that_are_called_the_same_get_numbers(results: Results) -> None:
    query = "select a.age, b.age, 5 as age_2, a.age from self a join self b on a.ordinal = b.ordinal + 2 limit 1"
    table = results.sql(query)
    assert table.columns == ["age", "age_3", "age_2", "age_4"]
    assert table.to_dicts() == [{"age": 21, "age_3": 20, "age_2": 5, "age_4": 21}]
    assert list(table.to_pandas().columns) == table.columns


def test_a_query_that_is_no_text_is_refused(results: Results) -> None:
    with pytest.raises(InvalidInput, match=r"An SQL query is a text, not int"):
        results.sql(5)  # pyright: ignore[reportArgumentType]


def test_a_long_query_is_searched_for_names_in_no_time(results: Results) -> None:
    for text in ("[", "'", '"', "`", "/*", "a ", "age(", "- "):
        with pytest.raises(InvalidInput):
            results.sql(text * (900_000 // len(text)))
