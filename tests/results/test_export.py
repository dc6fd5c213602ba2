"""What leaves: CSV, JSON lines, Parquet, pandas. Whole or not at all, and in constant memory."""

import csv
import json
import math
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from headrace.errors import MissingExtra, OptionError
from headrace.expressions import ColumnKind
from headrace.results.export import arrow_batches, pandas_frames, parquet_files
from headrace.results.export.column_source import ColumnSource
from headrace.results.export.json_values import to_json
from headrace.results.export.text_export import write_csv
from headrace.results.results import Results
from headrace.survey.agent import Agent
from tests.results import files

NAMES = ("whole", "real", "text", "flag", "mixed", "empty")
ROWS: list[list[Any]] = [
    [1, 0.5, "07", True, [1, "é"], None],
    [2**60, 2, 'say "hi", 😀\nand\0on', False, 2**70, None],
    [None, None, None, None, float("nan"), None],
    [3, -1.5, "", True, "x", None],
]


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    agents = [Agent({"n": n, "nick": "a" if n % 2 else None}) for n in range(len(ROWS))]
    of = files.job(files.survey(*NAMES, bools=["flag"]), agents)
    with Results.open(files.write(tmp_path / "x.run", of, lambda n: ROWS[n])) as opened:
        yield opened.select("answer.*", "agent.n")


def test_csv_reads_back_what_separates_cells_and_lines(tmp_path: Path) -> None:
    cells = [
        "",
        None,
        "a,b",
        'say "no"',
        "one\ntwo",
        "lone\rreturn",
        " x ",
        "'",
        2.5,
        -0.0,
        10**30,
        [1, "a,b"],
        {"k": None},
    ]
    rows = [(cell, other) for cell in cells for other in cells]
    for columns, batch in ((["one", "o,ther"], zip(*rows, strict=True)), (["alone"], [cells])):
        path = write_csv(tmp_path / "x.csv", columns, iter([list(batch)]), escape_formulas=False)
        with path.open(newline="", encoding="utf-8") as file:
            header, *found = csv.reader(file)
        assert header == columns
        assert found == [
            list(map(_in_csv, row)) for row in (rows if len(columns) == 2 else [(cell,) for cell in cells])
        ]


def _in_csv(value: Any) -> str:
    return "" if value is None else to_json(value).decode() if isinstance(value, (list, dict)) else str(value)


def test_csv_reads_back_with_none_as_nothing(results: Results, tmp_path: Path) -> None:
    written = results.to_csv(str(tmp_path / "out.csv"))
    with written.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == results.columns
    assert rows[0] == ["1", "0.5", "07", "True", '[1,"é"]', "", "0"]
    assert rows[1][2:5] == ['say "hi", 😀\nand\0on', "False", str(2**70)]
    assert rows[2] == ["", "", "", "", "nan", "", "2"]


def test_jsonl_reads_back_with_nan_as_null(results: Results, tmp_path: Path) -> None:
    written = results.to_jsonl(tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").split("\n")[:-1]]
    assert list(rows[0]) == results.columns
    assert rows[1]["answer.mixed"] == 2**70
    assert rows[1]["answer.text"] == 'say "hi", 😀\nand\0on'
    assert rows[2]["answer.mixed"] is None
    assert "😀" in written.read_text(encoding="utf-8")


def test_json_of_huge_integers_beside_nan_is_still_json() -> None:
    assert to_json({"a": [2**70, float("nan"), {"b": math.inf}], "c": "é"}).decode() == (
        f'{{"a":[{2**70},null,{{"b":null}}],"c":"é"}}'
    )


def test_parquet_columns_are_typed_by_what_they_hold(results: Results, tmp_path: Path) -> None:
    table = pq.read_table(results.to_parquet(tmp_path / "out.parquet"))
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "answer.whole": "int64",
        "answer.real": "double",
        "answer.text": "string",
        "answer.flag": "bool",
        "answer.mixed": "string",
        "answer.empty": "string",
        "agent.n": "int64",
    }
    rows = table.to_pylist()
    assert [row["answer.whole"] for row in rows] == [1, 2**60, None, 3]
    assert [row["answer.real"] for row in rows] == [0.5, 2.0, None, -1.5]
    assert [row["answer.text"] for row in rows] == [row[2] for row in ROWS]
    assert [row["answer.flag"] for row in rows] == [True, False, None, True]
    assert [row["answer.mixed"] for row in rows] == ['[1,"é"]', str(2**70), "null", '"x"']


def test_parquet_of_questions_beyond_the_columns_is_typed_too(tmp_path: Path) -> None:
    names = [f"q{n}" for n in range(1_002)]
    path = files.write(
        tmp_path / "w.run",
        files.job(files.survey(*names), [Agent({"n": n}) for n in range(3)]),
        lambda n: ["x"] * 1_000 + [n, "late"],
    )
    with Results.open(path) as results:
        table = pq.read_table(results.select("q999", "q1000", "q1001").to_parquet(tmp_path / "o.parquet"))
    assert [str(field.type) for field in table.schema] == ["string", "int64", "string"]
    assert table.column("answer.q1001").to_pylist() == ["late"] * 3


def source(batches: list[list[list[Any]]], kinds: list[set[ColumnKind]]) -> ColumnSource:
    """Columns `c0`, `c1`, ... whose kinds are those at the start: a live run may add others."""
    names = [f"c{position}" for position, _ in enumerate(kinds)]
    return ColumnSource(names, lambda: list(map(frozenset, kinds)), lambda: iter(batches))


def test_parquet_starts_over_when_a_running_job_widens_a_column(tmp_path: Path) -> None:
    widened = source([[[1]], [["two"]]], [{ColumnKind.INT}])
    written = parquet_files.write_parquet(tmp_path / "o.parquet", widened)
    assert pq.read_table(written).column("c0").to_pylist() == ["1", '"two"']
    assert [path.name for path in tmp_path.iterdir()] == ["o.parquet"]


@pytest.mark.parametrize("wider", [0.5, True, 2**63, "x", [1]])
def test_a_column_of_whole_numbers_is_widened_by_whatever_comes_later(wider: Any) -> None:
    table = arrow_batches.to_arrow(source([[[1, None]], [[wider]]], [{ColumnKind.INT}]))
    expected = [1.0, None, 0.5] if wider == 0.5 else ["1", None, json.dumps(wider)]
    assert table.column("c0").to_pylist() == expected


def test_the_type_of_a_column_of_ever_other_lists_is_found_in_bounded_time() -> None:
    batches = [[[[{f"k{n}": n}]]] for n in range(100)]
    table = arrow_batches.to_arrow(source(batches, [{ColumnKind.TEXT}]))
    assert table.column("c0").to_pylist()[99] == '[{"k99":99}]'


def test_a_data_frame_has_compact_types_and_no_lost_values(results: Results) -> None:
    frame = results.to_pandas()
    assert list(frame.columns) == results.columns
    assert str(frame["answer.whole"].dtype) == "Int64"
    assert frame["answer.whole"].tolist()[:2] == [1, 2**60]
    assert str(frame["answer.real"].dtype) == "float64"
    assert str(frame["answer.flag"].dtype) == "boolean"
    assert str(frame["agent.n"].dtype) == "int64"
    assert frame["answer.mixed"].tolist()[:2] == [[1, "é"], 2**70]
    assert frame["answer.text"].iloc[1] == 'say "hi", 😀\nand\0on'
    assert frame["answer.empty"].isna().all()


def test_a_data_frame_of_nothing_has_its_columns(results: Results) -> None:
    frame = results.filter("whole == 99").to_pandas()
    assert list(frame.columns) == results.columns
    assert len(frame) == 0


def test_pieces_of_different_types_make_one_column() -> None:
    rows = [(1, 1, True, None), (None, 2.5, 7, "x"), (2**70, None, "x", None)]
    batches = [[[value] for value in row] for row in rows]
    frame = pandas_frames.to_pandas(["a", "b", "c", "d"], iter(batches), lists_as_strings=False)
    assert frame["a"].tolist() == [1, None, 2**70]
    assert str(frame["b"].dtype) == "float64"
    assert frame["c"].tolist() == [True, 7, "x"]
    assert frame["d"].isna().tolist() == [True, False, True]
    assert isinstance(frame, pd.DataFrame)


def test_exports_follow_the_view(results: Results, tmp_path: Path) -> None:
    view = results.filter("agent.n > 0").sort_by("agent.n", reverse=True).select("agent.n")[:2]
    assert view.to_csv(tmp_path / "v.csv").read_text() == "agent.n\n3\n2\n"
    assert pq.read_table(view.to_parquet(tmp_path / "v.parquet")).column("agent.n").to_pylist() == [3, 2]
    assert view.to_pandas()["agent.n"].tolist() == [3, 2]


@pytest.mark.parametrize("method", ["to_csv", "to_jsonl", "to_parquet"])
def test_a_failed_export_leaves_the_old_file_and_nothing_else(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    (place / "out").write_text("what was there")

    def cut_short() -> Iterator[list[list[Any]]]:
        yield [[1], [1.0], ["x"], [True]]
        raise OSError(28, "No space left on device")

    chosen = results.select("whole", "real", "text", "flag")
    monkeypatch.setattr(chosen, "_batches", cut_short)
    with pytest.raises(OptionError, match="No space left"):
        getattr(chosen, method)(place / "out")
    assert [path.name for path in place.iterdir()] == ["out"]
    assert (place / "out").read_text() == "what was there"


def test_an_export_to_nowhere_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot be written"):
        results.to_csv(tmp_path / "missing" / "out.csv")


def test_an_export_takes_the_place_of_files_only(results: Results, tmp_path: Path) -> None:
    """As root it took the place of a device: after `-o /dev/full` that was a file, for every program of the machine."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    (tmp_path / "to_fifo").symlink_to("fifo")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    before = {path: path.lstat().st_ino for path in tmp_path.iterdir()}
    for name in ("fifo", "directory", "to_fifo", "stdout"):
        for method in ("to_csv", "to_parquet", "to_excel", "to_sqlite", "to_html"):
            with pytest.raises(OptionError, match=r"is a (directory. Name|device|link).* a file"):
                getattr(results, method)(tmp_path / name)
    assert {path: path.lstat().st_ino for path in tmp_path.iterdir()} == before


def test_an_export_never_replaces_the_run_file(results: Results, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(results.path)
    for path in (results.path, tmp_path / "alias"):
        with pytest.raises(OptionError, match="run file itself"):
            results.to_csv(path)
    assert len(results) == len(ROWS)


@pytest.mark.parametrize(
    ("method", "module"),
    [
        ("to_pandas", "pandas"),
        ("to_parquet", "pyarrow"),
        ("to_arrow", "pyarrow"),
        ("to_polars", "polars"),
        ("to_polars", "pyarrow"),
    ],
)
def test_a_missing_library_is_named_with_how_to_get_it(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    arguments = [tmp_path / "x"] if method == "to_parquet" else []
    with pytest.raises(MissingExtra, match="pip install"):
        getattr(results, method)(*arguments)


def test_text_exports_take_little_memory(tmp_path: Path) -> None:
    agents = (Agent({"n": n}) for n in range(20_000))
    path = files.write(tmp_path / "m.run", files.job(files.survey("q"), agents), lambda n: [f"answer {n} " * 10])
    with Results.open(path) as results:
        tracemalloc.start()
        try:
            results.to_csv(tmp_path / "m.csv")
            results.to_jsonl(tmp_path / "m.jsonl")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 12_000_000  # of 20,000 rows at once
    assert len((tmp_path / "m.csv").read_text().splitlines()) == 20_001
