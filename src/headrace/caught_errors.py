"""Errors that a user's function raised and that must not end the program. Covers: describing one as text, recognising
a lack of memory, and freeing what it keeps alive. Does not cover: the errors that Headrace itself raises (errors).
"""

from __future__ import annotations

import errno
import os
import traceback
from contextlib import suppress
from pathlib import Path

_LONGEST = 4000
_LINES_OF_CODE = 8
_OWN_CODE = Path(__file__).parent
_LIBRARY = Path(os.__file__).parent


def describe_error(error: BaseException, hint: str = "") -> str:
    """Class, text and hint in the first line, the last lines of code after it; both bounded, and valid UTF-8."""
    first_line, newline, more = ": ".join(filter(None, [type(error).__name__, _text_of(error)])).partition("\n")
    first = f"{first_line}{hint}{newline}{more}"
    code = "".join(traceback.format_exception(error, limit=-_LINES_OF_CODE)).strip()
    return f"{first[:_LONGEST]}\n\n{code[-_LONGEST:]}".encode("utf-8", "replace").decode()


def line_of(error: BaseException) -> str:
    """The last line of the user's own code, not of Headrace, that the error passed: "line 12 of tools.py"."""
    for frame, number in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = Path(frame.f_code.co_filename)
        is_users = not path.name.startswith("<frozen") and not path.is_relative_to(_LIBRARY)
        if is_users and not path.is_relative_to(_OWN_CODE):
            return f"line {number} of {path.name}"
    return ""


def is_out_of_memory(error: BaseException) -> bool:
    """mmap and fork report a lack of memory as an OSError."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def forget_frames(error: BaseException) -> None:
    """Free the frames of a traceback: they keep every local of the function alive."""
    with suppress(RuntimeError):  # a frame that is still running
        traceback.clear_frames(error.__traceback__)
    error.__traceback__ = error.__context__ = error.__cause__ = None


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:  # noqa: BLE001 - a user's own class may raise anything
        return f"(its text cannot be had: {type(another).__name__})"
