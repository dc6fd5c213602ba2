"""The formats that rows are written in at the command line: which there are, which one a file's name means.

Does not cover: how each is written (results.export).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from headrace.errors import OptionError
from headrace.results.results import Results
from headrace.results.tabular import Tabular

_BY_SUFFIX = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".md": "markdown",
    ".html": "html",
    ".htm": "html",
}
_SHORT = {"md": "markdown", "excel": "xlsx", "ndjson": "jsonl"}
FORMATS = tuple(dict.fromkeys(_BY_SUFFIX.values()))
EDSL = "edsl"  # a .json or .json.gz file, which says no format by its name


def format_of(path: Path, written: str | None, *, known: tuple[str, ...] = FORMATS) -> str:
    """The format that was named, or else the one that the file's name means; refused where they are two."""
    found = _BY_SUFFIX.get(path.suffix.lower())
    if written is not None:
        named = checked_format(written, known)
        if found not in (None, named):
            raise OptionError(
                f"{path.name} is the name of a file in the format {found}, and --format says {named}.",
                fix="Leave --format out, or give the file another name.",
            )
        return named
    if found not in known:
        raise OptionError(f"{path.name} does not say its format.", fix=f"Add --format, one of {', '.join(known)}.")
    return found


def default_output(path: Path, format: str | None) -> Path:
    """The file of an export that names none: named like the run file, with the format's ending; none that is there."""
    endings = {EDSL: ".json.gz", **{name: suffix for suffix, name in reversed(_BY_SUFFIX.items())}}
    if format is None:
        raise OptionError("No file and no format is named.", fix="Add -o results.csv, or --format csv.")
    output = path.with_suffix(endings[checked_format(format, (*FORMATS, EDSL))])
    if output.exists():
        raise OptionError(f"{output} is there already.", fix=f"Name the file: -o {output} replaces it.")
    return output


def checked_format(written: str, known: tuple[str, ...]) -> str:
    name = _SHORT.get(written, written)
    if name not in known:
        raise OptionError(f"--format {written} is not known.", fix=f"Use one of {', '.join(known)}.")
    return name


def write(table: Tabular, path: Path, format: str, *, escape_formulas: bool) -> None:
    """Write all rows into a file, whole or not at all."""
    writers: dict[str, Callable[[Path], object]] = {
        "csv": lambda path: table.to_csv(path, escape_formulas=escape_formulas),
        "jsonl": table.to_jsonl,
        "parquet": table.to_parquet,
        "xlsx": table.to_excel,
        "sqlite": table.to_sqlite,
        "markdown": table.to_markdown,
        "html": table.to_html,
    }
    if isinstance(table, Results):
        writers[EDSL] = table.to_edsl
    writers[format](path)


def print_parquet(table: Tabular) -> None:
    """Write a Parquet file to standard output: made whole elsewhere, because a reader begins with its end."""
    if sys.stdout.isatty():
        raise OptionError("A Parquet file is not for a terminal.", fix="Add -o x.parquet, or > x.parquet.")
    with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
        path = table.to_parquet(Path(directory) / "results.parquet")
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
