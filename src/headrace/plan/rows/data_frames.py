"""The rows of data frames and of Arrow's tables, taken from their columns, some thousand at a time.

Neither pandas nor polars is imported for it. Does not cover: files (plan.sources).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from headrace.errors import ListError
from headrace.plan.rows.spool import Spool
from headrace.plan.sources.arrow_columns import ArrowColumns, batch_rows, has_tagged, import_arrow
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.row_source import Renames
from headrace.plan.sources.row_values import plain_value
from headrace.survey.values import Fields

_ROWS_TOGETHER = 2_048
_WHOLE = frozenset("iub")  # numpy's kinds of numbers that have no gaps


def records(data: Iterable[Any]) -> Iterable[Fields]:
    """A data frame's rows as dicts; anything else is rows already."""
    if hasattr(data, "iter_slices"):
        return _dicts(_polars_columns(data))
    if hasattr(data, "itertuples"):
        return _dicts(_pandas_columns(data))
    if is_arrow(data):
        raise ListError("An Arrow table is given where rows are.", fix="Write from_arrow(table).")
    return data


def is_data_frame(data: Any) -> bool:
    return hasattr(data, "itertuples") or hasattr(data, "iter_slices")


def check_data_frame(data: Any) -> None:
    if not is_data_frame(data):
        fix = "Collect it first: frame.collect()." if hasattr(data, "collect") else "Give one of pandas or polars."
        raise ListError(f"A {type(data).__name__} is no data frame.", fix=fix)


def is_arrow(data: Any) -> bool:
    """Whether this is a table, a reader or a record batch of Arrow, or of a library that gives its data as one."""
    return not is_data_frame(data) and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"))


def arrow_rows(data: Any, rename: Renames, where: str = "The table") -> Spool:
    """The rows of an Arrow table, a reader, or record batches; read once, a batch at a time."""
    schema, batches = _arrow_batches(data)
    columns = ArrowColumns(schema, rename, where)
    nulls, tagged = [False] * len(columns.names), [False] * len(columns.names)

    def rows() -> Iterator[bytes]:
        position = 0
        for batch in map(_checked(schema, where), batches):
            for place, array in enumerate(batch.columns):
                nulls[place] = nulls[place] or array.null_count > 0
            for place in columns.unknown:
                tagged[place] = tagged[place] or has_tagged(batch.columns[place])
            for part in _parts(batch):
                yield from columns.encoded(part, position)
                position += part.num_rows

    spool = Spool.of_encoded(rows())
    spool.census = columns.census(nulls, tagged)
    return spool


def _arrow_batches(data: Any) -> tuple[Any, Iterable[Any]]:
    """The schema and the batches of what Arrow calls a stream, an array or batches."""
    pa = import_arrow()
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, reader
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return batch.schema, [batch]
    batches = iter(cast("Iterable[Any]", data) if isinstance(data, Iterable) else ())
    first = next(batches, None)
    if first is None or not hasattr(first, "schema"):
        raise ListError(f"{data!r} has no batches of Arrow.", fix="Give a table, a reader, or record batches.")
    return first.schema, _with_first(first, batches)


def _with_first(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _checked(schema: Any, where: str) -> Any:
    def check(batch: Any) -> Any:
        if batch.schema != schema:
            raise ListError(f"{where} has batches of different columns.", fix="Give batches of one schema.")
        return batch

    return check


def _parts(batch: Any) -> Iterator[Any]:
    together = batch_rows(batch.nbytes / max(1, batch.num_rows))
    return (batch.slice(first, together) for first in range(0, batch.num_rows, together))


def _dicts(blocks: Iterator[tuple[list[str], Sequence[Iterable[Any]]]]) -> Iterator[Fields]:
    for names, columns in blocks:
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _polars_columns(frame: Any) -> Iterator[tuple[list[str], Sequence[Iterable[Any]]]]:
    for part in frame.iter_slices(_ROWS_TOGETHER):
        yield part.columns, [_polars_values(series) for series in part.get_columns()]


def _polars_values(series: Any) -> Iterable[Any]:
    return series.to_list() if series.dtype.is_integer() else map(plain_value, series.to_list())


def _pandas_columns(frame: Any) -> Iterator[tuple[list[str], Sequence[Iterable[Any]]]]:
    names = renamed_columns([str(column) for column in frame.columns], {}, "The data frame")
    for first in range(0, len(frame), _ROWS_TOGETHER):
        part = frame.iloc[first : first + _ROWS_TOGETHER]
        yield names, [_pandas_values(part.iloc[:, place]) for place in range(len(names))]


def _pandas_values(series: Any) -> Iterable[Any]:
    values = series.tolist()
    is_whole = series.dtype.kind in _WHOLE and not hasattr(series.dtype, "na_value")
    return values if is_whole else map(_without_gap, values)


def _without_gap(value: Any) -> Any:
    """The value; None for missing ones, which pandas writes as NaN, NaT or NA."""
    if type(value) is float and value != value:
        return None
    return plain_value(value)
