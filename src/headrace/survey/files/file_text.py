"""The text of a file: of a text file as it is, of a PDF through pypdfium2, in a process of its own.

Measured on a PDF of 100 pages, CPU and memory: pypdfium2 29 ms and 6 MB to load, 90 ms to read; pypdf 80 ms, 20 MB and
500 ms; pdfminer.six 65 ms, 21 MB and 2,500 ms. A PDF can be made to unpack without end, so its reader has limits of
memory and time, and its death is that file's failure (survey.files.pdf_child).

The latest texts are kept, since several questions may show the same one. A prompt is written where nothing may wait: a
text that is not kept is then a TextNeeded, and whoever writes the prompt reads it in a thread and writes again.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import FileUnusable, MissingExtra
from headrace.survey.files import pdf_child
from headrace.survey.files.checked_file import blocks_of
from headrace.survey.files.file_contents import path_with_content
from headrace.survey.files.file_types import FileKind
from headrace.survey.files.pdf_child import MOST_BYTES, PdfEnd

if TYPE_CHECKING:
    from headrace.survey.files.file_store import FileStore

MOST_TEXT_BYTES = 16_000_000
_MOST_KEPT_LETTERS = 8_000_000
_MOST_PDFS_AT_ONCE = 2
_PDF_WITHIN_S = 120.0
_LONGEST_REASON = 300
_readers = threading.BoundedSemaphore(_MOST_PDFS_AT_ONCE)
_REASONS = {
    PdfEnd.CHANGED: "its content changed since it was referred to",
    PdfEnd.TOO_LONG: f"its text is longer than {MOST_TEXT_BYTES // 1_000_000} MB",
    PdfEnd.TOO_MANY_PAGES: f"it has more than {pdf_child.MOST_PAGES:,} pages",
    PdfEnd.NO_TEXT: "its pages hold no text, as scanned ones do; send the file itself",
}


class TextNeeded(Exception):
    """A text was asked for where nothing may wait. `load` reads it, and may wait."""

    def __init__(self, file: FileStore) -> None:
        super().__init__(file.path)
        self._file = file

    def load(self) -> None:
        text_of(self._file)


class _NotWaiting(threading.local):
    """While it `is_on`, asking for a text that is not in memory raises TextNeeded instead of reading the file."""

    is_on = False

    @contextmanager
    def lifted(self) -> Generator[None]:
        """Around a user's own function: it knows nothing of TextNeeded, and is not called twice."""
        was_on, self.is_on = self.is_on, False
        try:
            yield
        finally:
            self.is_on = was_on


NOT_WAITING = _NotWaiting()


class _KeptTexts:
    """The latest texts by digest, of so many letters in all; the latest of them whatever its length."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._letters = 0

    def get(self, digest: str) -> str | None:
        with self._lock:
            if digest in self._texts:
                self._texts.move_to_end(digest)
            return self._texts.get(digest)

    def put(self, digest: str, text: str) -> None:
        with self._lock:
            if digest in self._texts:
                return
            self._texts[digest] = text
            self._letters += len(text)
            while self._letters > _MOST_KEPT_LETTERS and len(self._texts) > 1:
                self._letters -= len(self._texts.popitem(last=False)[1])


_kept = _KeptTexts()


def text_of(file: FileStore) -> str:
    """A file's text; FileUnusable where it has none, or is not the file that was digested."""
    found = _kept.get(file.digest)
    if found is None:
        if NOT_WAITING.is_on:
            raise TextNeeded(file)
        found = _read(file)
        _kept.put(file.digest, found)
    return found


def _read(file: FileStore) -> str:
    match file.kind:
        case FileKind.TEXT:
            return _decoded(file)
        case FileKind.PDF:
            return _of_pdf(file)
        case _:
            raise FileUnusable(file.path, f"no text is read from a {file.kind.value} ({file.mime_type})", as_text=True)


def _decoded(file: FileStore) -> str:
    if file.size > MOST_TEXT_BYTES:
        raise FileUnusable(file.path, f"it is larger than {MOST_TEXT_BYTES // 1_000_000} MB", as_text=True)
    content = b"".join(blocks_of(file))
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileUnusable(file.path, f"line {line} is not UTF-8; save it as UTF-8", as_text=True) from None


def _of_pdf(file: FileStore) -> str:
    if file.size > MOST_BYTES:
        raise FileUnusable(file.path, f"it is larger than {MOST_BYTES // 1_000_000} MB", as_text=True)
    with _readers, path_with_content(file) as path:
        command = [sys.executable, "-P", str(Path(pdf_child.__file__)), path, file.digest, str(MOST_TEXT_BYTES)]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PDF_WITHIN_S)  # noqa: PLW1510
        except subprocess.TimeoutExpired:
            raise FileUnusable(file.path, f"reading it takes longer than {_PDF_WITHIN_S:.0f} s", as_text=True) from None
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    raise _problem(file, done.returncode, done.stderr)


def _problem(file: FileStore, code: int, said: bytes) -> Exception:
    if code == PdfEnd.NOT_INSTALLED:
        return MissingExtra("pypdfium2")
    known = _REASONS.get(PdfEnd(code)) if code in set(PdfEnd) else None
    if known is None and code < 0:
        known = "reading it takes more memory or time than a document does"
    last = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:_LONGEST_REASON]
    return FileUnusable(file.path, known or f"it cannot be read as a PDF ({last})", as_text=True)
