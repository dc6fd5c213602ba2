"""Reads rows from a file with one JSON object a line. Does not cover: what a row means (plan.rows)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import msgspec

from headrace.errors import ListError
from headrace.plan.census import FieldCensus
from headrace.plan.sources.given_paths import way_of_edsl
from headrace.plan.sources.hashed_file import HashedFile, marked_digest
from headrace.plan.sources.row_source import Renames, renamed_fields
from headrace.plan.sources.text_files import LONGEST_LINE, BlankLines, check_line
from headrace.survey.values import Fields, Remark, UnusableValue, encode_fields

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonlSource:
    """A file with one JSON object a line."""

    def __init__(self, path: Path, rename: Renames) -> None:
        self.path = path
        self._renames = rename
        self._renamed: dict[str, str] = {} if callable(rename) else rename  # by any row so far
        self.length = 0
        self.census = FieldCensus()
        with HashedFile(path) as file:
            for fields in self._objects(file):
                self.census.add_encoded(fields, *self._encoded(fields))
                self.length += 1
            self.digest = marked_digest(file.digest(), self._marks())

    @property
    def field_names(self) -> Collection[str]:
        return self.census.kinds.keys()

    def rows(self, first: int = 0) -> Iterator[bytes]:
        with HashedFile(self.path) as file:
            for fields in islice(self._objects(file), first, None):
                yield self._encoded(fields)[0]
            file.check_unchanged(self.digest, self._marks())

    def _marks(self) -> list[tuple[str, str]]:
        return sorted(self._renamed.items())

    def _encoded(self, fields: Fields) -> tuple[bytes, Remark]:
        try:
            return encode_fields(fields)
        except UnusableValue as error:
            raise ListError(f"{self.path}, row {self.length}: {error.message}", fix=error.fix) from None

    def _objects(self, file: HashedFile) -> Iterator[Fields]:
        blanks = BlankLines()
        for number, line in enumerate(iter(partial(file.binary.readline, LONGEST_LINE + 1), b""), 1):
            check_line(self.path, number, len(line))
            if not line.strip():
                blanks.check(self.path, len(line))
                continue
            blanks.end()
            where = f"{self.path}, line {number}"
            try:
                fields = msgspec.json.decode(line.removeprefix(_BYTE_ORDER_MARK))
            except RecursionError:
                raise ListError(f"{where}: it is nested too deeply.", fix="Flatten it.") from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ListError(f"{where}: {error}.", fix="Write one JSON object a line.") from None
            if not isinstance(fields, dict):
                raise ListError(f"{where}: not a JSON object.", fix="Write one JSON object a line.")
            held = cast(Fields, fields)
            if held.get("__header__") is True and "edsl_class_name" in held:
                raise ListError(f"{where}: it is a header of EDSL's.", fix=way_of_edsl(self.path))
            renames = self._renames(held) if callable(self._renames) else self._renames
            self._renamed |= renames
            yield renamed_fields(held, renames, where)
