"""A RowBatch carries rows from the executor that made them to the journal, flat, as the journal's statements take them.

Covers: the shape, making a batch from rows, and iterating over its rows again for listeners. Does not cover: one row
(rows), or writing a batch (run_journal).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from headrace.store.run_file.checksums import interview_checksum
from headrace.store.run_file.rows import Row, Status
from headrace.survey.record import Usage

# Of a row's values, before its answers, what is beyond their columns, and the checksum.
HEAD = ("ordinal", "iteration", "agent", "scenario", "model", "status")
_STATUS = HEAD.index("status")
_SIZES_LOOKED_AT = 8


class BatchRow(NamedTuple):
    """One row read out of a batch; `rows.Row` explains the fields."""

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    status: Status
    answers: list[Any]
    more: str | None
    detail: bytes


class RowBatch(msgspec.Struct, array_like=True):
    """Finished rows of one chunk.

    `values` are those of all rows one after the other, as the table `interviews` has them; `details` has one entry a
    row. `failures` are (ordinal, question, cause, message), `usage` is the sum over all rows, `largest_bytes` estimates
    the memory that the largest row holds.
    """

    values: list[Any]  # of SqlValue: msgspec decodes no union of text and bytes
    details: list[bytes]
    failures: list[tuple[int, int, str, str]]
    usage: Usage
    largest_bytes: int

    def __len__(self) -> int:
        return len(self.details)

    @property
    def width(self) -> int:
        return len(self.values) // len(self.details)

    @property
    def ordinals(self) -> list[int]:
        return self.values[:: self.width]

    @property
    def failed(self) -> int:
        return sum(self.values[_STATUS :: self.width])

    def __iter__(self) -> Iterator[BatchRow]:
        width, values = self.width, self.values
        for place, detail in enumerate(self.details):
            ordinal, iteration, agent, scenario, model, status, *answers, more, _ = values[
                place * width : (place + 1) * width
            ]
            yield BatchRow(ordinal, iteration, agent, scenario, model, Status(status), answers, more, detail)


def row_batch(rows: list[Row]) -> RowBatch:
    """Make a batch of at least one row."""
    return RowBatch(
        list(chain.from_iterable([_values(row) for row in rows])),
        [row.detail for row in rows],
        [(row.ordinal, f.question, f.cause.value, f.message) for row in rows for f in row.failures],
        _total([row.usage for row in rows]),
        max([row.held_bytes() for row in rows[:_SIZES_LOOKED_AT]]),
    )


def _values(row: Row) -> tuple[Any, ...]:
    head = (row.ordinal, row.iteration, row.agent, row.scenario, row.model, int(row.status))
    values = (*head, *row.answers, row.more)
    return (*values, interview_checksum(values, row.detail))


def _total(usages: list[Usage]) -> Usage:
    return Usage(*map(sum, zip(*map(msgspec.structs.astuple, usages), strict=True)))
