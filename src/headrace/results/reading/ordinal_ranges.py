"""A run file's answers and fields, range by range of ordinals: what its Parquet parts are made of, for DuckDB.

Does not cover: keeping the parts (results.export.parquet_parts), or asking them (results.export.duckdb_views).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.export import duckdb_views, parquet_parts
from headrace.results.export.listing import bare_names
from headrace.results.export.parquet_parts import RangedSource
from headrace.results.reading import chosen_columns
from headrace.results.reading.file_view import FileView
from headrace.store.run_file.range_digests import RangeDigest, made_at, range_digests
from headrace.store.run_file.removal import PARTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def duckdb_connection(part: FileView, directory: str | Path | None) -> DuckDBPyConnection:
    """Bring the Parquet parts of a view's file up to date, by default beside it, and have DuckDB read them."""
    duckdb_views.import_duckdb()
    source = ranged_source(part)
    place = _parts_directory(part.file.reader.path) if directory is None else Path(directory).expanduser()
    parts = parquet_parts.up_to_date_parts(place.absolute(), source)
    is_everything = part.view.is_whole and part.view.scope is None
    ordinals = None if is_everything else chosen_columns.batches_of([part.selecting([parquet_parts.ORDINAL])])
    return duckdb_views.connect(parts, _names_in_sql(source.columns), ordinals)


def ranged_source(part: FileView) -> RangedSource:
    """All interviews of the file, whichever the view has."""
    reader, header = part.file.reader, part.file.header
    plain = FileView(file=part.file)
    columns = _answers_and_fields(plain.catalog())
    opened = plain.opened()

    def digests() -> dict[int, RangeDigest]:
        with reader.snapshot() as connection:
            return range_digests(connection, header)

    with reader.snapshot() as connection:
        made = made_at(connection)
    return RangedSource(
        path=reader.path,
        made_at=made,
        columns=distinct_names(columns),
        kinds=lambda: part.file.kept_kinds(columns),
        digests=digests,
        batches=lambda first, stop: opened.batches_between(columns, first, stop),
    )


def _answers_and_fields(catalog: Catalog) -> list[ResultColumn]:
    """All columns of data but for parameters that all models share."""
    return [
        column
        for column in catalog.data
        if column.group is not Group.MODEL or column.name == "model" or column in catalog.first
    ]


def _parts_directory(path: Path) -> Path:
    return path.with_name(path.name + PARTS)


def distinct_names(columns: Sequence[ResultColumn]) -> list[str]:
    """The full names, told apart by a number where they differ by nothing but case: DuckDB takes these for one."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for column in columns:
        seen[column.full_name.lower()] += 1
        repeated = seen[column.full_name.lower()]
        names.append(column.full_name if repeated == 1 else f"{column.full_name}_{repeated}")
    return names


def _names_in_sql(columns: list[str]) -> list[str]:
    """The names without their groups, where that leaves no two alike, in whichever case."""
    bare = bare_names(columns)
    counts = Counter(name.lower() for name in bare)
    return [name if counts[name.lower()] == 1 else full for name, full in zip(bare, columns, strict=True)]
