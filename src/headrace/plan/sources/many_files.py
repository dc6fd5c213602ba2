"""Several files as one source: the rows of one after those of another. Their columns may differ; a row has those of its
own file. Does not cover: reading a file (the sources of each format), or finding the files (plan.rows.opening).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from headrace.plan.census import FieldCensus
from headrace.plan.sources.csv_file import CsvSource
from headrace.plan.sources.row_source import RowSource


class ManyFiles:
    """The rows of these sources, in their order."""

    def __init__(self, sources: Sequence[RowSource]) -> None:
        self._sources = sources
        CsvSource.share_types([source for source in sources if isinstance(source, CsvSource)])

    @property
    def length(self) -> int:
        return sum(source.length for source in self._sources)

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def census(self) -> FieldCensus:
        return self._census

    @property
    def field_names(self) -> Collection[str]:
        return dict.fromkeys(name for source in self._sources for name in source.field_names)

    def rows(self, first: int = 0) -> Iterator[bytes]:
        for source in self._sources:
            length = source.length
            if first < length:
                yield from source.rows(first)
            first = max(0, first - length)

    @cached_property
    def _digest(self) -> str:
        joined = "\n".join(f"{source.length} {source.digest}" for source in self._sources)
        return hashlib.blake2b(joined.encode(), digest_size=16).hexdigest()

    @cached_property
    def _census(self) -> FieldCensus:
        made = FieldCensus()
        for source in self._sources:
            held = source.census
            for name, kinds in held.kinds.items():
                for kind in kinds:
                    made.see(name, kind)
            always = held.always or set[str]()
            made.always = always if made.always is None else made.always & always
            made.repaired += held.repaired
            made.has_files = made.has_files or held.has_files
        return made
