"""Lists from Parquet files, Arrow tables and data frames: types are kept, and rows are read in batches."""

import datetime as dt
import os
import subprocess
import sys
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import AgentList, Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import ListError, MissingExtra
from headrace.expressions import ColumnKind
from headrace.plan.sources.parquet_file import ParquetSource

WHEN = dt.datetime.fromisoformat("2026-05-12T09:30:15.250000")
ZONE = dt.timezone(dt.timedelta(hours=2))
TABLE = pa.table(
    {
        "n": pa.array([1, None], pa.int32()),
        "x": pa.array([0.5, float("nan")]),
        "ok": [True, False],
        "Review Text": ["naïve 東京", None],
        "tags": [["a", None], []],
        "place": [{"city": "Oslo", "since": dt.date(2020, 1, 2)}, None],
        "day": [WHEN.date(), None],
        "at": pa.array([WHEN.time(), None], pa.time64("us")),
        "when": pa.array([WHEN, None], pa.timestamp("ns")),
        "zoned": pa.array([WHEN.replace(tzinfo=ZONE), None], pa.timestamp("us", "+02:00")),
        "took": pa.array([dt.timedelta(seconds=90), None]),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "whole": pa.array([Decimal(3), None], pa.decimal128(9, 0)),
        "long": pa.array([Decimal("12345678901234567.25"), None], pa.decimal128(30, 2)),
        "kind": pa.array(["red", "blue"]).dictionary_encode(),
        "scores": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "big": pa.array([2**64 - 1, 0], pa.uint64()),
        "nothing": pa.nulls(2),
    }
)
FIRST = {
    "n": 1,
    "x": 0.5,
    "ok": True,
    "Review Text": "naïve 東京",
    "tags": ["a", None],
    "place": {"city": "Oslo", "since": "2020-01-02"},
    "day": "2026-05-12",
    "at": "09:30:15.250000",
    "when": "2026-05-12T09:30:15.250000",
    "zoned": "2026-05-12T09:30:15.250000+02:00",
    "took": 90.0,
    "price": 1.5,
    "whole": 3,
    "long": "12345678901234567.25",
    "kind": "red",
    "scores": {"a": 1},
    "big": 2**64 - 1,
    "nothing": None,
}
ROWS = {"n": [1, 2], "x": [0.5, None], "text": ["a", None], "when": [WHEN, None], "tags": [["a"], [None]]}
POLARS = pl.DataFrame(ROWS)  # here, since polars starts threads of its own the first time


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path)
    return path


def test_types_are_kept(parquet):
    for listed in (ScenarioList.from_parquet(parquet), ScenarioList.from_arrow(TABLE)):
        first, second = listed
        assert dict(first) == FIRST
        assert [*listed.field_names] == [*FIRST]
        assert str(second["x"]) == "nan"
        assert second["tags"] == []
        assert all(second[name] is None for name in ("n", "place", "day", "when", "price", "scores", "nothing"))
        kinds = listed.source.census.kinds
        assert kinds["n"] == {ColumnKind.INT, ColumnKind.NULL}
        assert kinds["x"] == {ColumnKind.REAL, ColumnKind.TAGGED}
        assert kinds["ok"] == {ColumnKind.BOOL}


def test_what_was_written_is_read_again(tmp_path):
    listed = ScenarioList([{"n": 1, "mixed": [1, "two"], "text": "é"}, {"n": None, "mixed": {"a": 1}, "text": ""}])
    listed.table().to_parquet(tmp_path / "rows.parquet")
    assert ScenarioList.from_parquet(tmp_path / "rows.parquet") == listed


def test_length_and_names_come_from_metadata_and_a_position_skips_row_groups(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(10_000)}), path, row_group_size=1_000)
    listed = ScenarioList.from_parquet(path)
    read = []
    batches = ParquetSource._batches
    monkeypatch.setattr(
        ParquetSource,
        "_batches",
        lambda *given: (read.append(batch.num_rows) or batch for batch in batches(*given)),
    )
    assert (len(listed), listed.field_names, read) == (10_000, ["n"], [])
    assert listed[9_123]["n"] == 9_123
    assert sum(read) <= 1_000
    assert listed.filter("n > 5_000").head(2).to_list() == [5_001, 5_002]


def test_agents_get_their_names_and_a_run_takes_a_parquet_file(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"name": ["Ann", "Bo"], "age": [30, 40]}), path)
    agents = AgentList.from_parquet(path, instructions="Be brief.")
    assert [(agent.name, agent.traits, agent.instruction) for agent in agents] == [
        ("Ann", {"age": 30}, "Be brief."),
        ("Bo", {"age": 40}, "Be brief."),
    ]
    assert AgentList.from_arrow(pq.read_table(path), name_field="age").names == [30, 40]
    survey = Survey([QuestionFreeText(question_name="q", question_text="Hi {{ agent.age }}")])
    job = survey.by(AgentList.from_parquet(path)).by(Model("test", canned_response="Yes"))
    assert job.run(tmp_path / "a.run").select("agent.age", "q").to_list() == [(30, "Yes"), (40, "Yes")]
    again = survey.by(AgentList.from_parquet(path)).by(Model("test", canned_response="Yes"))
    assert again.run(tmp_path / "a.run").stats().reused == 2
    with pytest.raises(ListError, match="Scenarios have no name_field"):
        ScenarioList.from_parquet(path, name_field="name")


def test_a_changed_file_is_named(parquet):
    listed = ScenarioList.from_parquet(parquet)
    digest = listed.digest
    rows = listed.source.rows()
    next(rows)
    pq.write_table(TABLE.slice(1), parquet)
    for reading in (lambda: list(listed.copies()), lambda: listed.source.census):
        with pytest.raises(ListError, match=r"rows\.parquet changed while the job was set up"):
            reading()
    assert ScenarioList.from_parquet(parquet).digest != digest


def test_a_file_that_is_written_over_while_it_is_read_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": range(100_000)}), path, row_group_size=10_000)
    rows = ScenarioList.from_parquet(path).source.rows()
    next(rows)
    with path.open("r+b") as file:
        file.write(b"PAR1" + bytes(1_000))
        os.utime(path, (1, 1))
    with pytest.raises(ListError, match="changed while the job was set up"):
        list(rows)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"photo": pa.array([b"\x00"])}, "the column 'photo' holds binary values"),
        ({"inner": pa.array([[{"raw": b"\x00"}]])}, "the column 'inner' holds binary values"),
    ],
)
def test_bytes_are_refused_with_their_column(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    with pytest.raises(ListError, match=message):
        ScenarioList.from_parquet(tmp_path / "rows.parquet")


def test_a_cell_that_is_too_long_is_named(tmp_path):
    pq.write_table(pa.table({"n": [1, 2], "text": ["short", "long " * 10_000_000]}), tmp_path / "rows.parquet")
    with pytest.raises(ListError, match=r"row 1: a cell of the column 'text' is longer than 16 MB"):
        list(ScenarioList.from_parquet(tmp_path / "rows.parquet").copies())


def test_text_that_is_no_text_is_named(tmp_path):
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"text": broken}), tmp_path / "rows.parquet")
    with pytest.raises(ListError, match="a value in the column 'text' cannot be read"):
        list(ScenarioList.from_parquet(tmp_path / "rows.parquet").copies())


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    for content in (b"", b"n,text\n1,a\n", b"PAR1 and more PAR1"):
        path.write_bytes(content)
        with pytest.raises(ListError, match=r"rows\.parquet cannot be read as Parquet"):
            ScenarioList.from_parquet(path)
    with pytest.raises(ListError, match="cannot be read: No such file"):
        ScenarioList.from_parquet(tmp_path / "none.parquet")
    with pytest.raises(ListError, match="is not a file"):
        ScenarioList.from_parquet(tmp_path)


def test_two_columns_of_one_name_are_refused(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), tmp_path / "rows.parquet")
    with pytest.raises(ListError, match="has the column 'a' twice"):
        ScenarioList.from_parquet(tmp_path / "rows.parquet")


def test_empty_files_and_tables_are_empty_lists(tmp_path):
    pq.write_table(TABLE.slice(0, 0), tmp_path / "rows.parquet")
    for listed in (ScenarioList.from_parquet(tmp_path / "rows.parquet"), ScenarioList.from_arrow(TABLE.slice(0, 0))):
        assert (len(listed), list(listed), listed.field_names) == (0, [], [*FIRST])


def test_arrow_is_taken_in_every_form():
    listed = ScenarioList([{"n": 1}, {"n": 2}, {"n": 3}])
    table = pa.table({"n": [1, 2, 3]})
    for given in (table, table.to_reader(), table.to_batches(), iter(table.to_batches(1)), table.to_batches()[0]):
        assert ScenarioList.from_arrow(given) == listed
    assert ScenarioList.from_arrow(table).digest == listed.digest
    assert ScenarioList.from_source(table) == listed
    with pytest.raises(ListError, match="has no batches of Arrow"):
        ScenarioList.from_arrow([1, 2])
    with pytest.raises(ListError, match="batches of different columns"):
        ScenarioList.from_arrow([*table.to_batches(), *pa.table({"m": [1]}).to_batches()])


def test_data_frames_are_read_by_columns():
    for listed in (ScenarioList.from_pandas(pd.DataFrame(ROWS)), ScenarioList.from_polars(POLARS)):
        assert [dict(row) for row in listed] == [
            {"n": 1, "x": 0.5, "text": "a", "when": "2026-05-12T09:30:15.250000", "tags": ["a"]},
            {"n": 2, "x": None, "text": None, "when": None, "tags": [None]},
        ]
    nullable = pd.DataFrame({"n": pd.array([1, None], "Int64"), "ok": pd.array([True, None], "boolean")})
    nullable["kind"] = pd.Categorical(["red", None])
    assert ScenarioList.from_pandas(nullable).to_list() == [(1, True, "red"), (None, None, None)]
    long = pd.DataFrame({"n": range(5_000), "text": "a"})
    assert ScenarioList.from_pandas(long).select("n").to_list() == [*range(5_000)]
    assert AgentList.from_polars(pl.DataFrame({"who": ["Ann"], "age": [3]}), name_field="who").names == ["Ann"]


def test_without_the_library_it_says_what_to_install(parquet, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pyarrow is not installed"):
        ScenarioList.from_parquet(parquet)


def test_memory_does_not_grow_with_the_file(tmp_path):
    """One row group of 600,000 rows: 130 MB as Python values, 40 MB as Arrow columns."""
    path = tmp_path / "rows.parquet"
    texts = [f"a text of its own, number {number}" for number in range(600_000)]
    pq.write_table(pa.table({"n": range(600_000), "text": texts}), path, row_group_size=600_000)
    program = (
        "import resource, sys; from headrace import ScenarioList; import pyarrow.parquet, pyarrow.compute\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "before = peak(); listed = ScenarioList.from_parquet(sys.argv[1])\n"
        "assert listed.digest and len(listed.filter('n % 1_000 == 0')) == 600, len(listed)\n"
        "print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40
