"""A run file's answers and fields, range by range of ordinals: what its Parquet parts are made of.

Does not cover: keeping the parts (results.export.parquet_parts).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headrace.results.columns.catalog import Catalog
from headrace.results.columns.result_column import Group, ResultColumn
from headrace.results.export.listing import bare_names
from headrace.results.export.parquet_parts import RangedSource
from headrace.results.reading.file_view import FileView
from headrace.store.run_file.range_digests import RangeDigest, made_at, range_digests
from headrace.store.run_file.removal import PARTS


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


def parts_directory(path: Path) -> Path:
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


def names_in_sql(columns: list[str]) -> list[str]:
    """The names without their groups, where that leaves no two alike, in whichever case."""
    bare = bare_names(columns)
    counts = Counter(name.lower() for name in bare)
    return [name if counts[name.lower()] == 1 else full for name, full in zip(bare, columns, strict=True)]
