"""Reads rows from a file with one JSON list of objects, one object at a time. Does not cover: lists that `save` wrote
(plan.study_files), or a JSON object a line (plan.sources.jsonl_file).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from headrace.errors import ListError
from headrace.plan.sources.hashed_file import HashedFile
from headrace.plan.sources.text_files import LONGEST_LINE
from headrace.survey.values import Fields

_BLOCK_BYTES = 1 << 16
_SPACE = " \t\r\n"
_FORM = 'Write a list of objects, [{"a": 1}, {"a": 2}], or one object a line into a .jsonl file.'


def json_objects(path: Path) -> Iterator[Fields]:
    """The objects of the list, in their order."""
    with HashedFile(path) as file:
        text = _Text(file, path)
        if not text.skip("["):
            saved = " What save() wrote is read with load()." if text.follows("{") else ""
            raise ListError(f"{path} holds no JSON list.", fix=_FORM + saved)
        is_first, number = True, 0
        while not text.skip("]"):
            if not is_first and not text.skip(","):
                raise text.broken(number, "there is no comma before it")
            yield text.item(number)
            is_first, number = False, number + 1


class _Text:
    """The text of a file as far as it was read and not yet used."""

    def __init__(self, file: HashedFile, path: Path) -> None:
        self._file, self._path = file, path
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._held = ""
        self._is_over = False

    def skip(self, sign: str) -> bool:
        """Whether this sign comes next; it is passed then."""
        is_next = self.follows(sign)
        if is_next:
            self._held = self._held[1:]
        return is_next

    def follows(self, sign: str) -> bool:
        while not self._held.lstrip(_SPACE) and not self._is_over:
            self._read(_BLOCK_BYTES)
        self._held = self._held.lstrip(_SPACE)
        return self._held.startswith(sign)

    def item(self, number: int) -> Fields:
        self._held = self._held.lstrip(_SPACE)
        while True:
            try:
                found, end = json.JSONDecoder().raw_decode(self._held)
            except RecursionError:
                raise self.broken(number, "it is nested too deeply") from None
            except ValueError as error:
                if self._is_over:
                    raise self.broken(number, str(error)) from None
                if len(self._held) > LONGEST_LINE:
                    raise self.broken(number, f"it is longer than {LONGEST_LINE // 1_000_000} MB") from None
                self._read(max(_BLOCK_BYTES, len(self._held)))  # twice as much each time: it is parsed again
                continue
            if not isinstance(found, dict):
                raise self.broken(number, "it is no object")
            self._held = self._held[end:]
            return cast("dict[str, Any]", found)

    def broken(self, number: int, what: str) -> ListError:
        return ListError(f"{self._path}, item {number} of the list: {what}.", fix=_FORM)

    def _read(self, most: int) -> None:
        block = self._file.binary.read(most)
        self._is_over = not block
        try:
            self._held += self._decode(block, final=self._is_over)
        except UnicodeDecodeError:
            raise ListError(f"{self._path} is not UTF-8.", fix="Save it as UTF-8, as JSON is.") from None
