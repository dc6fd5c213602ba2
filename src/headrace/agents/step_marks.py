"""A step's mark: digests of its function and its arguments, journaled with it, by which a replay notices a change.

    2 bytes   Python's version: code is compared only within one
    4 bytes   how many checkpoints the run had made before the step
    6 bytes   the function's module and name
    6 bytes   its code and defaults; comments and line numbers do not count. Of a program: its directory and all of its
              environment; earlier versions have zeros here
    6 bytes   the arguments
    6 bytes   text and numbers that the function has captured. Of a program: its directory and the variables that this
              process has not with the same value. Marks of earlier versions end before this, or have zeros here

A part of zeros is unknown and equals everything. An argument that is not plain data counts by its type alone. Captured
lists, dicts and objects do not count: steps change them, and a step that is replayed does not. A program's directory
counts as it was given. Its environment has changed where both of its digests have. Programs are often given a copy of
`os.environ`, which is another one wherever the agent's process was started: then the second is the same. Where one is
written out, what it has in common with this process is chance: then the first is the same.
Does not cover: what is done about a difference (agents.replay).
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from types import CellType
from typing import Any, NamedTuple, cast

import msgspec

from headrace.encoding import encode_with
from headrace.survey.function_reference import code_content

_PART_BYTES = 6
_UNKNOWN = bytes(_PART_BYTES)
_LAYOUT = struct.Struct(f">HI{_PART_BYTES}s{_PART_BYTES}s{_PART_BYTES}s{_PART_BYTES}s")
_PYTHON = sys.version_info.major << 8 | sys.version_info.minor
_LARGE_BYTES = 1 << 20  # from here on hashed as it is: a copy would count towards the worker's limit
_HASHED_BYTES = 64 << 20
_MOST_FUNCTIONS = 1000
_MAIN = ("__main__", "__mp_main__")  # a worker imports a script under the second name


class StepMark(NamedTuple):
    python: int
    section: int
    name: bytes
    code: bytes
    arguments: bytes
    captured: bytes

    @classmethod
    def read(cls, packed: bytes) -> StepMark | None:
        """None where the journal has none, or one of another version of this layout."""
        if len(packed) == _LAYOUT.size - _PART_BYTES:
            packed += _UNKNOWN
        return cls(*_LAYOUT.unpack(packed)) if len(packed) == _LAYOUT.size else None

    def differs_in(self, kept: StepMark) -> list[str]:
        """What `kept` was journaled with instead, in words; nothing where it is the same."""
        parts: list[str] = []
        if not _equal(self.name, kept.name):
            parts.append("another function")
        elif not self._is_program and self.python == kept.python and not _equal(self.code, kept.code):
            parts.append("other code of its function")
        if not _equal(self.arguments, kept.arguments):
            parts.append("other arguments")
        if parts or _equal(self.captured, kept.captured):
            return parts  # other code may have captured others: said only of the same code
        if not self._is_program:
            return ["other captured values"]
        return [] if _equal(self.code, kept.code) else ["another directory or environment"]

    def is_same_effect(self, kept: StepMark) -> bool:
        """Whether two names stand for one effect: same arguments, and a function that has at most been renamed."""
        is_function = self.name == kept.name or (self.python == kept.python and self.code == kept.code)
        is_around = _equal(self.captured, kept.captured) or (self._is_program and _UNKNOWN != self.code == kept.code)
        is_with = _UNKNOWN != self.arguments == kept.arguments and is_around
        return is_function and is_with and self.section == kept.section

    @property
    def _is_program(self) -> bool:
        return self.name == _PROGRAM


def mark_of(section: int, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
    """The mark of `ctx.step`."""
    name, code = _marks_of_function(function)
    return _LAYOUT.pack(_PYTHON, section, name, code, _marks_of_arguments(args, keywords), _mark_of_captured(function))


def mark_of_encoded(section: int, what: str, arguments: bytes) -> bytes:
    """The mark of a call whose arguments are encoded already: to a model, a child."""
    return _LAYOUT.pack(_PYTHON, section, _digest(what.encode()), _UNKNOWN, _digest(arguments), _UNKNOWN)


def mark_of_program(
    section: int, arguments: bytes, directory: str | Path, environment: Mapping[str, str] | None
) -> bytes:
    """The mark of `ctx.command`."""
    given = None if environment is None else {*environment.items()}
    all_of_it = _mark_of_surroundings(directory, given)
    own = all_of_it if given is None else _mark_of_surroundings(directory, given - {*os.environ.items()})
    return _LAYOUT.pack(_PYTHON, section, _PROGRAM, all_of_it, _digest(arguments), own)


def _mark_of_surroundings(directory: str | Path, variables: set[tuple[str, str]] | None) -> bytes:
    return _marks_of_arguments((str(Path(directory)), None if variables is None else sorted(variables)), {})


def _equal(one: bytes, other: bytes) -> bool:
    return one == other or _UNKNOWN in (one, other)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_PART_BYTES).digest()


_PROGRAM = _digest(b"command")  # the name in every mark of `ctx.command`


# Of functions.

_known: dict[int, tuple[object, bytes, bytes]] = {}  # by id of the code, which is kept so that its id stays its own


def _marks_of_function(function: Callable[..., Any]) -> tuple[bytes, bytes]:
    code = getattr(function, "__code__", None)
    if code is None or getattr(function, "__wrapped__", None) is not None or _has_defaults(function):
        return _made_marks(function)  # `lambda x=i: ...` in a loop is one code with other defaults each time
    found = _known.get(id(code))
    if found is None:
        if len(_known) >= _MOST_FUNCTIONS:
            _known.clear()
        found = _known[id(code)] = (code, *_made_marks(function))
    return found[1], found[2]


def _has_defaults(function: Any) -> bool:
    return function.__defaults__ is not None or function.__kwdefaults__ is not None


def _made_marks(function: Callable[..., Any]) -> tuple[bytes, bytes]:
    inner = function
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    named = inner if hasattr(inner, "__qualname__") else type(inner)
    module = getattr(named, "__module__", None) or "?"
    name = f"{'__main__' if module in _MAIN else module}:{named.__qualname__}"
    return _digest(name.encode("utf-8", "replace")), _digest(_content(function))


def _content(function: Any) -> bytes:
    if isinstance(function, functools.partial):
        bound = cast("functools.partial[Any]", function)
        return _content(bound.func) + _marks_of_arguments(bound.args, bound.keywords)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    given = getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)
    wrapped = getattr(function, "__wrapped__", None)
    return code_content(code) + _marks_of_arguments(given, {}) + (b"" if wrapped is None else _content(wrapped))


def _mark_of_captured(function: Any) -> bytes:
    if isinstance(function, functools.partial):
        return _mark_of_captured(cast("functools.partial[Any]", function).func)
    cells = getattr(function, "__closure__", None)
    if not cells:
        return _UNKNOWN
    return _marks_of_arguments(tuple(_captured(cell) for cell in cells), {})


def _captured(cell: CellType) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:  # nothing is in it yet
        return None
    return value if isinstance(value, (str, bytes, int, float)) else None


# Of arguments.


def _marks_of_arguments(args: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
    try:
        given = [_bounded(each) for each in args], {name: _bounded(each) for name, each in keywords.items()}
        try:
            return _digest(_encode(given))
        except (TypeError, ValueError, OverflowError):
            return _digest(_encode(_plain(given)))
    except (TypeError, ValueError, OverflowError, RecursionError, MemoryError):
        return _UNKNOWN


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LARGE_BYTES:
        pieces = hashlib.blake2b(digest_size=16)
        for first in range(0, len(value), _LARGE_BYTES):
            pieces.update(value[first : first + _LARGE_BYTES].encode("utf-8", "surrogatepass"))
        return pieces.digest()
    if isinstance(value, (bytes, bytearray)) and len(value) > _LARGE_BYTES:
        return hashlib.blake2b(value, digest_size=16).digest()
    return value


def _by_type(value: Any) -> Any:
    """What is not plain data: a path by its text, an array by what it holds, the rest by its type."""
    if isinstance(value, PurePath):
        return str(value)
    kind = type(value).__qualname__
    try:
        view = memoryview(value)
    except TypeError:
        return kind
    is_hashed = view.contiguous and view.nbytes <= _HASHED_BYTES
    return [kind, view.nbytes, hashlib.blake2b(view.cast("B"), digest_size=16).digest() if is_hashed else None]


def _plain(value: Any) -> Any:
    """What the encoder takes, for keys that are not text, integers beyond 64 bits, and text that is not Unicode."""
    match value:
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return [[repr(key), _plain(each)] for key, each in sorted(items, key=lambda item: repr(item[0]))]
        case list() | tuple():
            return [_plain(each) for each in cast("list[Any]", value)]
        case set() | frozenset():
            return sorted(repr(each) for each in cast("set[Any]", value))
        case str():
            return value.encode("utf-8", "surrogatepass")
        case int():
            return str(value)
        case _:
            return value


_encode = encode_with(msgspec.msgpack.Encoder(order="deterministic", enc_hook=_by_type))
