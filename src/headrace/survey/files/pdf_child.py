"""Reads the text of one PDF, as a program of its own: `python pdf_child.py path digest most_bytes`.

It prints the text and exits with 0, or with a PdfEnd. Memory and CPU time are limited by the operating system: what a
document unpacks to is not known before. It imports nothing of Headrace, so that it starts quickly.
"""

import hashlib
import os
import sys
from enum import IntEnum

MOST_PAGES = 5_000
MOST_BYTES = 100_000_000
_MEMORY_BYTES = 250_000_000  # beside the document itself
_CPU_S = 60


class PdfEnd(IntEnum):
    NOT_INSTALLED = 71
    CHANGED = 72
    TOO_LONG = 73
    TOO_MANY_PAGES = 74
    NO_TEXT = 75


def main(path: str, digest: str, most_bytes: int) -> int:
    size = os.stat(path).st_size  # noqa: PTH116
    _limit(_MEMORY_BYTES + min(size, MOST_BYTES))
    try:
        import pypdfium2  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]
    except ImportError:
        return PdfEnd.NOT_INSTALLED
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read(MOST_BYTES + 1)
    if hashlib.blake2b(content, digest_size=16).hexdigest() != digest:
        return PdfEnd.CHANGED
    document = pypdfium2.PdfDocument(content)
    if len(document) > MOST_PAGES:
        return PdfEnd.TOO_MANY_PAGES
    left, has_text = most_bytes, False
    for number in range(len(document)):
        page = document[number]
        words = page.get_textpage()
        text = words.get_text_range().replace("\r\n", "\n").encode("utf-8", "replace") + b"\n"
        words.close()
        page.close()
        left -= len(text)
        if left < 0:
            return PdfEnd.TOO_LONG
        has_text = has_text or bool(text.strip())
        sys.stdout.buffer.write(text)
    sys.stdout.flush()
    return 0 if has_text else PdfEnd.NO_TEXT


def _limit(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
