"""The ways to make a list of rows that lie elsewhere: files of several formats, tables in memory. What both kinds of
lists share.

Does not cover: reading the formats (plan.sources, plan.rows.data_frames), or what the fields of a row become
(`ScenarioList._read`, `AgentList._read`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias, TypedDict, Unpack

from headrace.plan.rows.data_frames import arrow_rows
from headrace.plan.sources.parquet_file import ParquetSource
from headrace.plan.sources.row_source import Renames, RowSource

OpenRows: TypeAlias = Callable[[Renames], RowSource]


class AgentParts(TypedDict, total=False):
    """What agents have beside the columns of a row; parameters as those of `AgentList.from_csv`."""

    name_field: str | None
    codebook: Mapping[str, str] | None
    instructions: str | None


class ListReaders:
    """Makes lists. Agents also take a `name_field`, a `codebook` and `instructions`, as in `AgentList.from_csv`."""

    @classmethod
    def _read(cls, open_rows: OpenRows, parts: AgentParts) -> Self:
        """A list of the rows that `open_rows` gives, once it is told other names for columns."""
        raise NotImplementedError

    @classmethod
    def from_parquet(cls, path: str | Path, **agent_parts: Unpack[AgentParts]) -> Self:
        """One item a row of a Parquet file, in the types of its columns; read in batches, each time it is needed."""
        return cls._read(lambda rename: ParquetSource(Path(path), rename), agent_parts)

    @classmethod
    def from_arrow(cls, table: Any, **agent_parts: Unpack[AgentParts]) -> Self:
        """One item a row of an Arrow table, a reader, or record batches; read once, a batch at a time."""
        return cls._read(lambda rename: arrow_rows(table, rename), agent_parts)
