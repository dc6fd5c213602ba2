"""Files that people write by hand: surveys, schemas, prompts. Covers: reading one whole, with a bound on its size.

Does not cover: rows of data, which are read as a stream (plan.sources).
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import IO, cast

from headrace.errors import SurveyError

LARGEST_BYTES = 8_000_000


def read_written(path: Path, *, fix: str = "Check the path.") -> str:
    """The text in a file, or SurveyError. No more than LARGEST_BYTES are read, unzipped if need be."""
    try:
        with _opened(path) as file:
            held = file.read(LARGEST_BYTES + 1)
        if len(held) > LARGEST_BYTES:
            raise SurveyError(
                f"{path} is larger than {LARGEST_BYTES // 1_000_000} MB.",
                fix="What is asked belongs here; rows of data go into a .csv or .jsonl file.",
            )
        return held.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is not UTF-8 text"
        reason = (
            "it is not a whole gzip file" if _is_zipped(path) and not isinstance(error, FileNotFoundError) else reason
        )
        raise SurveyError(f"{path} cannot be read: {reason}.", fix=fix) from None


def _is_zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _opened(path: Path) -> IO[bytes]:
    """The file, unzipped as it is read where it ends in .gz, as EDSL's do."""
    if not _is_zipped(path):
        return path.open("rb")
    import gzip

    return cast("IO[bytes]", gzip.open(path))
