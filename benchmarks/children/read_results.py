"""Reads a run file in one way and prints what that took: `read_results PATH WAY [TARGET]`.

CPU is that of the reading alone; what libraries take to load is not in it. Memory is that of the whole process.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.processes import loop_ms, peak_resident_bytes, print_figures
from headrace import Results

THREE, FOUR = ("answer.mood", "answer.rating", "answer.story"), ("answer.*", "agent.city")
_LOOKED_UP = 300


def opened(results: Results, _target: str) -> int:
    return len(results) and len(results[0].answer)


def filtered(results: Results, _target: str) -> int:
    chosen = results.filter("agent.city == 'Oslo'").select(*THREE)
    return sum(len(batch[0]) for batch in chosen._batches())


def grouped(results: Results, _target: str) -> int:
    return len(results.group_by("agent.city").agg(mean="mean(answer.rating)").to_dicts())


def iterated(results: Results, _target: str) -> int:
    return sum(1 for result in results if result.ordinal >= 0)


def iterated_with_prompts(results: Results, _target: str) -> int:
    return sum(len(result.prompts) for result in results) // 3


def looked_up(results: Results, _target: str) -> int:
    draw, stop = random.Random(3), len(results)
    return sum(results.at(draw.randrange(stop)).ordinal >= 0 for _ in range(_LOOKED_UP))


def to_pandas(results: Results, _target: str) -> int:
    frame = results.select(*THREE).to_pandas()
    return int(frame.memory_usage(deep=True).sum())


def to_arrow(results: Results, _target: str) -> int:
    return results.select(*THREE).to_arrow().nbytes


def to_parquet(results: Results, target: str) -> int:
    return results.select(*FOUR).to_parquet(target).stat().st_size


def to_csv(results: Results, target: str) -> int:
    return results.select(*FOUR).to_csv(target).stat().st_size


def to_jsonl(results: Results, target: str) -> int:
    return results.select(*FOUR).to_jsonl(target).stat().st_size


def to_parts(results: Results, target: str) -> int:
    """The Parquet parts, made the first time."""
    return results.duckdb(target).execute("select count(*) from results").fetchall()[0][0]


def grouped_in_parts(results: Results, target: str) -> int:
    query = "select city, avg(rating) from results group by 1"
    return len(results.duckdb(target).execute(query).fetchall())


WAYS: dict[str, Callable[[Results, str], int]] = {
    way.__name__: way
    for way in (
        opened, filtered, grouped, iterated, iterated_with_prompts, looked_up, to_pandas, to_arrow, to_parquet, to_csv,
        to_jsonl, to_parts, grouped_in_parts,
    )
}  # fmt: skip
_LIBRARIES = {
    "to_pandas": ("pandas",),
    "to_arrow": ("pyarrow",),
    "to_parquet": ("pyarrow.parquet",),
    "to_parts": ("pyarrow.parquet", "duckdb"),
    "grouped_in_parts": ("pyarrow.parquet", "duckdb"),
}


def main(path: str, way: str, target: str = "") -> None:
    for library in _LIBRARIES.get(way, ()):
        __import__(library)
    began_bytes = peak_resident_bytes()
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    with Results.open(Path(path)) as results:
        found = WAYS[way](results, target)
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    print_figures(
        found=found,
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_bytes=peak_resident_bytes(),
        began_bytes=began_bytes,
        loop_ms=loop_ms(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
