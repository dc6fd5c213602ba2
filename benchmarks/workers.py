"""Isolated workers: what one costs to start, to speak with and to watch, and how far it gets beyond its limit."""

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import Line, Table, megabytes

_MOST_START_MS = 5.0
_MOST_TRIP_US = 60.0
_MOST_TREE_KB = 80_000
_MOST_BYTES = (100 << 20) + (32 << 20)


def measure(bench: Bench) -> Table:
    f = run_child("isolated_workers").figures
    start, trip, tree = f["start_ms"], f["trip_us"], f["tree_kb"]
    return Table(
        "isolated workers",
        [
            _line("start of a worker", start, _MOST_START_MS, "ms", f["peer_start_ms"]),
            _line("round trip of a task", trip, _MOST_TRIP_US, "us", f["peer_trip_us"]),
            Line("idle tree with 2 workers, PSS", f"{tree / 1000:.1f} MB", "<= 80 MB", tree <= _MOST_TREE_KB),
            Line("a worker's own memory", f"{f['own_kb'] / 1000:.1f} MB"),
            Line("CPU of the warden alone", f"{f['alone_percent']:.1f} %"),
            Line("CPU of the warden with 2 idle workers", f"{f['watching_percent']:.1f} %"),
            *(_highest(what, f[name]) for what, name in (("numpy", "numpy_bytes"), ("8 children", "children_bytes"))),
        ],
        [
            "start: from asking to having it, median; peer: concurrent.futures with spawn, to the first result",
            "highest: limit 100 MiB, worst of 5 times, the tree sampled every millisecond or two",
        ],
    )


def _line(name: str, measured: float, most: float, unit: str, peer: float) -> Line:
    return Line(name, f"{measured:.1f} {unit}", f"<= {most:.0f} {unit}", measured <= most, f"{peer:.0f} {unit}")


def _highest(what: str, size_bytes: int) -> Line:
    return Line(f"highest of {what}", megabytes(size_bytes), f"<= {megabytes(_MOST_BYTES)}", size_bytes <= _MOST_BYTES)
