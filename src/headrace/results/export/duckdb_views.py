"""A DuckDB connection with a view `results` of a run file's Parquet parts, and `self`, the interviews that were asked
for. Does not cover: writing the parts (parquet_parts).
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import MissingExtra
from headrace.results.export.column_source import Batch
from headrace.results.export.parquet_parts import ORDINAL, OpenParts
from headrace.store.quoting import quote_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What queries may hold before they use the disk; with the libraries it stays below 300 MB.
_MEMORY = "128MB"
_PATTERNS = re.compile(r"[*?\[]")  # in a path, DuckDB would take these for a pattern


def import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb") from None
    return duckdb


def connect(parts: OpenParts, names: Sequence[str], ordinals: Iterator[Batch] | None) -> DuckDBPyConnection:
    """Open a database in memory. `names` are what the parts' columns go by in the views; `ordinals` are the interviews
    of `self`, None for all.
    """
    duckdb = import_duckdb()
    try:
        settings = {"memory_limit": _MEMORY, "temp_directory": str(parts.spill)}
        connection = duckdb.connect(":memory:", config=settings)
        _create_views(connection, parts, names)
        _create_self(connection, dict(zip(parts.columns, names, strict=True))[ORDINAL], ordinals)
    except BaseException:
        parts.release()
        raise
    weakref.finalize(connection, parts.release)
    return connection


def _create_views(connection: DuckDBPyConnection, parts: OpenParts, names: Sequence[str]) -> None:
    files = ", ".join(_text(_PATTERNS.sub(r"[\g<0>]", str(file))) for file in parts.files)
    columns = ", ".join(
        f"{quote_name(column)} AS {quote_name(name)}" for column, name in zip(parts.columns, names, strict=True)
    )
    # By name: a part that is older than a column lacks it.
    read = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
    connection.execute(f"CREATE VIEW results AS SELECT {columns} FROM {read}")


def _create_self(connection: DuckDBPyConnection, ordinal: str, ordinals: Iterator[Batch] | None) -> None:
    if ordinals is None:
        connection.execute('CREATE VIEW "self" AS SELECT * FROM results')
        return
    import pyarrow as pa

    connection.execute("CREATE TABLE chosen_ordinals(number BIGINT)")
    for (numbers,) in ordinals:
        connection.register("arriving", pa.table({"number": pa.array(numbers, pa.int64())}))
        connection.execute("INSERT INTO chosen_ordinals SELECT number FROM arriving")
        connection.unregister("arriving")
    quoted = quote_name(ordinal)
    connection.execute(
        f'CREATE VIEW "self" AS SELECT * FROM results WHERE {quoted} IN (SELECT number FROM chosen_ordinals)'
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
