"""How many interviews of each model are in a run file, and how many of them failed."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from headrace.store.contents import decoding, typed_rows
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.details import read_counters
from headrace.store.run_file.reader import Reader

_MOST_MODELS = 1_000


class ModelCount(NamedTuple):
    """`model` as `told_apart` has it. `done` are all that have ended, `failed` those of them that have failed."""

    model: str
    done: int
    failed: int


def count_by_model(reader: Reader, clock: QueryClock) -> list[ModelCount]:
    """The counts by model, at most a thousand; the rows are only read where there are several models. QueryTimeout
    where that takes too long.
    """
    with reader.snapshot(clock) as connection, decoding(reader.path, "its models"):
        names = dict(typed_rows(connection, tuple[int, str], f"SELECT position, name FROM models LIMIT {_MOST_MODELS}"))
        if len(names) == 1:
            counters = read_counters(connection, reader.path)
            return [ModelCount(names.popitem()[1], counters["done"], counters["failed"])]
        counted = typed_rows(
            connection,
            tuple[int, int, int],
            "SELECT model, count(*), sum(status <> 0) FROM interviews GROUP BY model ORDER BY model"
            f" LIMIT {_MOST_MODELS}",
        )
        shared = Counter(names.values())
        return [ModelCount(told_apart(names[at], at, shared), done, failed) for at, done, failed in counted]


def told_apart(name: str, place: int, shared: Counter[str]) -> str:
    """A model's name; models that differ in their parameters alone are told apart by their number. `shared` counts how
    many have a name.
    """
    return name if shared[name] < 2 else f"{name} (model {place + 1})"
