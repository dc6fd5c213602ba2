"""Functions that are part of a plan, by name and by what their source says.

Covers: a reference that tells whether two programs mean the same function. A reference found in a file is only ever
compared: nothing here imports or calls what a file names.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any


def function_reference(function: Callable[..., Any]) -> str:
    """`module:qualname@digest`, where the digest is of the function's source, or of its code where there is none."""
    module = getattr(function, "__module__", None) or "?"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}:{name}@{hashlib.sha256(_source(function)).hexdigest()[:16]}"


def _source(function: Callable[..., Any]) -> bytes:
    try:
        return inspect.getsource(function).encode("utf-8", "replace")
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return code.co_code + repr(code.co_names).encode() if code else type(function).__qualname__.encode()
