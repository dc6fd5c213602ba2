"""Queries as typed at the command line: `--select`, `--where`, `--sort` and so on, made into rows of run files.

Does not cover: printing them (cli.output), or writing them into files (cli.export_formats).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import OptionError
from headrace.results.results import Results
from headrace.results.tabular import Tabular

EVERYTHING = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The options of `headrace results` and `headrace export` that say which rows and columns."""

    select: str = EVERYTHING
    where: str | None = None
    sort: str | None = None
    limit: int | None = None
    sql: str | None = None
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        if self.sql is not None and (self.select != EVERYTHING or self.sort or self.limit):
            raise OptionError(
                "--sql says itself which columns, in which order and how many.",
                fix="Leave --select, --sort and --limit out, and write them in the SQL. --where may stay.",
            )

    def of(self, results: Results) -> Tabular:
        """The rows that the query asks for; nothing is read yet."""
        chosen = results.filter(self.where) if self.where else results
        if self.sql is not None:
            return chosen.sql(self.sql)
        for column in reversed(
            names_in(self.sort or "")
        ):  # a later sort keeps the order of the one before among equals
            chosen = chosen.sort_by(column.removeprefix("-"), reverse=column.startswith("-"))
        chosen = chosen if self.select == EVERYTHING else chosen.select(*names_in(self.select))
        return chosen.head(self.limit) if self.limit else chosen


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
