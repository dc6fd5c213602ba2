"""The text of a file: its encoding, and its lines, none of which is longer than a stated bound.

Covers: byte order marks, and the error that names the line that is not in the encoding. Does not cover: cells.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Generator
from functools import partial
from pathlib import Path

from headrace.errors import ListError, spelled
from headrace.plan.sources.hashed_file import HashedFile

LONGEST_CELL = 16_000_000  # the same; the library that reads CSV holds four bytes for each letter
LONGEST_LINE = 64_000_000  # more than any model reads; a file without line ends must not be read whole
NO_ROWS = "Is it the right file? Rows end with a line end."
_LONG_LINE = 1_000_000
_MOST_BLANK_LINES = 2_000_000  # twice the rows of a sheet, which may be saved with all of its empty ones
_ANOTHER = spelled("Name its encoding, like {encoding}, or save it as UTF-8.", encoding="cp1252")
# How files begin that are no text, and what they are.
_NO_TEXT = {
    b"\x1f\x8b": ("packed by gzip", "Unpack it first (zcat), or give the file by its name, which ends in .gz."),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "Unpack it first (zstdcat), or give the file by its name, with .zst."),
    b"PAR1": ("a Parquet file", "Give the file by its name, which ends in .parquet."),
    b"PK\x03\x04": ("a workbook or a zip file", "Give a workbook by its name, which ends in .xlsx; unpack others."),
}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def found_encoding(path: Path, given: str | None) -> str:
    """The encoding that the user names, else that of the file's byte order mark, else UTF-8."""
    if given is not None:
        try:
            return codecs.lookup(given).name
        except LookupError:
            raise ListError(f"There is no encoding {given!r}.", fix='Common ones: "utf-8", "cp1252".') from None
    with HashedFile(path) as file:
        first = file.binary.peek(3)
    return next((name for mark, name in _MARKS.items() if first.startswith(mark)), "utf-8")


def text_lines(file: HashedFile, path: Path, encoding: str) -> Generator[str, None, None]:
    """The file's lines, with their ends; each is bounded before it is held in memory."""
    text = io.TextIOWrapper(file.binary, encoding=encoding, newline="")
    blanks, was_blank = BlankLines(), False
    try:
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE + 1), ""), 1):
            if len(line) > _LONG_LINE:
                check_line(path, number, len(line))
            elif line[0] in "\r\n":
                blanks.check(path, len(line))
                was_blank = True
            elif was_blank:
                blanks.end()
                was_blank = False
            yield line
    except UnicodeError:
        raise undecodable(path, encoding) from None
    finally:
        if not file.binary.closed:  # the file's own `with` has ended first where a Ctrl-C came between
            text.detach()


class BlankLines:
    """Counts the blank lines in one place: a small packed file may hold any number of them."""

    told = f"it has more than {_MOST_BLANK_LINES:,} blank lines in one place, or {LONGEST_LINE // 1_000_000} MB of them"

    def __init__(self) -> None:
        self._lines = self._bytes = 0

    def are_too_many(self, length: int) -> bool:
        """Whether another one of this length is beyond what is passed over."""
        self._lines += 1
        self._bytes += length
        return self._lines > _MOST_BLANK_LINES or self._bytes > LONGEST_LINE

    def end(self) -> None:
        """A line that is not blank follows."""
        self._lines = self._bytes = 0

    def check(self, path: Path, length: int) -> None:
        if self.are_too_many(length):
            raise ListError(f"{path} cannot be read: {self.told}.", fix="Is it the right file?")


def check_line(path: Path, number: int, length: int) -> None:
    if length > LONGEST_LINE:
        raise ListError(f"{path}, line {number} is longer than {LONGEST_LINE // 1_000_000} MB.", fix=NO_ROWS)


def undecodable(path: Path, encoding: str) -> ListError:
    """The error that names the first line that is not in the encoding. A decoder reads blocks, and does not know it."""
    named = "UTF-8" if encoding.startswith("utf-8") else encoding
    if encoding.startswith("utf-16"):  # a line end is two bytes
        return ListError(f"{path} is not {named}.", fix=_ANOTHER)
    with HashedFile(path) as file:
        if (other := _of_another_kind(path, file.binary.peek(4)[:4])) is not None:
            return other
        for number, line in enumerate(iter(partial(file.binary.readline, LONGEST_LINE), b""), 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                shown = line[max(0, error.start - 10) : error.end + 5].decode("cp1252", "replace").strip()
                fix = f"Name its encoding: if {shown!r} looks right, {{encoding}}. Or save it as UTF-8."
                return ListError(f"{path}, line {number} is not {named}.", fix=spelled(fix, encoding="cp1252"))
    return ListError(f"{path} is not {named}.", fix=_ANOTHER)


def _of_another_kind(path: Path, first: bytes) -> ListError | None:
    """The error for a file that is no text in bytes, told by its first four."""
    for sign, (what, fix) in _NO_TEXT.items():
        if first.startswith(sign):
            return ListError(f"{path} is {what}, and no text.", fix=fix)
    if b"\0" not in first:
        return None
    encoding = "utf-16-le" if first[1:2] == b"\0" else "utf-16-be"
    return ListError(f"{path} looks like UTF-16.", fix=spelled("Name its encoding: {encoding}.", encoding=encoding))
