"""Queries as typed at the command line: `--select`, `--where`, `--group-by` and so on, made into rows of run files.

Does not cover: printing them (cli.output), or writing them into files (cli.export_formats).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from headrace.errors import OptionError
from headrace.limits import Keep
from headrace.results.results import Results
from headrace.results.tables.table import Table
from headrace.results.tabular import Tabular

EVERYTHING = "*"
Rows = TypeVar("Rows", Results, Table)
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The options of `headrace results` and `headrace export` that say which rows and columns."""

    select: str = EVERYTHING
    where: str | None = None
    group_by: str | None = None
    agg: tuple[str, ...] = ()
    sort: str | None = None
    limit: int | None = None
    sql: str | None = None
    totals: bool = False
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        others = self.select != EVERYTHING or self.sort or self.limit or self.is_grouped
        if self.totals and not self._is_of_everything:
            raise OptionError(
                "--totals are those that the run has kept, of all interviews.",
                fix="Leave --select, --where, --group-by, --agg and --sql out; --sort and --limit may stay.",
            )
        if self.sql is not None and others:
            raise OptionError(
                "--sql says itself which columns, in which order and how many.",
                fix="Drop --select, --group-by, --agg, --sort and --limit, and write SQL for them. --where may stay.",
            )
        if self.is_grouped and self.select != EVERYTHING:
            raise OptionError("--group-by and --agg say which columns there are.", fix="Leave --select out, or these.")

    @property
    def is_of_interviews(self) -> bool:
        """Whether each row is an interview."""
        return self.sql is None and not self.is_grouped and not self.totals

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked but to see what there is."""
        return self._is_of_everything and not (self.totals or self.sort or self.limit)

    @property
    def _is_of_everything(self) -> bool:
        return self.select == EVERYTHING and not (self.where or self.is_grouped or self.sql is not None)

    @property
    def is_grouped(self) -> bool:
        """Whether a row is a group; all interviews are one where --agg stands alone."""
        return bool(self.group_by or self.agg)

    def of(self, results: Results) -> Tabular:
        """The rows that the query asks for; nothing is read yet. All that a file without rows has are its totals."""
        if self.totals or (self._is_of_everything and results.kept == Keep.NOTHING.value):
            return self._in_order(results.aggregate())
        chosen = results.filter(self.where) if self.where else results
        if self.sql is not None:
            return chosen.sql(self.sql)
        if self.is_grouped:
            return self._in_order(self._grouped(chosen))
        ordered = self._in_order(chosen)
        return ordered if self.select == EVERYTHING else ordered.select(*names_in(self.select))

    def _grouped(self, chosen: Results) -> Table:
        groups = chosen.group_by(*names_in(self.group_by or ""))
        named = [_aggregation(text) for text in self.agg or ("count=count()",)]
        return groups.agg(
            *(written for name, written in named if name is None),
            **{name: written for name, written in named if name is not None},
        )

    def _in_order(self, rows: Rows) -> Rows:
        """The rows sorted and cut; a minus before a column sorts from the largest."""
        if keys := names_in(self.sort or ""):
            names, down = [key.removeprefix("-") for key in keys], [key.startswith("-") for key in keys]
            rows = rows.sort_by(*names, reverse=down)
        return rows.head(self.limit) if self.limit else rows


def _aggregation(text: str) -> tuple[str | None, str]:
    """`mean=mean(answer.rating)` as name and expression; an expression alone names its column itself."""
    found = _NAMED.fullmatch(text)
    return (found[1], found[2]) if found else (None, text)


@contextmanager
def opened(paths: Sequence[Path], timeout_s: float | None = None) -> Generator[Results]:
    """The results of several run files as one."""
    results = functools.reduce(operator.add, (Results.open(path, timeout_s=timeout_s) for path in paths))
    try:
        yield results
    finally:
        results.close()


def names_in(text: str) -> list[str]:
    """The names in a list with commas between."""
    return [name for part in text.split(",") if (name := part.strip())]
