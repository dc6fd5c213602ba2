"""Workbooks, SQLite files, Markdown and HTML: values stay what they are, whole or not at all."""

import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from headrace import HeadraceWarning
from headrace.errors import InvalidInput, OptionError
from headrace.results.export import markup, workbook
from headrace.results.results import Results
from headrace.survey.agent import Agent
from tests.results import files

NAMES = ("whole", "real", "text", "flag", "mixed", "empty")
FORMULA = '=HYPERLINK("http://example.org/"&A1,"look")'
ROWS: list[list[Any]] = [
    [1, 0.5, "07", True, [1, "é"], None],
    [2**60, 2.5, 'say "hi", 😀\nand | on', False, 2**70, None],
    [None, None, None, None, float("nan"), None],
    [3, -1.5, FORMULA, True, {"a": "<b>"}, None],
    [-4, 1e300, "<script>alert(1)</script> ![x](http://example.org)", False, "x", None],
]
COLUMNS = [f"answer.{name}" for name in NAMES]
_CELLS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    agents = [Agent({"n": n}) for n in range(len(ROWS))]
    of = files.job(files.survey(*NAMES, bools=["flag"]), agents)
    with Results.open(files.write(tmp_path / "x.run", of, lambda n: ROWS[n])) as opened:
        yield opened.select("answer.*")


def sheet_of(path: Path) -> list[list[Any]]:
    """The cells of a workbook's only sheet: (type, text), None for an empty one."""
    with zipfile.ZipFile(path) as book:
        assert book.testzip() is None
        root = ET.fromstring(book.read("xl/worksheets/sheet1.xml"))
    rows: list[list[Any]] = []
    for row in root.iter(f"{_CELLS}row"):
        cells = {cell.get("r", "").rstrip("0123456789"): cell for cell in row.iter(f"{_CELLS}c")}
        rows.append([_cell(cells.get(letter)) for letter in "ABCDEF"])
    return rows


def _cell(cell: ET.Element | None) -> Any:
    if cell is None:
        return None
    assert cell.find(f"{_CELLS}f") is None, "a formula"
    return cell.get("t", "n"), "".join(cell.itertext())


def test_a_workbook_has_typed_cells_and_no_formulas(results: Results, tmp_path: Path) -> None:
    sheet = sheet_of(results.to_excel(tmp_path / "out.xlsx"))
    assert sheet[0] == [("inlineStr", name) for name in COLUMNS]
    assert sheet[1][:4] == [("n", "1"), ("n", "0.5"), ("inlineStr", "07"), ("b", "1")]
    assert sheet[2][0] == ("inlineStr", str(2**60))  # Excel's numbers have 15 digits
    assert sheet[2][4] == ("inlineStr", str(2**70))
    assert sheet[3] == [None, None, None, None, ("inlineStr", "nan"), None]
    assert sheet[4][2] == ("inlineStr", FORMULA)
    assert sheet[4][4] == ("inlineStr", '{"a":"<b>"}')


def test_a_text_too_long_for_a_cell_is_cut_and_said_so(tmp_path: Path) -> None:
    rows = [("x" * 40_000,), ("😀" * 20_000,), ("y" * 32_767,)]
    with pytest.warns(HeadraceWarning, match="2 texts in .* had more than the 32,767 letters"):
        workbook.write_excel(tmp_path / "out.xlsx", ["text"], iter(rows), "results")
    texts = [row[0][1] for row in sheet_of(tmp_path / "out.xlsx")[1:]]
    assert texts[0].endswith("... (cut: it has 40,000 letters)")
    assert [len(text.encode("utf-16-le")) // 2 for text in texts] == [32_767, 32_766, 32_767]


def test_a_sheet_that_is_full_leaves_the_old_workbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "_MOST_ROWS", 3)
    target = tmp_path / "out.xlsx"
    target.write_text("the old one")
    with pytest.raises(InvalidInput, match="at most 3 rows"):
        workbook.write_excel(target, ["n"], iter([(n,) for n in range(3)]), "results")
    assert target.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["out.xlsx"]
    with pytest.raises(InvalidInput, match="at most 3 rows"):  # before the first row is read
        workbook.write_excel(target, ["n"], map(pytest.fail, ["read"]), "results", count=3)
    with pytest.raises(InvalidInput, match="name of a sheet"):
        workbook.write_excel(target, ["n"], iter([]), "a/b")


def test_any_sqlite_tool_reads_the_table_with_its_types(results: Results, tmp_path: Path) -> None:
    written = results.to_sqlite(tmp_path / "out.sqlite")
    with closing(sqlite3.connect(written)) as connection:
        declared = connection.execute("SELECT name, type FROM pragma_table_info('results')").fetchall()
        rows = connection.execute("SELECT * FROM results").fetchall()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert declared == list(zip(COLUMNS, ["INTEGER", "REAL", "TEXT", "BOOLEAN", "", ""], strict=True))
    assert rows[0] == (1, 0.5, "07", 1, '[1,"é"]', None)
    assert rows[1] == (2**60, 2.5, 'say "hi", 😀\nand | on', 0, str(2**70), None)
    assert rows[2] == (None, None, None, None, "NaN", None)
    with closing(sqlite3.connect(written)) as connection:
        frame = pd.read_sql("SELECT * FROM results", connection)
    assert frame["answer.real"].tolist()[:2] == [0.5, 2.5]


def test_names_that_sqlite_takes_for_one_are_told_apart(tmp_path: Path) -> None:
    agents = [Agent({"Age": 1, "age": 2})]
    of = files.job(files.survey("q"), agents)
    with Results.open(files.write(tmp_path / "x.run", of, lambda _: ["a"])) as results:
        written = results.select("agent.Age", "agent.age").to_sqlite(tmp_path / "out.db", "people", remove_prefix=True)
    with closing(sqlite3.connect(written)) as connection:
        assert connection.execute('SELECT "Age", "age_2" FROM people').fetchall() == [(1, 2)]


def test_only_an_earlier_export_is_replaced(results: Results, tmp_path: Path) -> None:
    target = results.to_sqlite(tmp_path / "out.sqlite")
    results.head(2).to_sqlite(target)
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT count(*) FROM results").fetchone() == (2,)
        connection.execute("CREATE TABLE mine(x)")
        connection.commit()
    with pytest.raises(OptionError, match="holds more than a table 'results'"):
        results.to_sqlite(target)
    (tmp_path / "letter.txt").write_text("dear me")
    with pytest.raises(OptionError, match="is no SQLite database"):
        results.to_sqlite(tmp_path / "letter.txt")


def test_no_run_file_is_ever_replaced_by_an_export(results: Results, tmp_path: Path) -> None:
    other = files.city(tmp_path / "other.run", people=2)
    both = results + Results.open(other)
    before = other.read_bytes()
    for write in (results.to_csv, both.to_csv, results.to_excel, results.to_sqlite, results.to_html, both.to_jsonl):
        with pytest.raises(OptionError, match="run file"):
            write(other)
    assert other.read_bytes() == before


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "br":
            self.rows[-1][-1] += "\n"

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


def test_what_lies_beside_an_export_is_no_matter_of_run_files(results: Results, tmp_path: Path) -> None:
    files.city(tmp_path / "other.run", people=2)
    for name in ("out.csv", "out.db", "other.run"):
        (tmp_path / f"{name}-wal").mkdir()
    (tmp_path / "out.csv").write_text("old")
    assert results.to_csv(tmp_path / "out.csv").read_text("utf-8").count("answer.") == len(NAMES)
    results.to_sqlite(tmp_path / "out.db")
    with pytest.raises(OptionError, match=r"out.db-wal is a link, a directory.*Export to another path"):
        results.to_sqlite(tmp_path / "out.db")
    with pytest.raises(OptionError, match="is a run file, and would be lost"):
        results.to_csv(tmp_path / "other.run")


def test_html_shows_values_and_runs_none(results: Results, tmp_path: Path) -> None:
    written = results.to_html(tmp_path / "out.html")
    assert isinstance(written, Path)
    page, cells = written.read_text("utf-8"), _Cells()
    assert page.startswith('<!DOCTYPE html>\n<html>\n<head><meta charset="utf-8">')
    cells.feed(page)
    assert cells.rows[0] == COLUMNS
    assert [row[2] for row in cells.rows[1:]] == [row[2] or "" for row in ROWS]
    assert cells.tags <= {"html", "head", "meta", "title", "body", "table", "thead", "tbody", "tr", "th", "td", "br"}
    text = results.to_html()
    assert isinstance(text, str)
    assert text.startswith("<table>")
    assert text in page


def test_markdown_keeps_each_row_on_a_line_and_fetches_nothing(results: Results, tmp_path: Path) -> None:
    text = results.to_markdown()
    assert isinstance(text, str)
    lines = text.splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert lines[3].startswith('| 1152921504606846976 | 2.5 | say "hi", 😀<br>and \\| on | False |')
    assert "!\\[x](http" in lines[6]
    assert "&lt;script>" in lines[6]
    assert results.to_markdown(tmp_path / "out.md") == tmp_path / "out.md"
    assert (tmp_path / "out.md").read_text("utf-8") == text


def test_too_many_rows_for_a_text_go_to_a_path(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "_MOST_ROWS_AS_TEXT", 4)
    with pytest.raises(InvalidInput, match=r"more than 4 rows.* to_html\(path\)"):
        results.to_html()


def test_tables_of_sql_and_tallies_have_them_too(results: Results, tmp_path: Path) -> None:
    table = results.sql("select flag, count(*) as n from self group by flag")
    with closing(sqlite3.connect(table.to_sqlite(tmp_path / "out.sqlite", "flags"))) as connection:
        assert connection.execute("SELECT * FROM flags").fetchall() == [(None, 1), (0, 2), (1, 2)]
    assert len(sheet_of(results.tally("text").to_excel(tmp_path / "out.xlsx"))) == 6
