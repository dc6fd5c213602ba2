"""Columns as Arrow record batches, which Parquet, polars and DuckDB take. Covers: the type of each column, and starting
over where a run that goes on has widened one.

    shape                     Arrow type
    BOOL INT REAL TEXT        bool, int64, double, string
    NOTHING                   string, all null
    DATE TIME                 date32, timestamp[us]
    a list, a dict            list<...>, struct<...>
    MIXED                     string: each value as JSON text; the field's metadata has `headrace: json`

Does not cover: what a column's shape is (column_shapes), or pandas, which needs no Arrow (pandas_frames).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import MissingExtra
from headrace.plan.sources.arrow_columns import import_arrow
from headrace.results.export.column_shapes import (
    DictOf,
    Leaf,
    ListOf,
    Shape,
    holds,
    joined,
    shape_of,
    shape_of_kinds,
)
from headrace.results.export.column_source import Batch, ColumnSource
from headrace.results.export.json_values import to_json

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Made = TypeVar("Made")

_JSON = {"headrace": "json"}
_WIDENED_ONE_BY_ONE = 10


class ShapeWidened(Exception):
    """A column has a value that its shape does not hold; `shape` is one that holds it. The export starts over: no user
    sees this error.
    """

    def __init__(self, position: int, shape: Shape) -> None:
        super().__init__(position, shape)
        self.position = position
        self.shape = shape


def to_arrow(source: ColumnSource) -> pa.Table:
    """All rows in memory, as an Arrow table of one chunk a batch."""
    pa = import_arrow()

    def read(shapes: list[Shape]) -> pa.Table:
        batches = list(record_batches(source.columns, shapes, source.batches()))
        return pa.Table.from_batches(batches, arrow_schema(source.columns, shapes))

    return with_shapes(column_shapes(source), read)


def to_polars(source: ColumnSource) -> pl.DataFrame:
    """All rows in memory, as a polars frame; a batch is let go as soon as polars has taken it."""
    import_arrow()
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("polars") from None

    def read(shapes: list[Shape]) -> pl.DataFrame:
        empty = pl.DataFrame(arrow_schema(source.columns, shapes).empty_table())
        batches = record_batches(source.columns, shapes, source.batches())
        return pl.concat([empty, *map(pl.DataFrame, batches)], rechunk=False)

    return with_shapes(column_shapes(source), read)


def with_shapes(shapes: list[Shape], export: Callable[[list[Shape]], Made]) -> Made:
    """Export with these shapes of the columns; again with wider ones where a value did not fit."""
    widened = 0
    while True:
        try:
            return export(shapes)
        except ShapeWidened as found:
            # Each time a shape is wider than before. The bound is for a column of ever other lists.
            widened += 1
            is_enough = widened > _WIDENED_ONE_BY_ONE
            shapes[found.position] = Leaf.MIXED if is_enough else joined(shapes[found.position], found.shape)


def column_shapes(source: ColumnSource) -> list[Shape]:
    """The shape of each column: by the kinds that are known of it; else by looking at its values, all of them."""
    known = [None if kinds is None else shape_of_kinds(kinds) for kinds in source.kinds()]
    unclear = [place for place, shape in enumerate(known) if shape is None]
    shapes: list[Shape] = [Leaf.NOTHING if shape is None else shape for shape in known]
    for batch in source.only(unclear) if unclear else ():
        for place, values in zip(unclear, batch, strict=True):
            if shapes[place] is not Leaf.MIXED:
                shapes[place] = joined(shapes[place], shape_of(values))
    return shapes


def arrow_schema(columns: Sequence[str], shapes: Sequence[Shape]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(name, arrow_type(shape), metadata=_JSON if shape is Leaf.MIXED else None)
            for name, shape in zip(columns, shapes, strict=True)
        ]
    )


def arrow_type(shape: Shape) -> pa.DataType:
    import pyarrow as pa

    match shape:
        case ListOf(item):
            return pa.list_(arrow_type(item))
        case DictOf(fields):
            return pa.struct([(name, arrow_type(held)) for name, held in fields])
        case Leaf.BOOL:
            return pa.bool_()
        case Leaf.INT:
            return pa.int64()
        case Leaf.REAL:
            return pa.float64()
        case Leaf.DATE:
            return pa.date32()
        case Leaf.TIME:
            return pa.timestamp("us")
        case Leaf.NOTHING | Leaf.TEXT | Leaf.MIXED:
            return pa.string()


def record_batches(
    columns: Sequence[str], shapes: Sequence[Shape], batches: Iterator[Batch]
) -> Iterator[pa.RecordBatch]:
    """The batches in Arrow; raises ShapeWidened at a value that does not fit."""
    import pyarrow as pa

    schema = arrow_schema(columns, shapes)
    for batch in batches:
        arrays = [
            _array(values, shape, schema.types[position], position)
            for position, (values, shape) in enumerate(zip(batch, shapes, strict=True))
        ]
        # Texts of more than 2 GB come as several arrays, which a table takes and a record batch does not.
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches()


def _array(values: Sequence[Any], shape: Shape, kind: pa.DataType, position: int) -> Any:
    import pyarrow as pa

    if not holds(shape, values):
        raise ShapeWidened(position, shape_of(values))
    if shape is Leaf.MIXED:
        return compact_array([None if value is None else to_json(value).decode() for value in values], kind)
    try:
        return compact_array(_floats(values) if shape is Leaf.REAL else values, kind)
    except (OverflowError, pa.ArrowInvalid):  # an integer beyond 64 bits
        raise ShapeWidened(position, Leaf.MIXED) from None


def compact_array(values: Sequence[Any], kind: pa.DataType) -> Any:
    """An Arrow array in memory of the system's own allocator. For arrays that grow, Arrow's default one (mimalloc)
    holds a third more than they need, and takes a sixth longer.
    """
    import pyarrow as pa

    return pa.array(values, type=kind, memory_pool=pa.system_memory_pool())


def _floats(values: Sequence[Any]) -> Sequence[Any]:
    """The values with whole numbers as floats. Beyond 2**53 they are rounded: a numeric column is worth more than its
    last digits.
    """
    if int not in set(map(type, values)):
        return values
    if shape_of(values) is Leaf.MIXED:
        raise OverflowError
    return [value if value is None else float(value) for value in values]
