"""Brings rows from elsewhere onto this machine: standard input, and addresses that fsspec knows (s3://, gs://, hf://,
https://). Covers: a temporary file that lives as long as the source that reads it.

What is fetched keeps the end of its name, which tells its format. Does not cover: reading it (plan.rows.opening).
"""

from __future__ import annotations

import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import urlsplit

from headrace.errors import ListError, MissingExtra, StorageFull
from headrace.survey.values import Fields

Source = TypeVar("Source")

_BLOCK_BYTES = 1 << 20
_FOLDER = "headrace-"
_LIBRARIES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "hf": "huggingface_hub",
    "https": "aiohttp",
    "http": "aiohttp",
}
_JSON = (b"{", b"[")


def is_address(given: object) -> bool:
    """Whether a text names something elsewhere. A path never does: what a file of the user's names is a file."""
    return isinstance(given, str) and "://" in given and given.partition("://")[0].isalnum()


def fetched(address: str, open_file: Callable[[Path], Source]) -> Source:
    """What `open_file` makes of a copy of a file elsewhere."""
    scheme, name = urlsplit(address).scheme, Path(urlsplit(address).path).name or "rows"
    fsspec = _fsspec()
    try:
        with fsspec.open(address, "rb") as remote:
            return _kept(cast(BinaryIO, remote), name, open_file)
    except ImportError:
        raise MissingExtra(_LIBRARIES.get(scheme, f"the library of {scheme}://")) from None
    except (OSError, ValueError) as error:
        raise ListError(
            f"{address} cannot be read: {error}.", fix="Check the address, and what it needs to sign in."
        ) from None


def standard_input(open_file: Callable[[Path], Source]) -> Source:
    """What `open_file` makes of a copy of standard input; its first sign tells CSV from JSON."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ListError("Nothing is given on standard input.", fix="Pipe the rows into it: cat rows.csv | headrace ...")
    given = cast("BufferedReader", sys.stdin.buffer)
    first = given.peek(_BLOCK_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    suffix = ".csv" if first not in _JSON else ".jsonl" if first == b"{" else ".json"
    return _kept(given, f"standard input{suffix}", open_file)


def hub_rows(address: str) -> Iterator[Fields]:
    """The rows of a data set of the Hugging Face hub, streamed: `hf://datasets/owner/name`, of its split `train`."""
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtra("datasets") from None
    name = address.removeprefix("hf://").removeprefix("datasets/").rstrip("/")
    found: Any = cast(Any, datasets).load_dataset(name, split="train", streaming=True)
    return iter(found)


def _fsspec() -> Any:
    try:
        import fsspec  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtra("fsspec") from None
    return cast(Any, fsspec)


def _kept(content: BinaryIO, name: str, open_file: Callable[[Path], Source]) -> Source:
    folder = tempfile.TemporaryDirectory(prefix=_FOLDER, ignore_cleanup_errors=True)
    try:
        path = Path(folder.name) / name
        _copy(content, path)
        made = open_file(path)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(made, folder.cleanup)
    return made


def _copy(content: BinaryIO, path: Path) -> None:
    """Copy to the end, or until the disk is full: what comes through a pipe may have no end."""
    with path.open("wb", buffering=0) as copy:
        while block := content.read(_BLOCK_BYTES):
            try:
                written = 0
                while written < len(block):
                    written += copy.write(memoryview(block)[written:])
            except OSError as error:
                raise StorageFull(path.parent.parent, error.strerror or str(error), temporary=True) from None
