"""The bytes of a log in WAL mode: a header, then frames of a page each, every one with a checksum that goes on from the
frame before. SQLite's file format says how.

Does not cover: which log belongs to a file, and what a damaged one means (write_ahead_log).
"""

from __future__ import annotations

import struct
from io import FileIO

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
SALTS = slice(16, 24)  # in the header; each salt has four bytes
_MOST_UNSYNCED = 8  # commits in a row: the end, then a claim and two marks for each start that was killed there
_MOST_FRAMES = 20_000  # some 64 MB, as much as is left of a log that begins anew
_PAGE_SIZES = frozenset(1 << power for power in range(9, 17))
_SUMS = struct.Struct(">II")


def is_header_whole(header: bytes) -> bool:
    """Whether it is one that SQLite accepts: its checksum is right, and so is the size of a page."""
    if int.from_bytes(header[8:12]) not in _PAGE_SIZES:
        return False
    return _sums(header, header[:24], (0, 0)) == _SUMS.unpack(header[24:])


class LogFrames:
    """The frames of a log whose header is whole. Those with other salts are of the log before it began anew."""

    def __init__(self, file: FileIO, header: bytes) -> None:
        self._file = file
        self._header = header
        self._page_bytes = int.from_bytes(header[8:12])

    def has_commits_behind(self, pages: int) -> bool:
        """Whether more commits lie behind these pages than a power cut can leave there."""
        commits = 0
        for number in range(pages, pages + _MOST_FRAMES):
            if not (frame := self._read(number, FRAME_HEADER_BYTES)):
                return False
            commits += self._is_of_this_log(frame) and _is_commit(frame)
            if commits > _MOST_UNSYNCED:
                return True
        return False

    def goes_on_behind(self, pages: int) -> bool:
        """Whether the next commit is as it was written: then it is not the log that stops here, but what SQLite's index
        says of it, as at the moment in which a writer begins the log anew.
        """
        before = self._read(pages - 1, FRAME_HEADER_BYTES) if pages else b""
        sums = _SUMS.unpack(before[16:] if before else self._header[24:])
        for number in range(pages, pages + _MOST_FRAMES):
            frame = self._read(number, FRAME_HEADER_BYTES + self._page_bytes)
            if not frame or not self._is_of_this_log(frame):
                return False
            sums = _sums(self._header, frame[:8] + frame[FRAME_HEADER_BYTES:], sums)
            if sums != _SUMS.unpack(frame[16:FRAME_HEADER_BYTES]):
                return False
            if _is_commit(frame):
                return True
        return False

    def _read(self, number: int, size_bytes: int) -> bytes:
        """The beginning of a frame; nothing where the log is shorter."""
        self._file.seek(HEADER_BYTES + number * (FRAME_HEADER_BYTES + self._page_bytes))
        found = self._file.read(size_bytes)
        return found if len(found) == size_bytes else b""

    def _is_of_this_log(self, frame: bytes) -> bool:
        return frame[8:16] == self._header[SALTS]


def _is_commit(frame: bytes) -> bool:
    return frame[4:8] != bytes(4)


def _sums(header: bytes, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    """The checksum of these bytes behind what came before; the header says in which order the bytes of a word are."""
    first, second = sums
    for one, other in struct.iter_unpack(">II" if header[3] & 1 else "<II", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
