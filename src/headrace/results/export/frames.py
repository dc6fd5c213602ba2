"""Rows as a pandas data frame and as Parquet. No other module knows these libraries; they are imported when they are
used.

Covers: column types by kinds of values, in bounded batches. Does not cover: text formats (text_export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.errors import MissingExtra
from headrace.expressions import ColumnKind
from headrace.results.export.replacing import replacing
from headrace.results.export.text_export import to_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame

Rows: TypeAlias = Iterator[tuple[Any, ...]]
Kinds: TypeAlias = list[frozenset[ColumnKind]]

_MOST_ROWS, _MOST_VALUES = 20_000, 1_000_000
_WIDENED_AT_MOST = 10


def to_pandas(columns: list[str], rows: Rows) -> DataFrame:
    """Build the frame column by column in compact pieces: a list of all rows would take several times its memory."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas") from None
    growing = [_GrowingSeries() for _ in columns]
    for batch in _batches(rows, len(columns)):
        for series, values in zip(growing, zip(*batch, strict=True), strict=True):
            series.add(pd, list(values))
    finished = [series.finish(pd) for series in growing]
    frame = pd.concat(finished, axis=1) if finished else pd.DataFrame()
    frame.columns = pd.Index(columns)
    return frame


class _GrowingSeries:
    """One column in pieces, each in the most compact type that holds its values."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._types: set[type] = set()

    def add(self, pd: Any, values: list[Any]) -> None:
        types = set(map(type, values)) - {type(None)}
        self._types |= types
        self._pieces.append(_piece(pd, values, types))

    def finish(self, pd: Any) -> Any:
        pieces, self._pieces = self._pieces, []
        if not pieces:
            return pd.Series([], dtype=object)
        if self._types == {int, float}:
            pieces = [piece.astype("float64") for piece in pieces]
        elif len(self._types) > 1:
            pieces = [_as_objects(pd, piece) for piece in pieces]
        whole = pd.concat(pieces, ignore_index=True)
        if self._types == {str}:
            return whole.infer_objects()
        plain = {"Int64": "int64", "boolean": "bool"}.get(str(whole.dtype))
        return whole.astype(plain) if plain and not whole.isna().any() else whole


def _piece(pd: Any, values: list[Any], types: set[type]) -> Any:
    name = {frozenset({int}): "Int64", frozenset({float}): "float64", frozenset({bool}): "boolean"}
    is_huge = types == {int} and any(value is not None and not -(2**63) <= value < 2**63 for value in values)
    return pd.Series(values, dtype=object if is_huge else name.get(frozenset(types), object))


def _as_objects(pd: Any, piece: Any) -> Any:
    """The piece as Python values; a gap becomes None again, and NaN stays NaN."""
    if str(piece.dtype) not in ("Int64", "boolean"):
        return piece.astype(object)
    return pd.Series(piece.to_numpy(dtype=object, na_value=None), dtype=object)


def write_parquet(path: Path, columns: list[str], kinds: Callable[[], Kinds], rows: Callable[[], Rows]) -> Path:
    """Write row groups. It starts over where a run that goes on has put a new kind of value into a column."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("pyarrow") from None
    for _ in range(_WIDENED_AT_MOST):
        held = kinds()
        try:
            with replacing(path) as unfinished:
                _write_groups(unfinished, columns, held, rows())
            return path
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            if kinds() == held:
                raise
    raise AssertionError("a column was widened more often than there are kinds")


def _write_groups(path: Path, columns: list[str], kinds: Kinds, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shapes = [_shape(held) for held in kinds]
    schema = pa.schema([(name, arrow_type) for name, (arrow_type, _) in zip(columns, shapes, strict=True)])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in _batches(rows, len(columns)):
            arrays = [
                pa.array(map(convert, values) if convert else values, type=arrow_type)
                for (arrow_type, convert), values in zip(shapes, zip(*batch, strict=True), strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _shape(kinds: frozenset[ColumnKind]) -> tuple[pa.DataType, Callable[[Any], Any] | None]:
    """A column's Arrow type, and the conversion that its values need first."""
    import pyarrow as pa

    match kinds - {ColumnKind.NULL}:
        case held if held <= {ColumnKind.TEXT}:
            return pa.string(), None
        case held if held <= {ColumnKind.INT}:
            return pa.int64(), None
        case held if held <= {ColumnKind.BOOL}:
            return pa.bool_(), None
        case held if held <= {ColumnKind.INT, ColumnKind.REAL}:
            # A whole number beyond 2**53 is rounded here: a numeric column is worth more than its last digits.
            return pa.float64(), _as_float
        case _:
            return pa.string(), _as_json_text


def _as_float(value: Any) -> Any:
    # Not a text: float("7") would hide that the column holds texts by now.
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_json_text(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


def _batches(rows: Rows, columns: int) -> Iterator[list[tuple[Any, ...]]]:
    size = max(100, min(_MOST_ROWS, _MOST_VALUES // max(1, columns)))
    while batch := list(islice(rows, size)):
        yield batch
