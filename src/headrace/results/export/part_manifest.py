"""The manifest of a directory of Parquet parts: which run file they are of, their columns, and what each part holds.

It is replaced whole, after the parts that it lists are on disk: whatever is not listed is rubbish that a killed process
left. Does not cover: writing parts (parquet_parts).
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Any

import msgspec

from headrace.plain_files.side_files import open_side_file
from headrace.results.export.column_shapes import DictOf, Leaf, ListOf, Shape
from headrace.store.private import make_file, sync

MANIFEST = "manifest.json"
_VERSION = 1
_MOST_BYTES = 100_000_000
_PART = re.compile(r"(?:part-\d{1,15}|schema)-[0-9a-f]{16}\.parquet")


class PartEntry(msgspec.Struct, frozen=True, array_like=True):
    """One file of rows. `digest` is that of its range of interviews when it was read (store.run_file.range_digests)."""

    name: str
    digest: tuple[int, int]
    file_bytes: int


class PartManifest(msgspec.Struct, frozen=True, kw_only=True):
    """All parts have the same shapes of columns; one written before a column was added lacks it. `schema` is a file
    without rows that has them all.
    """

    version: int = _VERSION
    made_at: float
    columns: list[tuple[str, Any]]  # names and encoded shapes
    schema: PartEntry | None = None
    parts: dict[int, PartEntry] = {}

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: decoded_shape(shape) for name, shape in self.columns}

    @property
    def entries(self) -> list[PartEntry]:
        """The files, in the order of the interviews."""
        listed = [self.parts[number] for number in sorted(self.parts)]
        return listed if self.schema is None else [self.schema, *listed]


def new_name(kind: str) -> str:
    """A file name that nobody else has."""
    return f"{kind}-{secrets.token_hex(8)}.parquet"


def is_part_name(name: str) -> bool:
    return _PART.fullmatch(name) is not None


def load_manifest(directory: Path) -> PartManifest | None:
    """The manifest; None where there is none, or none that can be used: then the parts are made again."""
    path = directory / MANIFEST
    try:
        with os.fdopen(open_side_file(path), "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return None
            found = msgspec.json.decode(file.read(_MOST_BYTES), type=PartManifest)
        usable = found.version == _VERSION and all(is_part_name(entry.name) for entry in found.entries)
        return found if usable and len(found.shapes) == len(found.columns) else None
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def save_manifest(directory: Path, manifest: PartManifest) -> None:
    unfinished = directory / f".{MANIFEST}.{secrets.token_hex(8)}.part"
    try:
        make_file(unfinished)
        unfinished.write_bytes(msgspec.json.encode(manifest))
        sync(unfinished)
        unfinished.replace(directory / MANIFEST)
        sync(directory)
    finally:
        unfinished.unlink(missing_ok=True)


def encoded_shape(shape: Shape) -> Any:
    match shape:
        case ListOf(item):
            return {"list": encoded_shape(item)}
        case DictOf(fields):
            return {"dict": [[name, encoded_shape(held)] for name, held in fields]}
        case Leaf():
            return shape.value


def decoded_shape(encoded: Any) -> Shape:
    """The reverse; raises ValueError for anything else."""
    match encoded:
        case str():
            return Leaf(encoded)
        case {"list": item}:
            return ListOf(decoded_shape(item))
        case {"dict": [*fields]}:
            pairs = [(str(name), decoded_shape(held)) for name, held in fields]
            return DictOf(tuple(pairs))
        case _:
            raise ValueError("no shape of a column")
