"""Rows of Arrow's record batches: what each type of column makes of its values, and which kinds of values it has.

    bool, integers, floats, strings     as they are; dictionaries (categoricals) as the values they stand for
    date, time, timestamp, duration     as plan.sources.row_values writes them
    decimal                             integers where the type has no places; numbers up to 15 digits; else text
    list, struct, map                   lists and dicts of these
    null                                None
    binary, interval, union             refused, with the column named

A column that `to_parquet` wrote as JSON texts, because its values had no one type, gives the values again.
Does not cover: files (plan.sources.parquet_file), tables in memory (plan.rows.data_frames).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec

from headrace.errors import ListError, MissingExtra
from headrace.expressions import ColumnKind
from headrace.plan.census import MOST_FIELDS, FieldCensus
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.row_source import Renames
from headrace.plan.sources.row_values import plain_value
from headrace.plan.sources.text_files import LONGEST_CELL
from headrace.survey.values import encode_fields, encode_plain_fields

_EXACT_DIGITS = 15
_MOST_BATCH_BYTES = 4_000_000
_MOST_BATCH_ROWS = 2_048
_MOST_MADE_BYTES = 4 * _MOST_BATCH_BYTES  # of values that become Python's at a time
_UNUSABLE = "Leave the column out, or write its values as text."
Values = Sequence[Any]


def import_arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("pyarrow") from None
    return pa


class ArrowColumns:
    """The columns of a schema, and how rows are made of its batches. `where` they are: a file's name, say."""

    def __init__(self, schema: Any, rename: Renames, where: str) -> None:
        self._where = where
        check_width(len(schema), where)
        header = [str(name) for name in schema.names]
        self.renames = rename(header) if callable(rename) else rename
        self.names = renamed_columns(header, self.renames, where)
        self._columns = [_ArrowColumn(field, where) for field in schema]

    def encoded(self, batch: Any, first: int) -> Iterator[bytes]:
        """The rows of a batch; `first` is the position of its first row, for errors."""
        if batch.num_rows > 1 and sum(map(_ArrowColumn.value_bytes, self._columns, batch.columns)) > _MOST_MADE_BYTES:
            half = batch.num_rows // 2
            parts = ((batch.slice(0, half), first), (batch.slice(half), first + half))
            return chain.from_iterable(self.encoded(*part) for part in parts)
        columns = [
            self._values(column, array, first) for column, array in zip(self._columns, batch.columns, strict=True)
        ]
        is_plain = all(map(_ArrowColumn.is_plain, self._columns, batch.columns))
        names = self.names
        # A batch without columns has rows all the same.
        rows = zip(*columns, strict=True) if columns else repeat((), batch.num_rows)
        if is_plain:
            return (encode_plain_fields(dict(zip(names, row, strict=True))) for row in rows)
        return (encode_fields(dict(zip(names, row, strict=True)))[0] for row in rows)

    @property
    def unknown(self) -> list[int]:
        """The places of columns whose values must be looked at to tell their kinds: floats that may be NaN, ..."""
        return [place for place, column in enumerate(self._columns) if column.has_tagged_values]

    def census(self, has_nulls: Iterable[bool], has_tagged: Iterable[bool]) -> FieldCensus:
        """Which kinds of values each column has, where it is known which have nulls, and values that are tagged."""
        census = FieldCensus()
        for name, column, nulls, tagged in zip(self.names, self._columns, has_nulls, has_tagged, strict=True):
            for kind in column.kinds:
                census.see(name, kind)
            if nulls:
                census.see(name, ColumnKind.NULL)
            if tagged:
                census.see(name, ColumnKind.TAGGED)
        census.always = set(self.names)
        return census

    def _values(self, column: _ArrowColumn, array: Any, first: int) -> Values:
        try:
            return column.values(array)
        except (UnicodeDecodeError, ValueError, OverflowError, msgspec.DecodeError) as error:
            last = first + len(array) - 1
            raise ListError(
                f"{self._where}, rows {first:,} to {last:,}: a value in the column {column.name!r} cannot be"
                f" read: {error}.",
                fix=_UNUSABLE,
            ) from None
        except _TooLong as error:
            raise ListError(
                f"{self._where}, row {first + error.place:,}: a cell of the column {column.name!r} is longer than"
                f" {LONGEST_CELL // 1_000_000} MB.",
                fix="Leave the column out, or give a file that a scenario's field refers to: FileStore.",
            ) from None


class _TooLong(Exception):
    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class _ArrowColumn:
    """One column: its name, and what its type makes of values."""

    def __init__(self, field: Any, where: str) -> None:
        self.name = str(field.name)
        kind = _stored(field.type)
        _refuse_unusable(kind, self.name, where)
        marks: dict[bytes, bytes] = field.metadata or {}
        is_json = marks.get(b"headrace") == b"json"
        types = import_arrow().types
        self._is_text = _is_text(types, _inner(types, kind)) and not is_json
        self._is_large = _is_text(types, _inner(types, kind)) or types.is_nested(kind)
        self.has_tagged_values = types.is_floating(kind) or types.is_uint64(kind)
        self._change = _decode_json if is_json else _change(kind)
        self._is_always_plain = not (is_json or self.has_tagged_values or types.is_nested(kind))
        self.kinds = [*ColumnKind] if is_json else _kinds(types, kind)

    def values(self, array: Any) -> Values:
        if self.value_bytes(array) > LONGEST_CELL:
            _refuse_long(array)
        values: list[Any] = _readable(array).to_pylist()
        return values if self._change is None else [*map(self._change, values)]

    def value_bytes(self, array: Any) -> int:
        """What values take that may be long; 0 for numbers."""
        return _value_bytes(array) if self._is_large else 0

    def is_plain(self, array: Any) -> bool:
        """Whether each value of this array is one that JSON and SQLite hold as it is."""
        return self._is_always_plain or (self.has_tagged_values and not has_tagged(array))


def check_width(width: int, where: str) -> None:
    """Refuse more columns than a list has fields, before any of them is read: a few bytes of a file are a column."""
    if width > MOST_FIELDS:
        raise ListError(f"{where} has {width:,} columns, of {MOST_FIELDS:,} at most.", fix="Leave columns out.")


def batch_rows(row_bytes: float) -> int:
    """How many rows of about this length a batch has."""
    return int(max(1, min(_MOST_BATCH_ROWS, _MOST_BATCH_BYTES // max(1, row_bytes))))


def has_tagged(array: Any) -> bool:
    """Whether numbers are among these that JSON or SQLite do not hold: NaN, infinities, integers beyond 64 bits."""
    pa = import_arrow()
    import pyarrow.compute

    compute: Any = pyarrow.compute
    if pa.types.is_uint64(array.type):
        most = compute.max(array).as_py()
        return most is not None and most > 2**63 - 1
    is_finite = compute.all(compute.is_finite(array.cast(pa.float64())), skip_nulls=True).as_py()
    return is_finite is False


def longest_text(array: Any) -> int:
    """How many bytes the longest has of the texts that an array refers to by their indices; of each field's, where it
    is of structs.
    """
    pa = import_arrow()
    import pyarrow.compute

    compute: Any = pyarrow.compute
    array = array.storage if hasattr(array, "storage") else array
    if pa.types.is_struct(array.type):
        return sum(map(longest_text, array.flatten()))
    if not pa.types.is_dictionary(array.type) or not _is_text(pa.types, array.type.value_type):
        return 0
    return compute.max(compute.binary_length(array.dictionary)).as_py() or 0


def _stored(kind: Any) -> Any:
    """The type itself; that of its storage where it is an extension, such as `arrow.json`."""
    return kind.storage_type if hasattr(kind, "storage_type") else kind


def _inner(types: Any, kind: Any) -> Any:
    return _stored(kind.value_type) if types.is_dictionary(kind) else kind


def _readable(array: Any) -> Any:
    """The array as plain Python knows its values, which has no nanoseconds: without pandas, which is large."""
    pa = import_arrow()
    array = array.storage if hasattr(array, "storage") else array
    kind = array.type
    if getattr(kind, "unit", "") != "ns":
        return array
    if pa.types.is_timestamp(kind):
        coarse = pa.timestamp("us", tz=kind.tz)
    else:
        coarse = pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")
    return array.cast(coarse, safe=False)  # a billionth of a second is no part of a prompt


def _is_text(types: Any, kind: Any) -> bool:
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _refuse_long(array: Any) -> None:
    for place in range(len(array)):
        # Letters, where a row is not many times as long; a million texts are not made to be counted.
        size = _value_bytes(array.slice(place, 1))
        if size > 4 * LONGEST_CELL or (size > LONGEST_CELL and len(str(array[place].as_py())) > LONGEST_CELL):
            raise _TooLong(place)


def _value_bytes(array: Any) -> int:
    """The memory that the values take, those that are stored once and stand in many places as often as they do."""
    pa = import_arrow()
    array = array.storage if hasattr(array, "storage") else array
    if pa.types.is_dictionary(array.type) and _is_text(pa.types, array.type.value_type):
        import pyarrow.compute

        compute: Any = pyarrow.compute
        sizes = compute.binary_length(array.dictionary).cast(pa.int64()).take(array.indices)
        return compute.sum(sizes).as_py() or 0
    if pa.types.is_struct(array.type):
        return sum(map(_value_bytes, array.flatten()))
    if pa.types.is_map(array.type):
        held = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return sum(_value_bytes(part.slice(held[0], held[1] - held[0])) for part in (array.keys, array.items))
    if pa.types.is_nested(array.type) and hasattr(array, "flatten"):
        return _value_bytes(array.flatten())
    return array.nbytes


def _refuse_unusable(kind: Any, name: str, where: str) -> None:
    """Refuse types whose values no row can hold, also inside lists and dicts."""
    types = import_arrow().types
    for inner in _leaves(kind):
        if _is_text(types, inner) or _is_known(types, inner):
            continue
        raise ListError(f"{where}: the column {name!r} holds {inner} values, which no row can hold.", fix=_UNUSABLE)


def _leaves(kind: Any) -> Iterator[Any]:
    """The types of the values that this type is made of."""
    types = import_arrow().types
    kind = _stored(kind)
    if types.is_dictionary(kind):
        yield from _leaves(kind.value_type)
    elif types.is_nested(kind) and not types.is_union(kind):
        for number in range(kind.num_fields):
            yield from _leaves(kind.field(number).type)
    else:
        yield kind


def _is_known(types: Any, kind: Any) -> bool:
    if types.is_interval(kind):
        return False
    return types.is_primitive(kind) or types.is_boolean(kind) or types.is_null(kind) or types.is_decimal(kind)


def _kinds(types: Any, kind: Any) -> list[ColumnKind]:
    kind = _inner(types, kind)
    if types.is_nested(kind):
        return [ColumnKind.JSON]
    if types.is_null(kind):
        return [ColumnKind.NULL]
    if types.is_boolean(kind):
        return [ColumnKind.BOOL]
    if types.is_integer(kind):
        return [ColumnKind.INT]
    if types.is_decimal(kind):
        if kind.scale <= 0:
            return [ColumnKind.INT] if kind.precision - kind.scale <= 18 else [ColumnKind.INT, ColumnKind.TAGGED]
        return [ColumnKind.REAL if kind.precision <= _EXACT_DIGITS else ColumnKind.TEXT]
    return [ColumnKind.REAL] if types.is_floating(kind) or types.is_duration(kind) else [ColumnKind.TEXT]


def _change(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a row's value of one of this type; None where it is one."""
    types = import_arrow().types
    kind = _inner(types, _stored(kind))
    if types.is_decimal(kind):
        return _decimal(kind)
    if types.is_map(kind):
        return _mapped
    if types.is_nested(kind) or types.is_temporal(kind):
        return plain_value
    return None


def _decimal(kind: Any) -> Callable[[Any], Any]:
    make: Callable[[Any], Any] = int if kind.scale <= 0 else float if kind.precision <= _EXACT_DIGITS else str
    return lambda value: None if value is None else make(value)


def _mapped(value: Any) -> Any:
    return None if value is None else {str(name): plain_value(item) for name, item in value}


def _decode_json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
