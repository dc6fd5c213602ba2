"""Files of rows that mean harm, or lie where nothing can be read: errors in words, in bounded time and memory."""

import gzip
import json
import random
import sqlite3
import tracemalloc
import zipfile
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from headrace import ScenarioList
from headrace.errors import ListError
from headrace.plan.sources import arrow_columns, arrow_lengths, excel_file, json_file, parquet_file, text_files
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


@pytest.mark.parametrize(("name", "head", "line"), [("a.csv.gz", b"a,b\n1,2\n", b"\r\n"), ("a.jsonl.gz", b"", b" \n")])
def test_blank_lines_without_end_are_refused(tmp_path, monkeypatch, name, head, line):
    monkeypatch.setattr(text_files, "_MOST_BLANK_LINES", 20_000)
    (tmp_path / name).write_bytes(gzip.compress(head + 30_000 * line, 1))
    with pytest.raises(ListError, match="blank lines"):
        ScenarioList.from_file(tmp_path / name)
    row = b"3,4\n" if head else b'{"a": 3}\n'
    (tmp_path / name).write_bytes(gzip.compress(head + 5 * (15_000 * line + row), 1))
    assert len(ScenarioList.from_file(tmp_path / name)) == 5 + bool(head)


def test_a_long_text_that_stands_in_every_row_is_read_a_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_file, "_MOST_DECODED_BYTES", 3_000_000)
    path, long = tmp_path / "a.parquet", "x" * 30_000
    table = pa.table({"n": range(900), "a": [long] * 900, "s": [{"t": long, "u": "u"}] * 900})
    pyarrow.parquet.write_table(table, path, compression="zstd", row_group_size=600)
    source = ParquetSource(path, {})
    with source._opened() as file:
        sizes = [batch.nbytes for batch in source._bounded_batches(file, 0)]
    assert max(sizes) < 4_000_000  # was all of a row group, 36 MB
    assert sum(1 for row in source.rows() if len(row) > 60_000) == 900
    assert len([*source.rows(700)]) == 200
    texts = pa.table({"a": ["x" * 10_000 + str(n) for n in range(500)]})
    encoding = {"a": "DELTA_BYTE_ARRAY"}  # what differs from the text before
    pyarrow.parquet.write_table(texts, path, use_dictionary=False, column_encoding=encoding)
    source = ParquetSource(path, {})
    with source._opened() as file:
        assert max(batch.num_rows for batch in source._bounded_batches(file, 0)) <= 64
    assert len([*source.rows()]) == 500


@pytest.mark.parametrize("codec", ["lz4", "zstd", None])
@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_packed_arrow_file_says_how_large_it_becomes_before_it_is_unpacked(tmp_path, monkeypatch, write, codec):
    path = tmp_path / "a.arrow"
    large = pa.record_batch(
        {
            "a": pa.array(["x" * 1_000] * 3_000),
            "d": pa.array(["y" * 900] * 3_000).dictionary_encode(),
            "n": range(3_000),
        }
    )
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with write(path, large.schema, options=options) as file:
        for first in range(0, 3_000, 1_000):
            file.write_batch(large.slice(first, 1_000))
    monkeypatch.setattr(arrow_lengths, "MOST_UNPACKED_BYTES", 1_100_000)
    rows = ScenarioList.from_file(path)
    assert [row["n"] for row in rows] == [*range(3_000)]
    assert rows[2_999] == {"a": "x" * 1_000, "d": "y" * 900, "n": 2_999}
    monkeypatch.setattr(arrow_lengths, "MOST_UNPACKED_BYTES", 1_000_000)
    if codec is not None:
        monkeypatch.setattr(pa.ipc, "open_stream", None)  # nothing is unpacked
        with pytest.raises(ListError, match=r"a batch of its rows takes 1,\d+,\d+ bytes once it is unpacked"):
            ScenarioList.from_file(path)


def test_changed_metadata_of_arrow_files_is_refused_or_read(tmp_path):
    draw, path = random.Random(5), tmp_path / "a.arrow"
    batch = pa.record_batch({"a": pa.array(["x" * 10, "y"] * 50), "n": range(100)})
    for write in (pa.ipc.new_file, pa.ipc.new_stream):
        with write(path, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
            file.write_batch(batch)
        whole = path.read_bytes()
        for _ in range(150):
            changed = bytearray(whole)
            for _ in range(draw.choice((1, 3, 20))):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            path.write_bytes(changed[: draw.choice((len(changed), draw.randrange(1, len(changed))))])
            with suppress(ListError):
                ScenarioList.from_file(path)
