"""Reads rows from a file with one JSON list of objects, one object at a time. Does not cover: lists that `save` wrote
(plan.study_files), or a JSON object a line (plan.sources.jsonl_file).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from headrace.errors import ListError
from headrace.plan.sources.given_paths import way_of_edsl
from headrace.plan.sources.hashed_file import HashedFile
from headrace.plan.sources.text_files import LONGEST_LINE
from headrace.survey.values import Fields

_BLOCK_BYTES = 1 << 16
_SPACES = re.compile(r"[ \t\r\n]*+")
_DECODER = json.JSONDecoder()
_FORM = 'Write a list of objects, [{"a": 1}, {"a": 2}], or one object a line into a .jsonl file.'


def json_objects(path: Path) -> Iterator[Fields]:
    """The objects of the list, in their order."""
    with HashedFile(path) as file:
        text = _Text(file, path)
        if not text.skip("["):
            saved = f" What save() wrote is read with load(). {way_of_edsl(path)}" if text.next_sign() == "{" else ""
            raise ListError(f"{path} holds no JSON list.", fix=_FORM + saved)
        number = 0
        while not text.skip("]"):
            if number and not text.skip(","):
                raise text.broken(number, "there is no comma before it")
            yield text.item(number)
            number += 1
        if text.next_sign():
            raise ListError(f"{path} goes on behind its JSON list, with {text.next_sign()!r}.", fix=_FORM)


def begins_with_object(path: Path) -> bool:
    """Whether a file holds one JSON object, as what `save` wrote does."""
    with HashedFile(path) as file:
        return _Text(file, path).next_sign() == "{"


class _Text:
    """The text of a file as far as it was read; what lies before `_at` is used."""

    def __init__(self, file: HashedFile, path: Path) -> None:
        self._file, self._path = file, path
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._held = ""
        self._at = 0
        self._is_over = False

    def skip(self, sign: str) -> bool:
        """Whether this sign comes next; it is passed then."""
        is_next = self.next_sign() == sign
        self._at += is_next
        return is_next

    def next_sign(self) -> str:
        """The next sign that is no space; empty at the end of the file."""
        passed = 0
        while True:
            start, self._at = self._at, _end_of_spaces(self._held, self._at)
            passed += self._at - start
            if self._at < len(self._held) or self._is_over:
                return self._held[self._at : self._at + 1]
            if passed > LONGEST_LINE:  # a small packed file may hold any number of them
                what = f"{self._path} has more than {LONGEST_LINE // 1_000_000} MB of spaces in one place."
                raise ListError(what, fix="Is it the right file?")
            self._read(_BLOCK_BYTES)

    def item(self, number: int) -> Fields:
        self.next_sign()
        while True:
            try:
                found, self._at = _DECODER.raw_decode(self._held, self._at)
            except RecursionError:
                raise self.broken(number, "it is nested too deeply") from None
            except ValueError as error:
                if self._is_over:
                    raise self.broken(number, str(error)) from None
                unused = len(self._held) - self._at
                if unused > LONGEST_LINE:
                    raise self.broken(number, f"it is longer than {LONGEST_LINE // 1_000_000} MB") from None
                self._read(max(_BLOCK_BYTES, unused))  # twice as much each time: it is parsed again
                continue
            if not isinstance(found, dict):
                raise self.broken(number, "it is no object")
            return cast("dict[str, Any]", found)

    def broken(self, number: int, what: str) -> ListError:
        return ListError(f"{self._path}, item {number} of the list: {what}.", fix=_FORM)

    def _read(self, most: int) -> None:
        block = self._file.binary.read(most)
        self._is_over = not block
        try:
            self._held = self._held[self._at :] + self._decode(block, final=self._is_over)
            self._at = 0
        except UnicodeDecodeError:
            raise ListError(f"{self._path} is not UTF-8.", fix="Save it as UTF-8, as JSON is.") from None


def _end_of_spaces(text: str, start: int) -> int:
    found = _SPACES.match(text, start)
    return found.end() if found else start
