"""Every format, read back, gives the rows that went in: values and types, whatever they are and in whichever order."""

import csv
import datetime as dt
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.expressions import ColumnKind
from headrace.results.export import arrow_batches, column_shapes, json_values, pandas_frames, parquet_files, text_export
from headrace.results.export.column_shapes import Leaf
from headrace.results.export.column_source import ColumnSource
from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.survey.values import kind_of
from tests.results import files

_some = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
_few = settings(_some, max_examples=25)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "=1+1", '"; drop table x --', "{{ agent.age }}", "null", "07", "nan", "a,b\r\n'c'", "😀"]
)
INTS = st.integers(-(2**63), 2**63 - 1)
HUGE = st.integers(2**63, 2**80)
REALS = st.floats(allow_nan=True, allow_infinity=True)
LEAVES = st.none() | st.booleans() | INTS | HUGE | REALS | TEXTS
NESTED = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


def lists_of(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.lists(st.none() | item, max_size=3)


OBJECTS = st.none() | st.fixed_dictionaries({"a": st.none() | INTS, "b": lists_of(TEXTS), "": st.booleans()})
# A column: mostly one kind of values with gaps, sometimes anything.
COLUMN_VALUES = st.sampled_from(
    [st.none(), st.none() | INTS, INTS, st.none() | REALS, st.none() | st.booleans(), st.none() | TEXTS, TEXTS,
     st.none() | HUGE, INTS | HUGE, lists_of(INTS), lists_of(REALS), lists_of(lists_of(TEXTS)), OBJECTS,
     lists_of(OBJECTS), NESTED, st.none() | INTS | REALS, st.booleans() | INTS, st.dates(), st.datetimes() | st.none()]
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> list[list[Any]]:
    rows = draw(st.integers(0, 7))
    kinds = draw(st.lists(COLUMN_VALUES, min_size=1, max_size=4))
    return [draw(st.lists(kind, min_size=rows, max_size=rows)) for kind in kinds]


def batches_of(table: list[list[Any]], size: int) -> Iterator[list[list[Any]]]:
    for first in range(0, len(table[0]), size):
        yield [column[first : first + size] for column in table]


def source(table: list[list[Any]], size: int = 3) -> ColumnSource:
    kinds = [frozenset(map(kind_of, column)) for column in table]
    names = [f"c{position}" for position, _ in enumerate(table)]
    return ColumnSource(names, lambda: kinds, lambda: batches_of(table, size))


def same(one: Any, other: Any) -> bool:
    """Equal, in type too, but for whole numbers among floats; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return one == other or (math.isnan(one) and other != other) or float(other) == one
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def as_json(value: Any) -> Any:
    return json.loads(json_values.to_json(value))


def read_back(field: pa.Field, values: list[Any]) -> list[Any]:
    """The values of an Arrow column; JSON texts are read, where the field says that they are JSON."""
    is_json = (field.metadata or {}).get(b"headrace") == b"json"
    return [None if value is None else json.loads(value) if is_json else value for value in values]


def check(table: list[list[Any]], read: pa.Table) -> None:
    for field, column, given_values in zip(read.schema, read.columns, table, strict=True):
        is_json = (field.metadata or {}).get(b"headrace") == b"json"
        expected = [None if value is None else as_json(value) if is_json else value for value in given_values]
        found = read_back(field, column.to_pylist())
        assert all(map(same, found, expected)), (field, found, expected)
        assert len(found) == len(expected)


@_some
@given(tables())
def test_arrow_gives_the_rows(table: list[list[Any]]) -> None:
    check(table, arrow_batches.to_arrow(source(table)))


@_few
@given(tables())
def test_parquet_gives_the_rows(tmp_path_factory: pytest.TempPathFactory, table: list[list[Any]]) -> None:
    path = parquet_files.write_parquet(tmp_path_factory.mktemp("p") / "x.parquet", source(table))
    check(table, pq.ParquetFile(path).read())


@_few
@given(tables())
def test_polars_gives_the_rows(table: list[list[Any]]) -> None:
    frame = arrow_batches.to_polars(source(table))
    read = arrow_batches.to_arrow(source(table))
    assert frame.columns == read.column_names
    for name in frame.columns:
        values = frame.get_column(name).to_list()
        assert all(map(same, values, read.column(name).to_pylist()))
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == read.num_rows


@_some
@given(tables())
def test_pandas_gives_the_rows(table: list[list[Any]]) -> None:
    names = source(table).columns
    frame = pandas_frames.to_pandas(names, batches_of(table, 3), lists_as_strings=False)
    assert list(frame.columns) == names
    for name, values in zip(names, table, strict=True):
        assert len(frame[name]) == len(values)
        for found, expected in zip(frame[name].tolist(), values, strict=True):
            if expected is None:  # pandas writes a gap as None, NaN or NA, whichever the column's type has
                assert found is None or str(found) in ("nan", "<NA>")
            else:
                assert same(found, expected)


@_some
@given(tables())
def test_csv_and_json_lines_give_the_rows(table: list[list[Any]]) -> None:
    names, text, lines = source(table).columns, io.StringIO(newline=""), io.StringIO()
    text_export.print_csv(text, names, batches_of(table, 3), escape_formulas=False)
    text_export.print_jsonl(lines, names, batches_of(table, 3))
    read = csv.reader(io.StringIO(text.getvalue(), newline=""))
    assert next(read) == names
    rows = list(zip(*table, strict=True))
    for row, cells in zip(rows, read, strict=True):
        expected = ["" if v is None else as_text(v) for v in row]
        assert cells == expected
    objects = [json.loads(line) for line in lines.getvalue().split("\n")[:-1]]
    assert objects == [{name: as_json(v) for name, v in zip(names, row, strict=True)} for row in rows]


def as_text(value: Any) -> str:
    return json_values.to_json(value).decode() if isinstance(value, (list, dict)) else str(value)


@_some
@given(st.lists(NESTED | OBJECTS | lists_of(INTS), max_size=6), st.randoms(use_true_random=False))
def test_a_shape_depends_on_the_values_and_not_on_their_order(values: list[Any], random: Any) -> None:
    pieces = [column_shapes.shape_of([value]) for value in values]
    whole = column_shapes.shape_of(values)
    for _ in range(3):
        random.shuffle(pieces)
        assert column_shapes.joined_all(pieces) == whole
    mixed = list(values)
    random.shuffle(mixed)
    assert column_shapes.shape_of(mixed) == whole


def test_dates_keep_their_type_and_a_zone_is_text() -> None:
    day, moment = dt.date(2026, 5, 12), dt.datetime.fromisoformat("2026-05-12T08:30:00")
    zoned = moment.replace(tzinfo=dt.UTC)
    read = arrow_batches.to_arrow(source([[day, None], [moment, None], [zoned, None], [day, moment]]))
    assert [str(each) for each in read.schema.types] == ["date32[day]", "timestamp[us]", "string", "string"]
    assert read.column("c0").to_pylist() == [day, None]
    assert read.column("c1").to_pylist() == [moment, None]
    assert read.column("c2").to_pylist() == ['"2026-05-12T08:30:00Z"', None]


def test_plain_columns_are_typed_without_looking_at_their_values() -> None:
    looked: list[int] = []

    def batches() -> Iterator[list[list[Any]]]:
        looked.append(1)
        return iter([[[1], ["x"]]])

    kinds = [frozenset({ColumnKind.INT, ColumnKind.NULL}), frozenset({ColumnKind.TEXT})]
    shapes = arrow_batches.column_shapes(ColumnSource(["a", "b"], lambda: kinds, batches))
    assert (shapes, looked) == ([Leaf.INT, Leaf.TEXT], [])


@_few
@given(tables())
def test_a_run_file_gives_its_rows_in_every_format(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[Any]]
) -> None:
    storable = [column for column in table if not any(isinstance(v, dt.date) for v in column)]
    if not storable or not storable[0]:
        return
    place = tmp_path_factory.mktemp("r")
    names = [f"q{position}" for position, _ in enumerate(storable)]
    rows = [list(row) for row in zip(*storable, strict=True)]
    agents = [Agent({f"t{p}": value for p, value in enumerate(row)}) for row in rows]
    path = files.write(place / "x.run", files.job(files.survey(*names), agents), lambda n: rows[n])
    with Results.open(path) as opened:
        results = opened.select("answer.*", "agent.*")
        check([*storable, *storable], results.to_arrow())
        check([*storable, *storable], pq.ParquetFile(results.to_parquet(place / "x.parquet")).read())
        found = results.select("answer.*").to_list(unzipped=True)
        assert all(map(same, found, storable))
        assert all(
            map(same, results.select("answer.*").to_dicts(), [dict(zip(names, row, strict=True)) for row in rows])
        )
