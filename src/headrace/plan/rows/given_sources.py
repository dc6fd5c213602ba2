"""What `from_source` reads: files, lists, dicts and data frames, by the name of their kind or by what they are.

`from_source("csv", "people.csv")`, `from_source("people.csv")`, `from_source(frame)`. Does not cover: reading files row
by row (plan.sources).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from headrace.errors import ListError, nearest
from headrace.plan.rows.data_frames import arrow_rows, is_arrow, is_data_frame, records
from headrace.plan.rows.file_rows import files_of
from headrace.plan.rows.opening import Reading, opened, spooled_rows, sqlite_rows
from headrace.plan.sources.csv_file import CsvSource
from headrace.plan.sources.excel_file import excel_rows
from headrace.plan.sources.fetched_files import fetched, is_address
from headrace.plan.sources.given_paths import is_directory
from headrace.plan.sources.json_file import json_objects
from headrace.plan.sources.jsonl_file import JsonlSource
from headrace.plan.sources.parquet_file import ParquetSource
from headrace.plan.sources.row_source import RowSource
from headrace.survey.people.field_verbs import check_known
from headrace.survey.values import Fields, decode_fields

Given: TypeAlias = RowSource | Iterable[Fields]

_THROUGH_PANDAS = {"dta": "read_stata"}
_ELSEWHERE = ("google_doc", "google_sheet", "latex", "pdf", "pdf_to_image", "urls", "wikipedia")


def given_source(kind_or_data: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Given:
    """The rows of what was given: `kind_or_data` is a kind where arguments follow, else the data."""
    kind, given = (kind_or_data, args) if args else _inferred(kind_or_data, options)
    if kind in _THROUGH_PANDAS:
        fix = f'Read it with pandas: from_source("pandas", pandas.{_THROUGH_PANDAS[kind]}(...)).'
        raise ListError(f"from_source does not read {kind!r} by itself.", fix=fix)
    if kind not in _KINDS:
        known = f"Read it into a list of dicts first. Known here: {', '.join(_KINDS)}."
        raise ListError(f"from_source does not read {kind!r}.", fix=known if kind in _ELSEWHERE else _near(kind))
    try:
        return _KINDS[kind](*given, **options)
    except TypeError as error:
        raise ListError(f'from_source("{kind}", ...): {error}.', fix="Check its arguments.") from None


def snake_names(names: Iterable[str]) -> dict[str, str]:
    """A name in small letters, digits and underscores for each name that has others; all stay distinct."""
    new_names: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names):
        plain = snake = _snake(name)
        number = 0
        while snake in taken:
            number += 1
            snake = f"{plain}_{number}"
        taken.add(snake)
        new_names[name] = snake
    return {name: snake for name, snake in new_names.items() if name != snake}


def _snake(name: str) -> str:
    plain = re.sub(r"_+", "_", re.sub(r"[^a-z0-9_]", "_", name.lower())).strip("_") or "field"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _inferred(data: Any, options: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """The kind of some data, and the arguments that kind takes."""
    if isinstance(data, (str, Path)):
        if is_directory(data):
            options.setdefault("recursive", True)  # as `from_file` reads it
            return "directory", (data,)
        return "file", (data,)
    if is_data_frame(data):
        return "pandas", (data,)
    if is_arrow(data):
        return "arrow", (data,)
    if isinstance(data, dict):
        held = cast("dict[str, Any]", data)
        is_nested = bool(held) and all(isinstance(value, dict) for value in held.values())
        return "nested_dict" if is_nested else "dict", (held,)
    if isinstance(data, list):
        rows = cast("list[Any]", data)
        if rows and isinstance(rows[0], dict):
            return "rows", (rows,)
        if rows and isinstance(rows[0], tuple):
            return "list_of_tuples", (options.pop("field_names", ()), rows)
        return "list", (options.pop("field_name", "value"), rows)
    if isinstance(data, Iterable):  # a data set of Hugging Face, a generator
        return "rows", (cast("Iterable[Any]", data),)
    raise ListError(f"from_source cannot tell what {data!r} is.", fix='Name its kind: from_source("csv", ...).')


def _file(file_path: str | Path, **reading: Any) -> Given:
    return opened(file_path, {}, Reading(**reading))


def _csv(file_or_url: str | Path, delimiter: str | None = None, encoding: str | None = None) -> Given:
    if is_address(file_or_url):
        return fetched(str(file_or_url), lambda path: CsvSource(path, {}, delimiter=delimiter, encoding=encoding))
    return CsvSource(Path(file_or_url), {}, delimiter=delimiter, encoding=encoding)


def _tsv(file_or_url: str | Path, encoding: str | None = None) -> Given:
    return _csv(file_or_url, "\t", encoding)


def _jsonl(file_path: str | Path) -> Given:
    return JsonlSource(Path(file_path), {})


def _json(file_path: str | Path) -> Given:
    return spooled_rows(json_objects(Path(file_path)), {}, Path(file_path))


def _excel(file_path: str | Path, sheet_name: str | None = None) -> Given:
    return spooled_rows(excel_rows(Path(file_path), sheet_name), {}, Path(file_path))


def _sqlite(
    db_path: str | Path, table: str | None = None, fields: Sequence[str] | None = None, query: str | None = None
) -> Given:
    rows = sqlite_rows(Path(db_path), {}, table, query)
    if fields is None:
        return rows
    check_known(fields, rows.field_names, f"{db_path} has no")
    return ({name: row[name] for name in fields} for row in map(decode_fields, rows.rows()))


def _directory(
    path: str | Path, recursive: bool | None = None, key_name: str = "content", glob: str | None = None
) -> Iterator[Fields]:
    return ({key_name: file} for file in files_of(path, recursive=recursive, glob=glob))


def _parquet(file_path: str | Path) -> Given:
    return ParquetSource(Path(file_path), {})


def _arrow(table: Any) -> Given:
    return arrow_rows(table, {})


def _list(field_name: str, values: Iterable[Any], use_indexes: bool = False) -> Iterator[Fields]:
    return (_numbered({field_name: value}, number, use_indexes) for number, value in enumerate(values))


def _tuples(field_names: Sequence[str], values: Iterable[Sequence[Any]], use_indexes: bool = False) -> Iterator[Fields]:
    for number, row in enumerate(values):
        if len(row) != len(field_names):
            raise ListError(
                f"Tuple {number} has {len(row)} items for {len(field_names)} names.", fix="Give field_names."
            )
        yield _numbered(dict(zip(field_names, row, strict=True)), number, use_indexes)


def _numbered(fields: Fields, number: int, use_indexes: bool) -> Fields:
    return {**fields, "idx": number} if use_indexes else fields


def _dict(data: Mapping[str, Any]) -> Iterable[Fields]:
    """One list for each field; or what `to_dict` of a list gives."""
    held = data.get("scenarios")
    if isinstance(held, list):
        return cast("list[Fields]", held)
    lengths = {
        name: len(cast("list[Any]", values)) if isinstance(values, list) else -1 for name, values in data.items()
    }
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise ListError(
            f"The values of {', '.join(lengths)} are not lists of one length.", fix="Give one for each field."
        )
    return (dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True))


def _nested_dict(data: Mapping[str, Mapping[str, Any]], id_field: str | None = None) -> Iterator[Fields]:
    for name, fields in data.items():
        yield {**fields, id_field: name} if id_field else dict(fields)


def _near(kind: Any) -> str:
    return nearest(str(kind), _KINDS)


_KINDS: dict[str, Callable[..., Given]] = {
    "file": _file,
    "csv": _csv,
    "tsv": _tsv,
    "delimited_file": _csv,
    "jsonl": _jsonl,
    "json": _json,
    "directory": _directory,
    "excel": _excel,
    "sqlite": _sqlite,
    "parquet": _parquet,
    "arrow": _arrow,
    "list": _list,
    "list_of_tuples": _tuples,
    "pandas": records,
    "polars": records,
    "rows": records,
    "dict": _dict,
    "nested_dict": _nested_dict,
}
