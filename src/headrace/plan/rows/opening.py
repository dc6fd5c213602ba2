"""Opens the rows of what was given: one function for `from_file`, `from_source`, `Job.map` and the command line.

    people.csv  .tsv  .jsonl  .ndjson  .json        text; also packed: people.csv.gz, people.jsonl.zst
    people.yaml  .ep, and .json with one object     lists that `save` or EDSL wrote: `load` reads them
    people.parquet  .arrow  .feather  .xlsx  .xls  .ods  .db  .sqlite  .sqlite3
    data/*.csv                                      many files as one list, in the order of their names
    -                                               standard input, CSV or JSON by its first sign
    https://...  s3://...  gs://...  hf://...       fetched by fsspec, and then by the end of its name

Does not cover: reading the formats (plan.sources), directories of files to be asked about (plan.rows.file_rows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import ListError, Spelled
from headrace.plan.rows.data_frames import arrow_rows
from headrace.plan.rows.spool import Spool
from headrace.plan.sources.arrow_columns import import_arrow
from headrace.plan.sources.arrow_lengths import check_unpacked
from headrace.plan.sources.csv_file import CsvSource
from headrace.plan.sources.excel_file import excel_rows
from headrace.plan.sources.fetched_files import fetched, hub_rows, is_address, standard_input
from headrace.plan.sources.given_paths import given_path, is_directory, is_there, paths_like, way_of_edsl
from headrace.plan.sources.hashed_file import FileStamp, open_plain
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.json_file import begins_with_object, json_objects
from headrace.plan.sources.jsonl_file import JsonlSource
from headrace.plan.sources.many_files import ManyFiles
from headrace.plan.sources.packed_files import PACKED, inner_suffix
from headrace.plan.sources.parquet_file import ParquetSource
from headrace.plan.sources.row_source import Renames, RowSource, renamed_fields
from headrace.survey.values import Fields

_PATTERN = frozenset("*?[")
_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_SAVED = (".yaml", ".yml", ".ep")
KNOWN = (*_TEXT, ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".ods", ".db", ".sqlite", ".sqlite3")
_KNOWN_ENDS = f"Known are {', '.join(KNOWN)}, and .gz or .zst behind texts"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How files are read: what their formats leave open."""

    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None


PLAINLY = Reading()


def opened(given: str | Path, rename: Renames, reading: Reading = PLAINLY) -> RowSource:
    """The rows of a file, of many, of standard input, or of an address."""
    if given == "-":
        return standard_input(lambda path: _opened_file(path, rename, reading))
    if isinstance(given, str) and is_address(given):
        if given.startswith("hf://") and not Path(given).suffix:
            return Spool(renamed_rows(hub_rows(given), rename, given), "row")
        return fetched(given, lambda path: _opened_file(path, rename, reading))
    path = given_path(given)
    if _PATTERN.isdisjoint(str(given)) or is_there(path):
        return _opened_file(path, rename, reading)
    paths = paths_like(path)
    if not paths:
        raise ListError(
            f"No file is named like {given}.", fix="Check the pattern; quote it where a shell would read it."
        )
    return ManyFiles([_opened_file(each, rename, reading) for each in paths])


def is_saved_list(given: str | Path) -> bool:
    """Whether this is a file that `save` or EDSL wrote: it holds a list as a whole, with codebooks and the like."""
    if given == "-" or (isinstance(given, str) and is_address(given)):
        return False
    path = given_path(given)
    if path.suffix.lower() in _SAVED:
        return True
    return inner_suffix(path) == ".json" and is_there(path) and not is_directory(path) and begins_with_object(path)


def renamed_rows(rows: Iterable[Fields], rename: Renames, where: str) -> Iterator[Fields]:
    """Rows with other names for their fields; a function tells them for each row, since rows of JSON may differ."""
    is_first = True
    for fields in rows:
        renames = rename(fields) if callable(rename) else rename
        if is_first:
            renamed_columns([*fields], renames, where)
            is_first = False
        yield renamed_fields(fields, renames, where)


def spooled_rows(rows: Iterable[Fields], rename: Renames, path: Path) -> Spool:
    """The rows of a file, read once; an error where it changed meanwhile."""
    stamp = FileStamp.of(path)
    spool = Spool(renamed_rows(rows, rename, str(path)), f"{path}, row")
    stamp.check(path)
    return spool


def sqlite_rows(path: Path, rename: Renames, table: str | None, query: str | None) -> Spool:
    from headrace.store.queries.foreign_tables import foreign_rows  # the only folder that opens SQLite files

    # One moment of the file, whoever writes to it meanwhile.
    return Spool(renamed_rows(foreign_rows(path, table, query), rename, str(path)), f"{path}, row")


def arrow_file(path: Path, rename: Renames) -> Spool:
    """The rows of a file of Arrow's own, which is a file or a stream; read once, a batch at a time."""
    pa, stamp = import_arrow(), FileStamp.of(path)
    with open_plain(path) as file:
        try:
            try:
                reader = pa.ipc.open_file(file)
                check_unpacked(file, path, is_stream=False)
                batches: Any = map(reader.get_batch, range(reader.num_record_batches))
            except pa.ArrowInvalid:
                check_unpacked(file, path, is_stream=True)
                file.seek(0)
                batches = reader = pa.ipc.open_stream(file)
            # Arrow itself trusts a file's offsets: wrong ones read other memory into rows, or crash.
            data = pa.RecordBatchReader.from_batches(reader.schema, map(_validated, batches))
            rows = arrow_rows(data, rename, str(path))
        except (pa.ArrowException, OSError) as error:
            what = str(error).splitlines()[0].rstrip(".")
            raise ListError(f"{path} cannot be read as Arrow: {what}.", fix="Is it the right file?") from None
    stamp.check(path)
    return rows


def _validated(batch: Any) -> Any:
    batch.validate(full=True)
    return batch


def _opened_file(path: Path, rename: Renames, reading: Reading) -> RowSource:
    if is_directory(path):
        raise ListError(f"{path} is a directory.", fix=f'Name the files in it that hold rows: "{path / "*.csv"}".')
    suffix, is_packed = inner_suffix(path), path.suffix.lower() in PACKED
    if suffix == ".ep":
        raise ListError(f"{path} is a package of EDSL's.", fix=way_of_edsl(path))
    if suffix not in (_TEXT if is_packed else KNOWN):
        ending = "".join(path.suffixes[-2:]) if is_packed else path.suffix
        raise ListError(
            f"The name of {path} {f'ends in {ending!r}' if ending else 'has no end'}, which tells no format.",
            fix=Spelled(
                f"{_KNOWN_ENDS}; from_csv() and its like read any name.",
                command=f"{_KNOWN_ENDS}. Give the file such a name, or hand it over as standard input: - < {path}",
            ),
        )
    return _OPENERS[suffix](path, rename, reading)


def _csv(path: Path, rename: Renames, reading: Reading) -> RowSource:
    return CsvSource(path, rename, delimiter=reading.delimiter, encoding=reading.encoding)


def _tsv(path: Path, rename: Renames, reading: Reading) -> RowSource:
    return CsvSource(path, rename, delimiter=reading.delimiter or "\t", encoding=reading.encoding)


def _excel(path: Path, rename: Renames, reading: Reading) -> RowSource:
    return spooled_rows(excel_rows(path, reading.sheet), rename, path)


def _sqlite(path: Path, rename: Renames, reading: Reading) -> RowSource:
    return sqlite_rows(path, rename, reading.table, reading.query)


def _by_itself(make: Callable[[Path, Renames], RowSource]) -> Callable[[Path, Renames, Reading], RowSource]:
    """An opener of a format that leaves nothing open."""
    return lambda path, rename, reading: make(path, rename)


_OPENERS: dict[str, Callable[[Path, Renames, Reading], RowSource]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    **dict.fromkeys((".jsonl", ".ndjson"), _by_itself(JsonlSource)),
    ".json": _by_itself(lambda path, rename: spooled_rows(json_objects(path), rename, path)),
    ".parquet": _by_itself(ParquetSource),
    **dict.fromkeys((".arrow", ".feather"), _by_itself(arrow_file)),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _excel),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _sqlite),
}
