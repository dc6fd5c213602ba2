"""Plans of 10^9 interviews: memory for what is finished, what asking for it costs, opening a file with 10^8 rows."""

from benchmarks.bench import Bench
from benchmarks.processes import Ended, run_child
from benchmarks.report import Line, Table, loops, megabytes

_MOST_BYTES = 20_000_000
_MOST_OPEN_S = 1.0
_FLAT_BYTES = 10**9 // 8
_PATTERNS = {
    "in_order": "10^8 done in order",
    "every_second": "10^8 done, every second one",
    "at_random": "10^7 done, 1 % at random",
}


def measure(bench: Bench) -> Table:
    sets = {name: run_child("large_set", name) for name in _PATTERNS}
    lines = [line for name, ended in sets.items() for line in _of_set(_PATTERNS[name], ended)]
    path, rows = bench.directory / "long.run", bench.sizes.long_file
    made = run_child("long_file", "make", path, rows)
    opened = run_child("long_file", "open", path, rows)
    path.unlink()
    wall_s = opened.figures["wall_s"]
    target = f"<= {_MOST_OPEN_S:.0f} s"
    lines += [
        Line(f"open 10^9 with {rows:,} rows in order, wall", f"{wall_s:.2f} s", target, wall_s <= _MOST_OPEN_S),
        Line("the same, CPU", f"{opened.figures['cpu_s']:.2f} s"),
        Line("the same, memory that it took", megabytes(opened.figures["held_bytes"])),
        Line("of which what is finished and what has a row", megabytes(opened.figures["set_bytes"])),
        Line("the first time, without its blocks of rows", f"{made.figures['wall_s']:.2f} s"),
    ]
    return Table(
        "large_plans",
        lines,
        [
            "memory is what the process has grown by when its free heap is returned; the peer is a flat bitmap",
            "calls are for a million neighbours from a random place in the first 10^8, those of add in groups of 64",
            f"the long file, {megabytes(opened.figures['file_bytes'])}, had its rows by one INSERT, without details",
            "opening is RunFile.open in a fresh process, lists read and spooled before, the file in the page cache",
            loops([ended.figures["loop_ms"] for ended in (*sets.values(), made, opened)]),
        ],
    )


def _of_set(name: str, ended: Ended) -> list[Line]:
    figures = ended.figures
    grown = figures["resident_bytes"]
    shown = (
        f"{megabytes(grown)}, its objects {megabytes(figures['held_bytes'])}; made in {figures['make_s']:.1f} s of CPU"
    )
    times = ", ".join(f"{what} {figures[f'{what}_us']:.2f}" for what in ("contains", "next", "add"))
    return [
        Line(f"{name}: memory", shown, f"<= {megabytes(_MOST_BYTES)}", grown <= _MOST_BYTES, megabytes(_FLAT_BYTES)),
        Line(f"{name}: us of CPU a call", times),
    ]
