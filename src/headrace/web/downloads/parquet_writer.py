"""The process that writes a download's Parquet to its standard output: `python -m` with this module.

pyarrow takes as much memory as the whole page, and gives little of it back: it is loaded here and goes with the
process. Row groups are written as they come, since Parquet has what points at them behind them. The process takes what
to write from its standard input, and tells an error on its standard error as JSON. It ends when nobody reads its pipe.
Does not cover: the response (sending).
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import HeadraceError, MissingExtra, RunFileError
from headrace.results.export.arrow_batches import ShapeWidened, column_shapes
from headrace.results.export.column_source import ColumnSource
from headrace.results.export.parquet_files import write_row_groups
from headrace.results.reading.closed_between import batches_closed_between
from headrace.results.reading.file_view import FileView, SharedFile
from headrace.web.operations import ErrorBody

COMMAND = (sys.executable, "-m", "headrace.web.downloads.parquet_writer")


class ParquetAsked(msgspec.Struct, frozen=True):
    path: str
    filter: str
    columns: list[str]


def check_can_write() -> None:
    """Refuse before a process is started where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow")


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=ParquetAsked)
    try:
        _write(asked)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)  # the client is gone, and the flush at exit would fail again
    except HeadraceError as error:
        sys.stderr.write(msgspec.json.encode(ErrorBody(error.message, error.fix)).decode())
        sys.exit(1)


def _write(asked: ParquetAsked) -> None:
    file = SharedFile.checked(asked.path)
    try:
        view = FileView(file=file)
        view = view.filtering(asked.filter) if asked.filter else view
        source = _source(view.selecting(asked.columns))
        write_row_groups(_Pipe(), source, column_shapes(source))  # pyright: ignore[reportArgumentType]
    except ShapeWidened:
        raise RunFileError(
            "While it was read, the run put a new kind of value into a column.", path=Path(asked.path), fix="Try again."
        ) from None
    finally:
        file.reader.close()


def _source(view: FileView) -> ColumnSource:
    catalog = view.catalog()
    columns = list(view.columns(catalog))
    return ColumnSource(
        [catalog.shown(column) for column in columns],
        lambda: view.file.kept_kinds(columns),
        lambda: filter(None, batches_closed_between(view, columns)),
        lambda places: filter(None, batches_closed_between(view, [columns[place] for place in places])),
    )


class _Pipe:
    """Standard output as a file that pyarrow writes to: one that knows its place, and is never read."""

    def __init__(self) -> None:
        self._written = 0
        self.closed = False
        self.mode = "wb"

    def write(self, data: Any) -> int:
        written = len(memoryview(data).cast("B")) if len(data) else 0
        sys.stdout.buffer.write(data)
        self._written += written
        return written

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


if __name__ == "__main__":
    main()
