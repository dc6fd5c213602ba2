"""Rows that a verb makes of other rows, when they are asked for. Covers: reading them as a stream, and keeping them.

A verb on a list reads nothing. Verbs upon verbs are one stream: `people.filter("age > 30").head(5)` reads as far as the
fifth. What needs all rows, such as their number or one of them by its position, takes one pass, which spools them
(plan.rows.spool): they are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from headrace.errors import ListError
from headrace.plan.census import FieldCensus
from headrace.plan.rows.spool import Spool
from headrace.plan.sources.row_source import FieldSource, RowSource
from headrace.survey.values import Fields, UnusableValue, decode_fields, encode_fields

_DEEPEST = 40  # generators one inside the other; Python's own bound is a thousand calls


class DerivedRows:
    """The rows that `make` yields, the same each time it is called. `field_names` where they are known without a pass;
    `depth` is how many verbs lie one upon the other.
    """

    def __init__(
        self, make: Callable[[], Iterable[Fields]], what: str, field_names: Collection[str] | None, depth: int
    ) -> None:
        self._make = make
        self._what = what
        self._field_names = field_names
        self.depth = depth
        self._spool: Spool | None = None

    @property
    def field_names(self) -> Collection[str]:
        if self._spool is None and self._field_names is not None:
            return self._field_names
        return self.spooled().field_names

    @property
    def length(self) -> int:
        return self.spooled().length

    @property
    def digest(self) -> str:
        return self.spooled().digest

    @property
    def census(self) -> FieldCensus:
        return self.spooled().census

    @property
    def is_spooled(self) -> bool:
        return self._spool is not None

    def rows(self, first: int = 0) -> Iterator[bytes]:
        return self._stream() if self._spool is None and first == 0 else self.spooled().rows(first)

    def fields(self, first: int = 0) -> Iterator[Fields]:
        """The rows as a verb takes them: without being encoded between one verb and the next."""
        is_made = self._spool is None and first == 0
        return iter(self._make()) if is_made else map(decode_fields, self.spooled().rows(first))

    def spooled(self) -> Spool:
        if self._spool is None:
            self._spool = Spool(self._make(), self._what)
        return self._spool

    def _stream(self) -> Iterator[bytes]:
        for position, fields in enumerate(self._make()):
            try:
                yield encode_fields(fields)[0]
            except UnusableValue as error:
                raise ListError(f"{self._what} {position}: {error.message}", fix=error.fix) from None


def fields_of(source: RowSource, first: int = 0) -> Iterator[Fields]:
    """The rows of a source as dicts, from this position on."""
    return source.fields(first) if isinstance(source, FieldSource) else map(decode_fields, source.rows(first))


def depth_of(source: RowSource) -> int:
    """How many verbs lie between a source and rows that are held."""
    return source.depth if isinstance(source, DerivedRows) and not source.is_spooled else 0


def shallow(source: RowSource) -> RowSource:
    """The source; what many verbs have made of another is spooled first."""
    return spooled(source) if depth_of(source) >= _DEEPEST else source


def spooled(source: RowSource) -> Spool:
    """The rows of a source where each can be had by its position."""
    match source:
        case Spool():
            return source
        case DerivedRows():
            return source.spooled()
        case _:
            return Spool.of_encoded(source.rows(), source.census.copy())
