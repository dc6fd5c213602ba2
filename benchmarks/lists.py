"""Lists from files of many rows: reading them, and running one question about each row, with the test model.

The memory is that of the whole process, through the whole run. The peers read the file whole, and run nothing.
"""

from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, loops, megabytes

_MOST_US = 8
_MOST_FIRST_S = 2
_MOST_BYTES = {".csv": 100e6, ".parquet": 200e6}
_COLUMNS = 10
_NARROW = 5


def measure(bench: Bench) -> Table:
    size, directory = bench.sizes.listed, bench.directory / "lists"
    directory.mkdir()
    lines, loops_ms = [], list[float]()
    narrow = _written(directory / "narrow.csv", size, _NARROW)
    read = run_child("listed_run", narrow).figures
    loops_ms.append(read["loop_ms"])
    cpu_us = read["read_s"] / size * 1e6
    lines.append(
        Line(
            f"CSV of {size:,} rows x {_NARROW} columns, both passes, CPU",
            f"{cpu_us:.1f} us a row",
            f"<= {_MOST_US} us",
            cpu_us <= _MOST_US,
            _peers(narrow, size),
        )
    )
    narrow.unlink()
    for suffix in _MOST_BYTES:
        path = _written(directory / f"rows{suffix}", size, _COLUMNS)
        lines += _run(path, size, loops_ms)
        path.unlink()
    made = (
        "a list is made by a pass over a CSV file, or by Parquet's metadata; another reads its rows into the run file"
    )
    notes = [f"{made}, before the first question is asked", loops(loops_ms)]
    return Table(f"Lists of {size:,} rows x {_COLUMNS} columns, one question each", lines, notes)


def _run(path: Path, size: int, loops_ms: list[float]) -> list[Line]:
    most = _MOST_BYTES[path.suffix]
    run_file = path.with_suffix(".run")
    found = run_child("listed_run", path, run_file).figures
    run_file.unlink()
    loops_ms.append(found["loop_ms"])
    name = path.suffix[1:]
    stored_s = found["first_after_made_s"] - found["first_after_read_s"]
    first_s = found["first_after_read_s"]
    return [
        Line(f"{name}: peak memory of the run", megabytes(found["peak_bytes"]), f"<= {megabytes(most)}",
             found["peak_bytes"] <= most, _peers(path, size)),
        Line(f"{name}: rows read into the run file", f"{stored_s:.1f} s, {stored_s / size * 1e6:.1f} us a row"),
        Line(f"{name}: first result after the last row was read", f"{first_s:.2f} s", f"<= {_MOST_FIRST_S} s",
             first_s <= _MOST_FIRST_S),
        Line(f"{name}: the whole run", f"{found['took_s']:.0f} s, {found['took_s'] / size * 1e6:.0f} us a row"),
    ]  # fmt: skip


def _written(path: Path, rows: int, columns: int) -> Path:
    run_child("list_file", path, rows, columns)
    return path


def _peers(path: Path, size: int) -> str:
    shown = []
    for library in ("pandas", "polars"):
        found = run_child("list_peer", library, path).figures
        shown.append(f"{library} {found['read_s'] / size * 1e6:.1f} us, {megabytes(found['peak_bytes'])}")
    return "; ".join(shown)
