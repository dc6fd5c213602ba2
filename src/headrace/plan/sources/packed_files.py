"""Packed files, `.gz` and `.zst`, as the bytes that they hold: unpacked as they are read, never whole."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import zstandard

from headrace.errors import ListError

PACKED = (".gz", ".zst")
_BLOCK_BYTES = 1 << 16
_LARGEST_WINDOW_BYTES = 1 << 27  # what `zstd` itself unpacks without being asked to


def unpacked(stored: io.BufferedReader[Any], path: Path) -> io.BufferedReader[Any]:
    """The bytes in a file; its own where its name says nothing of packing."""
    match path.suffix.lower():
        case ".gz":
            return io.BufferedReader(_Unpacked(gzip.GzipFile(fileobj=stored), path), _BLOCK_BYTES)
        case ".zst":
            unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW_BYTES)
            stream = unpacker.stream_reader(stored, read_across_frames=True, closefd=False)
            return io.BufferedReader(_Unpacked(stream, path), _BLOCK_BYTES)
        case _:
            return stored


def inner_suffix(path: Path) -> str:
    """The end of the name that tells the format: `.csv` of `people.csv.gz`."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in PACKED else suffix


class _Unpacked(io.RawIOBase):
    """What is unpacked, with errors in words."""

    def __init__(self, stream: Any, path: Path) -> None:
        super().__init__()
        self._stream = stream
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            read = self._stream.read(len(buffer))
        except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
            raise ListError(f"{self._path} cannot be unpacked: {error}.", fix="Is it whole? Pack it again.") from None
        buffer[: len(read)] = read
        return len(read)
