"""One function opens rows by what was given: files by their names, many files, standard input, addresses."""

import datetime as dt
import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
import types
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import xlsxwriter
import zstandard

from headrace import AgentList, Job, Model, ScenarioList
from headrace.errors import HeadraceWarning, ListError, MissingExtra
from headrace.plan.rows.opening import spooled_rows
from headrace.plan.sources import excel_file
from headrace.plan.sources.json_file import json_objects

ROWS = [{"n": 1, "text": 'naïve, "quoted"'}, {"n": 2, "text": "two\nlines"}]
CSV = 'n,text\n1,"naïve, ""quoted"""\n2,"two\nlines"\n'
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)


def _workbook(path, rows, *others):
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet("first")
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
        for name, held in others:
            book.add_worksheet(name).write_row(0, 0, held)
    return path


def _database(path, *statements):
    with sqlite3.connect(path) as made:
        for statement in statements:
            made.execute(statement)
    made.close()
    return path


def _files(folder):
    """The same rows in every format."""
    (folder / "a.csv").write_text(CSV, "utf-8")
    (folder / "a.tsv").write_text(
        CSV.replace("n,text", "n\ttext").replace('1,"', '1\t"').replace('2,"', '2\t"'), "utf-8"
    )
    (folder / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (folder / "a.csv.zst").write_bytes(zstandard.compress(CSV.encode()))
    (folder / "a.jsonl").write_text(JSONL, "utf-8")
    (folder / "a.ndjson.gz").write_bytes(gzip.compress(JSONL.encode()))
    (folder / "a.json").write_text(json.dumps(ROWS, indent=2), "utf-8")
    (folder / "a.json.zst").write_bytes(zstandard.compress(json.dumps(ROWS).encode()))
    table = pa.Table.from_pylist(ROWS)
    pa.parquet.write_table(table, folder / "a.parquet")
    pyarrow.feather.write_feather(table, folder / "a.feather")
    with pa.ipc.new_stream(folder / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    _workbook(folder / "a.xlsx", [["n", "text"], *(row.values() for row in ROWS)])
    _database(
        folder / "a.db",
        "create table rows(n, text)",
        f"insert into rows values (1, '{ROWS[0]['text']}'), (2, '{ROWS[1]['text']}')",
    )
    return sorted(path for path in folder.iterdir() if path.name.startswith("a."))


def test_every_format_gives_the_same_rows(tmp_path):
    expected = ScenarioList(ROWS)
    paths = _files(tmp_path)
    assert len(paths) == 13
    for path in paths:
        assert ScenarioList.from_file(path) == expected, path
        assert ScenarioList.from_source(str(path)) == expected, path
    assert len(AgentList.from_file(tmp_path / "a.xlsx", name_field="text", instructions="Hi")) == 2
    assert AgentList.from_file(tmp_path / "a.db", name_field="n").names == [1, 2]
    job = Job.map("{{ text }}", str(tmp_path / "a.csv.gz")).by(Model("test", canned_response="ok"))
    assert len(job.run(tmp_path / "m.run")) == 2


def test_a_name_that_tells_no_format_is_refused(tmp_path):
    for name in ("a.txt", "a", "a.parquet.gz", "a.gz"):
        with pytest.raises(ListError, match=r"tells no format.*Known are \.csv"):
            ScenarioList.from_file(tmp_path / name)
    with pytest.raises(ListError, match=r"is a directory.*\*\.csv"):
        AgentList.from_file(tmp_path)


def test_packed_files_that_are_cut_off_or_changed_are_named(tmp_path):
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(("n,text\n" + "".join(f"{n},{n * 7919}\n" for n in range(50_000))).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ListError, match=r"a\.csv\.gz cannot be unpacked"):
        ScenarioList.from_file(path)
    path.write_bytes(b"n,text\n1,a\n")
    with pytest.raises(ListError, match=r"a\.csv\.gz cannot be unpacked"):
        ScenarioList.from_file(path)
    path.write_bytes(whole)
    listed = ScenarioList.from_file(path)
    assert (len(listed), listed[49_999]["n"]) == (50_000, 49_999)
    path.write_bytes(gzip.compress(b"n,text\n1,2\n"))
    with pytest.raises(ListError, match="changed while the job was set up"):
        list(listed.copies())
    path.write_bytes(gzip.compress(b"n,text\n1,a\n2,caf\xe9\n"))
    with pytest.raises(ListError, match=r"line 3 is not UTF-8.*cp1252"):
        ScenarioList.from_file(path)
    assert ScenarioList.from_file(path, encoding="cp1252")[1]["text"] == "café"


def test_many_files_are_one_list(tmp_path, monkeypatch):
    (tmp_path / "1.csv").write_text("n,code\n1,07\n2,08\n")
    (tmp_path / "2.csv").write_text("n,code,more\n3,9,x\n4.5,10,\n")
    (tmp_path / "3.jsonl").write_text('{"n": 5}\n')
    listed = ScenarioList.from_file(tmp_path / "*.*")
    assert [dict(row) for row in listed] == [
        {"n": 1.0, "code": "07"},
        {"n": 2.0, "code": "08"},
        {"n": 3.0, "code": "9", "more": "x"},
        {"n": 4.5, "code": "10", "more": ""},
        {"n": 5},
    ]
    assert (len(listed), listed[3]["n"], listed.field_names) == (5, 4.5, ["n", "code", "more"])
    assert listed.source.census.always == {"n"}
    monkeypatch.chdir(tmp_path)
    assert ScenarioList.from_file("?.csv").to_list() == listed.head(4).to_list()
    with pytest.raises(ListError, match="No file is named like"):
        ScenarioList.from_file(tmp_path / "*.parquet")
    (tmp_path / "odd[1].csv").write_text("n\n1\n")
    assert len(ScenarioList.from_file(tmp_path / "odd[1].csv")) == 1


@pytest.mark.parametrize("text", [CSV, JSONL, json.dumps(ROWS), "\ufeff" + CSV, "\n  " + json.dumps(ROWS)])
def test_standard_input(text, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    assert ScenarioList.from_file("-") == ScenarioList(ROWS)


def test_standard_input_without_an_end_stops_where_temporary_files_cannot_grow(tmp_path):
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))\n"
    program += "from headrace import ScenarioList; ScenarioList.from_file('-')"
    with Path("/dev/zero").open("rb") as endless:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            check=False,
            stdin=endless,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert "StorageFull: Temporary files in" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_takes_standard_input_and_says_how_to_read(tmp_path):
    def headrace(*words, given):
        command = [sys.executable, "-m", "headrace", "map", "{{ text }}", *words, "--model", "test,canned_response=ok"]
        return subprocess.run(command, input=given, capture_output=True, cwd=tmp_path, check=False)

    done = headrace("--data", "-", "-o", "a.run", given=b"n;text\n1;a\n2;b\n")
    assert b"2 interviews" in done.stdout, done
    (tmp_path / "old.csv").write_bytes("n|text\n1|café\n".encode("cp1252"))
    done = headrace("--data", "*.csv", "--delimiter", "|", "--encoding", "cp1252", "-o", "b.run", given=b"")
    assert b"1 interview in" in done.stdout, done
    _workbook(tmp_path / "a.xlsx", [["x"], [1]], ("second", ["text"]))
    done = headrace("--data", "a.xlsx", "--table", "third", "-o", "c.run", given=b"")
    assert b"has no sheet 'third'. The sheets there are: 'first', 'second'." in done.stderr, done


def test_json_lists_are_read_one_object_at_a_time(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"n": n, "text": "é" * 1_000} for n in range(500)], ensure_ascii=False), "utf-8")
    assert [row["n"] for row in ScenarioList.from_file(path)] == [*range(500)]
    for content, message in (
        ('{"a": 1}', "has no list 'scenarios'. .* rows alone are a list"),
        ("", "holds no JSON list"),
        ("[1, 2]", "item 0 of the list: it is no object"),
        ('[{"a": 1} {"a": 2}]', "item 1 of the list: there is no comma"),
        ('[{"a": 1}, {"a"', "item 1 of the list"),
        ('[{"a": ' + "[" * 100_000, "item 0 of the list: it is nested too deeply"),
    ):
        path.write_text(content, "utf-8")
        with pytest.raises(ListError, match=message):
            ScenarioList.from_file(path)
    path.write_text("[]", "utf-8")
    assert len(ScenarioList.from_file(path)) == 0


def test_a_sheet_keeps_types_and_passes_over_empty_rows(tmp_path):
    when = dt.datetime.fromisoformat("2026-05-12T09:30:00")
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm"}) as book:
        sheet = book.add_worksheet("first")
        sheet.write_row(1, 0, ["n", "x", "ok", "when", "Review Text", "sum", "group"])
        sheet.write_row(2, 0, [1, 0.5, True, when, "07"])
        sheet.write_formula(2, 5, "=1+1", None, 2)
        sheet.merge_range(2, 6, 4, 6, "A")
        sheet.write_row(4, 0, [2, 3, False, None, ""])
    with pytest.warns(HeadraceWarning, match=r"1 row of .*a.xlsx passed over"):
        rows = ScenarioList.from_excel(path)
    assert [dict(row) for row in rows] == [
        {"n": 1, "x": 0.5, "ok": True, "when": "2026-05-12T09:30:00", "Review Text": "07", "sum": 2, "group": "A"},
        {"n": 2, "x": 3, "ok": False, "when": None, "Review Text": None, "sum": None, "group": None},
    ]


def test_sheets_are_chosen_by_name_and_bad_ones_are_named(tmp_path, monkeypatch):
    path = _workbook(tmp_path / "a.xlsx", [["n", "n"], [1, 2]], ("second", ["a", "b"]), ("none", []))
    assert len(ScenarioList.from_excel(path, sheet="second")) == 0
    for sheet, message in (
        (None, "has the column 'n' twice"),
        ("none", "sheet .* is empty"),
        ("third", "has no sheet 'third'.*'first', 'second', 'none'"),
    ):
        with pytest.raises(ListError, match=message):
            ScenarioList.from_excel(path, sheet=sheet)
    with pytest.raises(ListError, match="cells beside its last column"):
        ScenarioList.from_excel(_workbook(tmp_path / "b.xlsx", [["n"], [1, 2]]))
    with pytest.raises(ListError, match="a column without a name"):
        ScenarioList.from_excel(_workbook(tmp_path / "b.xlsx", [["n", None, "m"], [1, 2, 3]]))
    (tmp_path / "c.xlsx").write_text("no workbook")
    with pytest.raises(ListError, match="cannot be read as a workbook"):
        ScenarioList.from_excel(tmp_path / "c.xlsx")
    monkeypatch.setattr(excel_file, "LARGEST_BYTES", 1_000)
    with pytest.raises(ListError, match="Save the sheet as CSV or Parquet"):
        ScenarioList.from_excel(path)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtra, match="python-calamine is not installed"):
        ScenarioList.from_excel(path)


def test_tables_and_queries_of_sqlite_files(tmp_path):
    path = _database(
        tmp_path / "a.db",
        'create table "odd ""name" (n integer, "Review Text" text, x real)',
        """insert into "odd ""name" values (1, 'Fine', 0.5), (2, null, null)""",
        "create table other(photo blob)",
        "insert into other values (x'00')",
        "create view v as select 1 as n",
        "create virtual table f using fts5(text)",
    )
    rows = [{"n": 1, "Review Text": "Fine", "x": 0.5}, {"n": 2, "Review Text": None, "x": None}]
    assert ScenarioList.from_sqlite(path, table='odd "name') == ScenarioList(rows)
    assert ScenarioList.from_sqlite(path, query='select n from "odd ""name" where n > 1').to_list() == [2]
    assert ScenarioList.from_source("sqlite", path, 'odd "name', ["n"], snakify=False).to_list() == [1, 2]
    for given, message in (
        ({}, "has 7 tables|has 2 tables"),
        ({"table": "othr"}, "Did you mean 'other'"),
        ({"table": "v"}, "is a view or a virtual table"),
        ({"table": "f"}, "is a view or a virtual table"),
        ({"table": "other"}, "the column 'photo' holds bytes"),
        ({"query": "delete from other"}, "may read tables, and nothing else"),
        ({"query": "attach 'x.db' as x"}, "may read tables, and nothing else"),
        ({"query": "select load_extension('x')"}, "may read tables, and nothing else"),
        ({"query": "select n, n from v"}, "may read tables, and nothing else"),
        ({"query": "select 1 as n, 2 as n"}, "has the column 'n' twice"),
        ({"query": "select 1", "table": "other"}, "Both a table and a query"),
        ({"query": "select 1 as a; select 2 as b"}, "the query has a second statement, 'select 2 as b'"),
        ({"query": " "}, "The query is empty"),
    ):
        with pytest.raises(ListError, match=message):
            ScenarioList.from_sqlite(path, **given)
    (tmp_path / "b.db").write_text("no database, " * 100)
    with pytest.raises(ListError, match="is no SQLite file"):
        ScenarioList.from_sqlite(tmp_path / "b.db")
    assert not (tmp_path / "x.db").exists()


def test_addresses_are_fetched_where_the_library_is_there(tmp_path, monkeypatch):
    with pytest.raises(MissingExtra, match="fsspec is not installed"):
        ScenarioList.from_file("s3://bucket/a.csv")
    with pytest.raises(MissingExtra, match="datasets is not installed"):
        ScenarioList.from_file("hf://datasets/owner/name")

    def opened(address, _mode):
        if address.startswith("s3:"):
            raise ImportError("Install s3fs to access S3")
        if "none" in address:
            raise FileNotFoundError(address)
        return io.BytesIO(CSV.encode())

    monkeypatch.setitem(sys.modules, "fsspec", types.SimpleNamespace(open=opened))
    listed = ScenarioList.from_file("https://example.com/data/a.csv?x=1")
    fetched = listed.source.path
    assert (listed, fetched.exists()) == (ScenarioList(ROWS), True)
    del listed
    assert not fetched.parent.exists()
    with pytest.raises(MissingExtra, match="s3fs is not installed"):
        ScenarioList.from_file("s3://bucket/a.csv")
    with pytest.raises(ListError, match="cannot be read"):
        ScenarioList.from_file("https://example.com/none.csv")
    hub = types.SimpleNamespace(load_dataset=lambda name, split, streaming: [{"n": 1, "from": name}])
    monkeypatch.setitem(sys.modules, "datasets", hub)
    assert ScenarioList.from_file("hf://datasets/owner/name")[0]["from"] == "owner/name"


def test_a_file_that_changes_while_its_list_is_made_is_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(ROWS))

    def rows():
        yield from json_objects(path)
        path.write_text("[]")

    with pytest.raises(ListError, match="changed while the job was set up"):
        spooled_rows(rows(), {}, path)


def test_any_iterable_of_dicts_is_a_source(tmp_path):
    assert ScenarioList.from_source(dict(row) for row in ROWS) == ScenarioList(ROWS)
    job = Job.map("{{ text }}", pa.Table.from_pylist(ROWS)).by(Model("test", canned_response="ok"))
    assert len(job.run(tmp_path / "a.run")) == 2


def test_what_lies_beside_a_sqlite_file_of_a_list_is_told_as_a_list_s_error(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as made:
        made.execute("create table people(n)")
    (tmp_path / "a.db-wal").mkdir()
    with pytest.raises(ListError, match=r"a\.db-wal is a link, a directory"):
        ScenarioList.from_sqlite(tmp_path / "a.db").to_list()
