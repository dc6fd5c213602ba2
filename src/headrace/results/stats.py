"""Statistics of a run file, read from its counters, its runs and its memory history: the same cost for any size."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.memory.bounded_history import HistoryPoint
from headrace.store.contents import decoding
from headrace.store.history.stored_history import read_history
from headrace.store.run_file.details import EndpointStats, read_counters, read_endpoints, read_runs
from headrace.store.run_file.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """`reused` is how many interviews the latest run found finished. `cost` is in US dollars, None where a price is not
    known.

    `cached_tokens` are part of the input: the service itself had cached them. `reasoning_tokens` are part of the
    output. `cache_hits` are answers from the response cache, at no cost.

    `seconds` and `peak_memory`, in bytes, count a run that goes on, or was killed, until about its last commit.
    """

    interviews: int
    reused: int
    failed: int
    calls: int
    input_tokens: int
    output_tokens: int
    tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost: float | None
    cache_hits: int
    seconds: float
    peak_memory: int | None
    endpoints: tuple[EndpointStats, ...]


def read_stats(reader: Reader) -> Stats:
    with reader.snapshot() as connection:
        counted = read_counters(connection, reader.path)
        with decoding(reader.path, "what it says of its runs"):
            reused, seconds, peak_memory = read_runs(connection)
            endpoints = read_endpoints(connection)
    return Stats(
        interviews=counted["done"],
        reused=reused,
        failed=counted["failed"],
        calls=counted["calls"],
        input_tokens=counted["input_tokens"],
        output_tokens=counted["output_tokens"],
        tokens=counted["input_tokens"] + counted["output_tokens"],
        cached_tokens=counted["cached_tokens"],
        reasoning_tokens=counted["reasoning_tokens"],
        cost=None if counted["unpriced"] else float(counted["cost"]),
        cache_hits=counted["cache_hits"],
        seconds=seconds,
        peak_memory=peak_memory,
        endpoints=endpoints,
    )


def history_of(reader: Reader) -> list[HistoryPoint]:
    """The memory history of all runs of a file; there are at most some hundred points."""
    with reader.snapshot() as connection:
        return read_history(connection, reader.path)


def added_stats(stats: list[Stats]) -> Stats:
    """Those of several files together."""
    if len(stats) == 1:
        return stats[0]
    unknown = any(each.cost is None for each in stats)
    peaks = [each.peak_memory for each in stats if each.peak_memory is not None]
    summed = ("interviews", "reused", "failed", "calls", "input_tokens", "output_tokens", "tokens", "cached_tokens",
              "reasoning_tokens", "cache_hits", "seconds")  # fmt: skip
    return Stats(
        **{name: sum(getattr(each, name) for each in stats) for name in summed},
        cost=None if unknown else sum(each.cost or 0.0 for each in stats),
        peak_memory=max(peaks, default=None),
        endpoints=tuple(endpoint for each in stats for endpoint in each.endpoints),
    )
