"""References to functions that are part of a plan: by name, and by a digest of their source.

Covers: a reference that tells whether two programs mean the same function. A reference found in a file is only ever
compared: nothing here imports or calls what a file names.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any


def function_reference(function: Callable[..., Any]) -> str:
    """`module:qualname@digest`, where the digest is of the function's source, or of its code where there is none.

    A partial counts by its function and arguments, a callable object by its class. What a closure has captured does
    not count: it may change while the program runs.
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{getattr(named, '__module__', None) or '?'}:{named.__qualname__}"
    return f"{name}@{hashlib.sha256(_content(function)).hexdigest()[:16]}"


def _content(function: Callable[..., Any]) -> bytes:
    if isinstance(function, functools.partial):
        inner: functools.partial[Any] = function  # pyright: ignore[reportUnknownVariableType]
        return f"{function_reference(inner.func)} {inner.args!r} {sorted(inner.keywords.items())!r}".encode()
    code: CodeType | None = getattr(function, "__code__", None)
    try:
        source = inspect.getsource(function if code or isinstance(function, type) else type(function))
    except (OSError, TypeError):
        return code_content(code or getattr(type(function).__call__, "__code__", None))
    # Two lambdas may stand in one line.
    is_lambda = code is not None and code.co_name == "<lambda>"
    return source.encode("utf-8", "replace") + (_constants(code) if is_lambda and code else b"")


def code_content(code: CodeType | None) -> bytes:
    """The bytes of a function's code without its place: the same in every process of one version of Python."""
    if code is None:
        return b""
    return code.co_code + _constants(code)


def _constants(code: CodeType) -> bytes:
    constants = (code_content(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts)
    return repr(code.co_names).encode() + b"".join(constants)


def _constant(value: object) -> bytes:
    """A constant as bytes. A set is sorted first: its order differs from process to process."""
    if isinstance(value, frozenset):
        members: frozenset[object] = value  # pyright: ignore[reportUnknownVariableType]
        value = sorted(map(repr, members))
    return repr(value).encode("utf-8", "replace")
