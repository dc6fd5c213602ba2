"""What a run file took to make. Read from its counters and its runs alone, so it costs the same for any size."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.estimate import known_cost
from headrace.store.book import RunBook
from headrace.store.outcomes import read_counters, read_runs
from headrace.store.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """`reused` is what the latest run found done. `cost` is in US dollars, None where no price is known.

    `seconds` leaves out a run that has not ended, or never noted its end; `peak_memory` is in bytes.
    """

    interviews: int
    reused: int
    failed: int
    calls: int
    input_tokens: int
    output_tokens: int
    tokens: int
    cost: float | None
    seconds: float
    peak_memory: int | None


def read_stats(reader: Reader, book: RunBook) -> Stats:
    with reader.snapshot() as connection:
        counted = read_counters(connection)
        reused, seconds, peak_memory = read_runs(connection)
    return Stats(
        interviews=counted["done"],
        reused=reused,
        failed=counted["failed"],
        calls=counted["calls"],
        input_tokens=counted["input_tokens"],
        output_tokens=counted["output_tokens"],
        tokens=counted["input_tokens"] + counted["output_tokens"],
        cost=known_cost(book.models),
        seconds=seconds,
        peak_memory=peak_memory,
    )
