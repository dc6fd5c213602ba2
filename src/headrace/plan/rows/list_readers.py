"""The ways to make a list of rows that lie elsewhere: files of several formats, tables in memory. What both kinds of
lists share.

Does not cover: reading the formats (plan.sources, plan.rows.data_frames), or what the fields of a row become
(`ScenarioList._read`, `AgentList._read`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias, TypedDict, Unpack

from headrace.errors import ListError, nearest
from headrace.plan.rows.data_frames import arrow_rows
from headrace.plan.rows.opening import Reading, is_saved_list, opened, spooled_rows, sqlite_rows
from headrace.plan.sources.excel_file import excel_rows
from headrace.plan.sources.parquet_file import ParquetSource
from headrace.plan.sources.row_source import Renames, RowSource

OpenRows: TypeAlias = Callable[[Renames], RowSource]


class AgentParts(TypedDict, total=False):
    """What agents have beside the columns of a row; parameters as those of `AgentList.from_csv`."""

    name_field: str | None
    codebook: Mapping[str, str] | None
    instructions: str | None


AGENT_PARTS = ("name_field", "codebook", "instructions")


class ListReaders:
    """Makes lists. Agents also take a `name_field`, a `codebook` and `instructions`, as in `AgentList.from_csv`."""

    _agent_parts: tuple[str, ...] = AGENT_PARTS  # those that a list of this kind takes

    @classmethod
    def _read(cls, open_rows: OpenRows, parts: AgentParts) -> Self:
        """A list of the rows that `open_rows` gives, once it is told other names for columns."""
        raise NotImplementedError

    @classmethod
    def _checked(cls, open_rows: OpenRows, parts: AgentParts, *options: str) -> Self:
        """`_read`, once every keyword is known: only type checkers refuse others. `options` the reader itself has."""
        for name in parts:
            if name not in AGENT_PARTS:
                known = [*options, *cls._agent_parts]
                raise ListError(f"There is no option {name!r} here.", fix=nearest(name, known) or "Leave it out.")
        return cls._read(open_rows, parts)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A list that `save` has written."""
        raise NotImplementedError

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        table: str | None = None,
        query: str | None = None,
        **agent_parts: Unpack[AgentParts],
    ) -> Self:
        """One item a row of a file, whose name tells its format: `.csv`, `.jsonl`, `.parquet`, `.xlsx`, `.db`, ...

        Also `.csv.gz` and `.csv.zst`, many files (`"data/*.csv"`), standard input (`"-"`), and addresses like
        `"s3://bucket/rows.parquet"`, where fsspec is installed. What `save` or EDSL wrote of a list (`.yaml`, `.json`,
        `.json.gz`, `.ep`) is read as `load` does.
        """
        if is_saved_list(path):
            if any(part is not None for part in agent_parts.values()):
                raise ListError(f"{path} holds a whole list.", fix=f"Leave out {', '.join(agent_parts)}.")
            return cls.load(path)
        reading = Reading(delimiter=delimiter, encoding=encoding, sheet=sheet, table=table, query=query)
        options = ("delimiter", "encoding", "sheet", "table", "query")
        return cls._checked(lambda rename: opened(path, rename, reading), agent_parts, *options)

    @classmethod
    def from_excel(cls, path: str | Path, sheet: str | None = None, **agent_parts: Unpack[AgentParts]) -> Self:
        """One item a row of a sheet, the first where none is named; its first row has the names."""
        where = Path(path)
        return cls._checked(lambda rename: spooled_rows(excel_rows(where, sheet), rename, where), agent_parts, "sheet")

    @classmethod
    def from_sqlite(
        cls, path: str | Path, table: str | None = None, query: str | None = None, **agent_parts: Unpack[AgentParts]
    ) -> Self:
        """One item a row of a table, the only one where none is named, or of a query. Nothing of the file is executed:
        no view or trigger.
        """
        return cls._checked(lambda rename: sqlite_rows(Path(path), rename, table, query), agent_parts, "table", "query")

    @classmethod
    def from_parquet(cls, path: str | Path, **agent_parts: Unpack[AgentParts]) -> Self:
        """One item a row of a Parquet file, in the types of its columns; read in batches, each time it is needed."""
        return cls._checked(lambda rename: ParquetSource(Path(path), rename), agent_parts)

    @classmethod
    def from_arrow(cls, table: Any, **agent_parts: Unpack[AgentParts]) -> Self:
        """One item a row of an Arrow table, a reader, or record batches; read once, a batch at a time."""
        return cls._checked(lambda rename: arrow_rows(table, rename), agent_parts)
