"""Reads the rows of a sheet in an Excel workbook. Does not cover: what a row means (plan.rows).

The first row that is not empty is the header; empty rows are passed over. Excel stores every number as a float: one
without a fraction is an integer. Dates and times become text. Of merged cells the first has
the value, and the others are None. Formulas are what they came to when the workbook was saved.

The library reads a sheet whole, in about twice the memory that its XML takes, and more for a few cells that lie far
apart: in a process of its own, with limits (plan.sources.excel_child). Larger workbooks are refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from headrace.display import counted
from headrace.edsl_names import warn_once
from headrace.errors import ListError, MissingExtra
from headrace.plan.sources import excel_child
from headrace.plan.sources.hashed_file import open_plain
from headrace.plan.sources.header_names import renamed_columns
from headrace.plan.sources.text_files import LONGEST_LINE
from headrace.survey.values import Fields

LARGEST_BYTES = 256_000_000  # of what the workbook holds, unpacked: about a million rows of five columns
_LIBRARY = "python-calamine"
_LONGEST_NAME = 1_000  # of a sheet that a command line takes
_AS_TEXT = "Save the sheet as CSV or Parquet, which are read row by row."
_RIGHT_FILE = "Is it the right file? A workbook with a password cannot be read."


def excel_rows(path: Path, sheet: str | None) -> Iterator[Fields]:
    """The rows of a sheet, the first where none is named."""
    if find_spec("python_calamine") is None:
        raise MissingExtra(_LIBRARY)
    with closing(_filled_rows(path, sheet)) as rows:
        yield from _sheet_fields(rows, path)


def _filled_rows(path: Path, sheet: str | None) -> Generator[list[Any]]:
    """The rows that are not empty, as the child process prints them."""
    command = [sys.executable, "-P", excel_child.__file__, str(LARGEST_BYTES)]
    with open_plain(path) as file:
        child = subprocess.Popen(
            command if sheet is None else [*command, json.dumps(sheet[:_LONGEST_NAME])],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    with child:
        try:
            assert child.stdout is not None
            end: dict[str, Any] = {}
            for line in iter(partial(child.stdout.readline, LONGEST_LINE), b""):
                if not line.endswith(b"\n"):
                    break  # a row that is too long, or one that was not written to its end
                found: Any = json.loads(line)
                if isinstance(found, dict):
                    end = cast("dict[str, Any]", found)
                else:
                    yield found
            if not end.get("whole"):
                raise _problem(path, sheet, end)
            if count := end.get("passed_over"):
                what = f"{counted(count, 'row')} of {path} passed over"
                warn_once(f"{what}: no cell has a value there, and errors such as #N/A are none.")
        finally:
            child.kill()


def _problem(path: Path, sheet: str | None, end: dict[str, Any]) -> Exception:
    """The error for how reading ended, which is nothing where the child process was killed."""
    match end:
        case {"missing": _}:
            return MissingExtra(_LIBRARY)
        case {"too_large": _}:
            return ListError(f"{path} holds more than {LARGEST_BYTES // 1_000_000} MB.", fix=_AS_TEXT)
        case {"sheets": names}:
            there = ", ".join(map(repr, names))
            return ListError(f"{path} has no sheet {sheet!r}.", fix=f"The sheets there are: {there}.")
        case {"broken": what}:
            return ListError(f"{path} cannot be read as a workbook: {str(what).rstrip('.')}.", fix=_RIGHT_FILE)
        case _:
            what = "reading it takes more memory or time than a workbook does: its cells may lie too far apart"
            return ListError(f"{path} cannot be read as a workbook: {what}.", fix=_AS_TEXT)


def _sheet_fields(rows: Iterator[list[Any]], path: Path) -> Iterator[Fields]:
    header = next(rows, None)
    if header is None:
        raise ListError(f"The sheet of {path} is empty.", fix="Give it a row with names, or name another sheet.")
    names = ["" if cell is None else str(cell).strip() for cell in header]
    while names and not names[-1]:
        names.pop()
    fields = renamed_columns(names, {}, str(path))
    for row in rows:
        if any(cell is not None for cell in row[len(fields) :]):
            raise ListError(f"{path} has cells beside its last column with a name.", fix="Name that column too.")
        cells = row[: len(fields)]
        yield dict(zip(fields, cells + [None] * (len(fields) - len(cells)), strict=True))
