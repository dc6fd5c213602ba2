"""The places of files in a prompt. A template puts a mark where it names a file; `split` turns marks into places.

A mark holds digits that are drawn when the process starts, and a signature of its reference with a key that never
leaves it. A template can print a mark that was turned round or cut, and a service can read the digits there; what it
makes of them is signed by nobody, and refused.
Does not cover: rendering (survey.templates).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from typing import Any, NamedTuple, TypeAlias, cast

from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import FileKind

_DRAWN = str(secrets.randbelow(10**20)).zfill(20)
_KEY = secrets.token_bytes(32)
_SIGNATURE_BYTES = 16
_MARK = re.compile(f"\x02{_DRAWN}(.{{{2 * _SIGNATURE_BYTES}}})(.*?)\x03", re.DOTALL)


class PromptFile(NamedTuple):
    """A file in a prompt: its words stand from `start` to `end`."""

    start: int
    end: int
    file: FileStore


PromptFiles: TypeAlias = tuple[PromptFile, ...]
NO_FILES: PromptFiles = ()


class BrokenMark(Exception):
    """A file was named where its mark could not stay whole."""


def mark_of(value: Any) -> str | None:
    """What a template prints in place of a file, or of a list that holds files; None for any other value.

    A text file stands as its text: no service takes it in another form that all others take too.
    """
    if isinstance(value, FileStore):
        if value.kind is FileKind.TEXT:
            return value.text
        stored = json.dumps(value.to_stored())
        return f"\x02{_DRAWN}{_signature(stored)}{stored}\x03"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(each, FileStore) for each in items):
            return "\n".join(str(mark_of(each)) for each in items)
    return None


def has_marks(text: str) -> bool:
    return _DRAWN in text


def split(text: str) -> tuple[str, PromptFiles]:
    """The text with its files in words, and where each stands."""
    if _DRAWN not in text:
        return text, NO_FILES
    pieces: list[str] = []  # as many as a template names files
    places: list[PromptFile] = []
    at = length = 0
    for match in _MARK.finditer(text):
        file = _file(match[1], match[2])
        pieces += [text[at : match.start()], file.in_words]
        start = length + match.start() - at
        length = start + len(file.in_words)
        places.append(PromptFile(start, length, file))
        at = match.end()
    whole = "".join(pieces) + text[at:]
    if _DRAWN in whole:
        raise BrokenMark
    return whole, tuple(places)


def words_of(text: str) -> str:
    """The text with its files in words."""
    return split(text)[0]


def _signature(stored: str) -> str:
    return hashlib.blake2b(stored.encode(), digest_size=_SIGNATURE_BYTES, key=_KEY).hexdigest()


def _file(signature: str, stored: str) -> FileStore:
    if signature != _signature(stored):
        raise BrokenMark
    return FileStore.from_stored(json.loads(stored))
