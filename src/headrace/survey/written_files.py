"""Files that people write by hand: surveys, schemas, prompts. Covers: reading one whole, with a bound on its size.

Does not cover: rows of data, which are read as a stream (plan.sources).
"""

from __future__ import annotations

from pathlib import Path

from headrace.errors import SurveyError

LARGEST_BYTES = 8_000_000


def read_written(path: Path, *, fix: str = "Check the path.") -> str:
    """The text in a file, or SurveyError. No more than LARGEST_BYTES are read, from a pipe or a device neither."""
    try:
        with path.open("rb") as file:
            held = file.read(LARGEST_BYTES + 1)
        if len(held) > LARGEST_BYTES:
            raise SurveyError(
                f"{path} is larger than {LARGEST_BYTES // 1_000_000} MB.",
                fix="What is asked belongs here; rows of data go into a .csv or .jsonl file.",
            )
        return held.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SurveyError(f"{path} cannot be read: {reason}.", fix=fix) from None
