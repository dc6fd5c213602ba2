"""Rows as a pandas data frame, straight into columns. Needs pandas alone, not Arrow.

Each column grows in one compact buffer of numbers, in pieces of texts, or in a list of objects, whichever holds its
values: the frame is then made of what was grown, without a copy, so that the peak is little more than the frame itself.
Does not cover: Parquet, polars and Arrow tables (arrow_batches).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.errors import MissingExtra
from headrace.results.export.arrow_batches import compact_array
from headrace.results.export.column_shapes import Leaf, joined_leaves, leaf_of
from headrace.results.export.column_source import Batch

if TYPE_CHECKING:
    from pandas import DataFrame

_NUMBERS = {Leaf.INT: "int64", Leaf.REAL: "float64", Leaf.BOOL: "bool"}
_COMPACT = (Leaf.NOTHING, Leaf.TEXT, *_NUMBERS)  # any other column is one of objects


def to_pandas(columns: list[str], batches: Iterator[Batch], *, lists_as_strings: bool) -> DataFrame:
    """Build the frame. Whole numbers and booleans with gaps get pandas' nullable types, integers beyond 64 bits, lists
    and mixed values are objects.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas") from None
    texts = _text_pieces()
    growing = [_GrowingColumn(texts) for _ in columns]
    for batch in batches:
        for column, values in zip(growing, batch, strict=True):
            column.add(with_texts(values) if lists_as_strings else values)
    frame = pd.DataFrame({place: column.finish() for place, column in enumerate(growing)}, copy=False)
    frame.columns = pd.Index(columns)
    return frame


def with_texts(values: Sequence[Any]) -> Sequence[Any]:
    """The column with its lists and dicts as texts."""
    if not {list, dict} & set(map(type, values)):
        return values
    return [str(cast("Any", value)) if isinstance(value, (list, dict)) else value for value in values]


class _GrowingColumn:
    """One column, as compact as its values have allowed so far."""

    def __init__(self, texts: _ArrowTexts | _PandasTexts) -> None:
        self._texts = texts
        self._storage = Leaf.NOTHING  # MIXED are objects
        self._count = 0
        self._numbers = bytearray()  # grows in place: the system moves its pages and copies nothing
        self._gaps = bytearray()  # a byte a row, once a whole number or a boolean is missing
        self._pieces: list[Any] = []  # of texts, one a batch
        self._objects: list[Any] = []

    def add(self, values: Sequence[Any]) -> None:
        self._become(joined_leaves(self._storage, _storage_of(values)))
        self._append(values)
        self._count += len(values)

    def finish(self) -> Any:
        import numpy as np
        import pandas as pd

        match self._storage:
            case Leaf.TEXT:
                pieces, self._pieces = self._pieces, []
                return self._texts.joined(pieces)
            case Leaf.INT | Leaf.BOOL if self._gaps:
                made = pd.arrays.IntegerArray if self._storage is Leaf.INT else pd.arrays.BooleanArray
                return pd.Series(made(self._array(), np.frombuffer(self._gaps, dtype="bool")), copy=False)
            case Leaf.INT | Leaf.REAL | Leaf.BOOL:
                return pd.Series(self._array(), copy=False)
            case _:
                objects = np.empty(self._count, dtype=object)
                objects[:] = self._values()
                return pd.Series(objects, dtype=object, copy=False)

    def _append(self, values: Sequence[Any]) -> None:
        import numpy as np

        match self._storage:
            case Leaf.TEXT:
                self._pieces.append(self._texts.piece(values))
            case Leaf.MIXED:
                self._objects.extend(values)
            case Leaf.REAL:
                self._numbers += np.array(values, dtype="float64").data
            case Leaf.INT | Leaf.BOOL:
                has_gaps = None in values
                if has_gaps or self._gaps:
                    self._gaps += bytes(self._count - len(self._gaps))
                    self._gaps += bytes([value is None for value in values])
                kept = [0 if value is None else value for value in values] if has_gaps else values
                self._numbers += np.array(kept, dtype=_NUMBERS[self._storage]).data
            case _:
                pass  # nothing but None so far: they are counted

    def _become(self, storage: Leaf) -> None:
        """Bring what is held into another storage."""
        if storage is self._storage:
            return
        values = self._values()
        self._storage, self._numbers, self._pieces = storage, bytearray(), []
        count, self._count, self._gaps = self._count, 0, bytearray()
        if count:
            self._append(values)
        self._count = count

    def _values(self) -> list[Any]:
        """What is held as Python values; a gap among floats stays NaN."""
        if self._storage is Leaf.MIXED:
            return self._objects
        if self._storage is Leaf.NOTHING:
            return [None] * self._count
        if self._storage is Leaf.TEXT:
            return [value for piece in self._pieces for value in self._texts.values(piece)]
        values = self._array().tolist()
        return [None if gap else value for value, gap in zip(values, self._gaps, strict=True)] if self._gaps else values

    def _array(self) -> Any:
        import numpy as np

        return np.frombuffer(self._numbers, dtype=_NUMBERS[self._storage])


class _PandasTexts:
    """Columns of texts as pandas makes them by itself: of objects, or of its own type for texts."""

    def piece(self, values: Sequence[Any]) -> Any:
        import pandas as pd

        return pd.Series(list(values), dtype=object).infer_objects()

    def joined(self, pieces: list[Any]) -> Any:
        import pandas as pd

        return pd.concat(pieces, ignore_index=True)

    def values(self, piece: Any) -> list[str | None]:
        return [value if isinstance(value, str) else None for value in piece]


class _ArrowTexts:
    """The same columns where pandas keeps texts in Arrow arrays: made without a series in between, and joined without a
    copy.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype

    def piece(self, values: Sequence[Any]) -> Any:
        import pyarrow as pa

        return compact_array(values, pa.large_string())

    def joined(self, pieces: list[Any]) -> Any:
        import pandas as pd
        import pyarrow as pa

        return pd.Series(self._dtype.__from_arrow__(pa.chunked_array(pieces, pa.large_string())), copy=False)

    def values(self, piece: Any) -> list[str | None]:
        return piece.to_pylist()


def _text_pieces() -> _ArrowTexts | _PandasTexts:
    import pandas as pd

    dtype = pd.Series(["text"], dtype=object).infer_objects().dtype
    is_in_arrow = isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"
    return _ArrowTexts(dtype) if is_in_arrow else _PandasTexts()


def _storage_of(values: Sequence[Any]) -> Leaf:
    leaf = leaf_of(values)
    return leaf if leaf in _COMPACT else Leaf.MIXED
