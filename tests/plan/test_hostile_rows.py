"""Files of rows that mean harm, or lie where nothing can be read: errors in words, in bounded time and memory."""

import gzip
import json
import sqlite3
import tracemalloc
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from headrace import ScenarioList
from headrace.errors import ListError
from headrace.plan.sources import arrow_columns, excel_file, json_file
from headrace.plan.sources.arrow_columns import ArrowColumns
from headrace.plan.sources.given_paths import paths_like
from headrace.plan.sources.parquet_file import ParquetSource


def test_spaces_in_json_take_no_more_than_reading_them(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    spaces = b" " * 20_000_000
    path.write_bytes(spaces + b'[{"a": 1}' + spaces + b', {"a": 2}]' + spaces)  # took minutes
    assert [row["a"] for row in ScenarioList.from_file(path)] == [1, 2]
    monkeypatch.setattr(json_file, "LONGEST_LINE", 10_000_000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(spaces, 1))
    with pytest.raises(ListError, match="more than 10 MB of spaces"):
        ScenarioList.from_file(path)


def test_small_objects_behind_a_large_one_are_not_copied_each_time(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"a": "x" * 8_500_000}] + [{"a": 1}] * 200_000))  # would copy 8 MB for each
    assert len(ScenarioList.from_file(path)) == 200_001


@pytest.mark.parametrize("rest", ["garbage", ' [{"a": 2}]', "]", ', {"a": 2}', "\n" * 100_000 + "1"])
def test_what_stands_behind_a_json_list_is_not_lost(tmp_path, rest):
    path = tmp_path / "a.json"
    path.write_text(f'[{{"a": 1}}]{rest}')
    with pytest.raises(ListError, match="goes on behind its JSON list"):
        ScenarioList.from_file(path)
    path.write_text('[{"a": 1}] \r\n')
    assert len(ScenarioList.from_file(path)) == 1


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000, "y/" * 5_000 + "z", "~nobody-of-this-name/a"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet", ".arrow", ".xlsx", ".db", "*.csv"])
def test_a_name_that_no_file_can_have_is_refused_in_words(name, suffix):
    for make in (ScenarioList.from_file, ScenarioList.from_source, ScenarioList.from_csv, ScenarioList.from_directory):
        with pytest.raises(ListError):
            make(name + suffix)


def test_patterns_that_are_none_and_directories_that_vanish_are_named(tmp_path, monkeypatch):
    with pytest.raises(ListError, match="is no pattern of names"):
        ScenarioList.from_file(tmp_path / "**a.csv")

    def vanished(*_):
        raise FileNotFoundError(2, "No such file or directory", "/proc/1/fd")

    monkeypatch.setattr(Path, "glob", vanished)
    with pytest.raises(ListError, match=r"cannot be found: No such file or directory \(/proc/1/fd\)"):
        paths_like(tmp_path / "*.csv")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux only")
def test_an_error_while_reading_is_in_words():
    for read in (ScenarioList.from_csv, ScenarioList.from_jsonl, ScenarioList.from_parquet, ScenarioList.from_excel):
        with pytest.raises(ListError, match=r"/proc/self/mem|cannot be read"):
            read("/proc/self/mem")


def test_a_query_with_a_nul_is_refused_in_words(tmp_path):
    path = tmp_path / "a.db"
    ScenarioList([{"a": 1}]).to_sqlite(path, "t")
    with pytest.raises(ListError, match="null"):
        ScenarioList.from_sqlite(path, query="select 1\0")


def _workbook(path, last_row):
    """A workbook with a cell A1, and this row."""
    names = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships><Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns:r="{_OFFICE}"><sheets><sheet name="S" sheetId="1" r:id="r"/></sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships><Relationship Id="r" Type="{_OFFICE}/worksheet"'
        ' Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="str"><v>a</v></c></row>'
        f"{last_row}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in names.items():
            packed.writestr(name, text)
    return path


_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def test_a_cell_that_lies_far_away_does_not_end_the_process(tmp_path):
    path = _workbook(tmp_path / "a.xlsx", '<row r="2"><c r="A2"><v>1</v></c></row>')
    assert [dict(row) for row in ScenarioList.from_file(path)] == [{"a": 1}]
    for row in (
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        '<row r="4000000000"><c r="ZZZZZZ4000000000"><v>1</v></c></row>',
    ):
        with pytest.raises(ListError, match=r"cannot be read as a workbook.*CSV"):
            ScenarioList.from_file(_workbook(path, row))


def test_a_workbook_whose_bytes_were_changed_is_refused_in_words(tmp_path):
    path = _workbook(tmp_path / "a.xlsx", '<row r="2"><c r="A2"><v>1</v></c></row>')
    whole = path.read_bytes()
    at = whole.index(b"xl/workbook.xml") + len("xl/workbook.xml")
    path.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])  # zlib.error
    with pytest.raises(ListError, match="cannot be read as a workbook"):
        ScenarioList.from_file(path)


def test_a_row_of_a_workbook_is_bounded_and_its_reader_ends_with_the_list(tmp_path, monkeypatch):
    path = _workbook(tmp_path / "a.xlsx", f'<row r="2"><c r="A2" t="str"><v>{"x" * 5_000}</v></c></row>')
    assert next(excel_file.excel_rows(path, None))["a"] == "x" * 5_000  # the child process is ended, not waited for
    monkeypatch.setattr(excel_file, "LONGEST_LINE", 1_000)
    with pytest.raises(ListError, match="cannot be read as a workbook"):
        ScenarioList.from_file(path)


@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
def test_wrong_offsets_in_an_arrow_file_are_refused(tmp_path, write):
    texts = pa.array(["x"] * 100)
    wrong = pa.array([0] * 50 + [10**6] + [0] * 49, pa.int32())  # read a million bytes behind the texts, or crashed
    columns = {
        "offsets": pa.Array.from_buffers(pa.string(), 99, [None, wrong.buffers()[1], texts.buffers()[2]]),
        "indices": pa.DictionaryArray.from_arrays(wrong, pa.array(["q"]), safe=False),
    }
    for name, column in columns.items():
        path = tmp_path / f"{name}.arrow"
        schema = pa.schema([("a", column.type)])
        with write(path, schema) as file:
            file.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))
        with pytest.raises(ListError, match="cannot be read as Arrow"):
            ScenarioList.from_file(path)


def test_a_text_that_a_parquet_file_repeats_is_not_unpacked_before_it_is_counted(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"n": [1], "a": [["x" * 400] * 200_000]}), path, compression="zstd")
    source = ParquetSource(path, {})
    with source._opened() as file:
        assert sum(batch.nbytes for batch in source._batches(file, 0)) < 2_000_000  # of 80 MB
    with pytest.raises(ListError, match="row 0: a cell of the column 'a' is longer than 16 MB"):
        [*source.rows()]
    rows = [[f"tag {n % 7}"] * (n % 3) for n in range(20_000)]
    pyarrow.parquet.write_table(pa.table({"a": rows, "b": [{"c": row} for row in rows]}), path)
    read = ScenarioList.from_parquet(path)
    assert [row["a"] for row in read] == [row["b"]["c"] for row in read] == rows


def test_rows_of_a_batch_become_values_a_few_at_a_time():
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array(["x" * 1_000_000]))
    columns = ArrowColumns(pa.schema([("a", texts.type)]), {}, "The table")
    batch = pa.record_batch([texts], ["a"])
    tracemalloc.start()
    try:
        assert sum(1 for row in columns.encoded(batch, 0) if len(row) > 1_000_000) == 300
        assert tracemalloc.get_traced_memory()[1] < 100_000_000  # of 300 MB
    finally:
        tracemalloc.stop()


def test_columns_are_bounded_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_columns, "MOST_FIELDS", 100)
    wide = pa.table({f"c{n}": [1] for n in range(101)})
    pyarrow.parquet.write_table(wide, tmp_path / "a.parquet")
    with pytest.raises(ListError, match="has 101 columns, of 100 at most"):
        ScenarioList.from_parquet(tmp_path / "a.parquet")
    with pytest.raises(ListError, match="has 101 columns, of 100 at most"):
        ScenarioList.from_arrow(wide)


def test_an_expression_that_a_table_holds_is_not_executed(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("create table t(a, B as (hex(zeroblob(a))) virtual, c as (a + 1) stored)")
        made.execute("insert into t(a) values (1)")
        made.commit()
    for given in ({"table": "t"}, {"query": "select * from T"}, {"query": "select a from t where length(b) > 1"}):
        with pytest.raises(ListError, match=r"'B' of 't' in .* is computed by an expression.*Nothing that a file"):
            ScenarioList.from_sqlite(path, **given)
    assert ScenarioList.from_sqlite(path, query="select a, c from t") == ScenarioList([{"a": 1, "c": 2}])
