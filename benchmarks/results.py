"""Results: reading a million of them back, beside pandas with all of it in RAM and DuckDB on Parquet.

The file is that of `million`: three questions, five traits, 5 KB of prompts and responses each, one in 50 failed.
"""

from pathlib import Path

from benchmarks import million
from benchmarks.bench import Bench
from benchmarks.processes import Ended, run_child, run_python
from benchmarks.report import Line, Table, loops, megabytes

_MB = 1e6
_OTHER_PER = 10  # of the disk figures: a tenth of the size says the same
_TRICKLE_PER = 500


class _Reads:
    """Runs the ways of reading, each in a process of its own. Targets are for a million results."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._is_full = size >= million.MILLION
        self.loops_ms: list[float] = []

    def read(self, way: str, target: str | Path = "") -> dict[str, float]:
        figures = run_child("read_results", self._path, way, target).figures
        self.loops_ms.append(figures["loop_ms"])
        return figures

    def cpu(self, name: str, figures: dict[str, float], most_s: float, peer: str = "") -> Line:
        cpu_s = figures["cpu_s"]
        return Line(name, f"{cpu_s:.2f} s", f"<= {most_s} s", self.judged(cpu_s <= most_s), peer)

    def judged(self, is_met: bool) -> bool | None:
        """Of fewer results the figures are mostly what any number of them takes: they prove no target."""
        return is_met if self._is_full else None

    def memory(self, name: str, figures: dict[str, float], most_bytes: float) -> Line:
        peak = figures["peak_bytes"]
        return Line(f"{name}, peak memory", megabytes(peak), f"<= {megabytes(most_bytes)}", peak <= most_bytes)


def measure(bench: Bench) -> Table:
    size = bench.sizes.large_run
    path = bench.directory / f"results-{size}.run"
    if not path.exists():
        _make(path, size)
    reads = _Reads(path, size)
    parquet, parts = bench.directory / "results.parquet", bench.directory / "results.parts"
    lines = [*_small(reads), *_exports(reads, bench.directory, parquet)]
    peers = {peer: run_child("read_peer", parquet, peer) for peer in ("pandas", "duckdb")}
    lines += [
        *_queries(reads, parts, peers),
        *_iteration(reads, size),
        *_beside(bench, size),
        *_disk(bench, path, size),
    ]
    return Table(
        f"results: {size:,} of three questions and five traits, 5 KB of prompts and responses each",
        lines,
        [
            f"made by benchmarks/million.py with seed {million.SEED}; targets are for a million",
            (
                "times are CPU of one process with the file in the page cache, libraries loaded before, unless wall is"
                " said; memory is of the whole process"
            ),
            "every row that leaves is compared with its checksum; the peers check nothing",
            (
                "pandas has the whole table in RAM before its clock starts, without prompts; DuckDB reads one Parquet"
                " file of the four columns"
            ),
            loops(reads.loops_ms),
        ],
    )


def _make(path: Path, size: int, text: str = million.COMPRESSIBLE) -> Ended:
    return run_python("-m", "benchmarks.million", path, "--size", size, "--text", text)


def _small(reads: _Reads) -> list[Line]:
    opened, looked_up = reads.read("opened"), reads.read("looked_up")
    first_ms, each_ms = opened["wall_s"] * 1000, looked_up["wall_s"] * 1000 / looked_up["found"]
    return [
        Line("open, count and first row, wall", f"{first_ms:.1f} ms", "<= 20 ms", first_ms <= 20),
        Line("one result by its ordinal, wall", f"{each_ms:.2f} ms", "<= 1 ms", each_ms <= 1),
    ]


def _exports(reads: _Reads, directory: Path, parquet: Path) -> list[Line]:
    frame, arrow = reads.read("to_pandas"), reads.read("to_arrow")
    table, csv = reads.read("to_parquet", parquet), reads.read("to_csv", directory / "results.csv")
    jsonl = reads.read("to_jsonl", directory / "results.jsonl")
    grown, most = frame["peak_bytes"] - frame["began_bytes"], 1.3 * frame["found"]
    return [
        reads.cpu("to_pandas, 3 columns", frame, 1.2),
        Line("the same, memory over the libraries'", megabytes(grown), f"<= 1.3 x {megabytes(frame['found'])}",
             reads.judged(grown <= most)),
        reads.cpu("to_arrow, 3 columns", arrow, 1.2),
        reads.cpu("to_parquet, 4 columns", table, 2.0),
        reads.memory("to_parquet", table, 300 * _MB),
        reads.cpu("to_csv, 4 columns", csv, 2.0),
        reads.memory("to_csv", csv, 150 * _MB),
        Line("to_jsonl, 4 columns", f"{jsonl['cpu_s']:.2f} s"),
        reads.memory("to_jsonl", jsonl, 150 * _MB),
    ]  # fmt: skip


def _queries(reads: _Reads, parts: Path, peers: dict[str, Ended]) -> list[Line]:
    filtered, grouped = reads.read("filtered"), reads.read("grouped")
    made, in_parts = reads.read("to_parts", parts), reads.read("grouped_in_parts", parts)
    return [
        reads.cpu("filter by a trait, 3 columns, streamed", filtered, 0.5, _peer(peers, "filter_s")),
        reads.memory("filter", filtered, 150 * _MB),
        reads.cpu("mean of a number by a trait, group_by", grouped, 0.8, _peer(peers, "group_s")),
        reads.memory("group_by", grouped, 150 * _MB),
        Line("Parquet parts made for duckdb()", f"{made['cpu_s']:.2f} s"),
        reads.memory("duckdb() with its parts made", made, 300 * _MB),
        reads.cpu("mean by a trait through the parts", in_parts, 0.15, _peer(peers, "group_s")),
    ]


def _peer(peers: dict[str, Ended], figure: str) -> str:
    times = ", ".join(f"{name} {ended.figures[figure]:.2f} s" for name, ended in peers.items())
    return f"{times}; pandas holds {megabytes(peers['pandas'].peak_bytes)}"


def _iteration(reads: _Reads, size: int) -> list[Line]:
    plain, with_prompts = reads.read("iterated"), reads.read("iterated_with_prompts")
    rate, prompt_rate = size / plain["cpu_s"], size / with_prompts["cpu_s"]
    return [
        Line("iteration in plan order, results a second", f"{rate:,.0f}", ">= 100,000", rate >= 100_000),
        Line("the same, all prompts looked at", f"{prompt_rate:,.0f}", ">= 100,000", prompt_rate >= 100_000),
        reads.memory("iteration with prompts", with_prompts, 150 * _MB),
    ]


def _beside(bench: Bench, size: int) -> list[Line]:
    """A reader while another process writes as many interviews."""
    beside = run_child("reading_beside", bench.directory / "beside.run", size).figures
    peak, rounds = beside["peak_bytes"], f"{beside['rounds']} rounds in {beside['seconds']:.0f} s"
    return [
        Line(
            "a reader beside a writer of as many, peak memory", megabytes(peak), "<= 150 MB", peak <= 150 * _MB, rounds
        )
    ]


def _disk(bench: Bench, path: Path, size: int) -> list[Line]:
    letters, trickle = bench.directory / "letters.run", bench.directory / "trickle.run"
    fewer, one_by_one = max(1, size // _OTHER_PER), max(100, size // _TRICKLE_PER)
    _make(letters, fewer, million.INCOMPRESSIBLE)
    trickled = run_child("trickle", trickle, one_by_one).figures["written_bytes"]
    return [
        Line("disk a result, compressible text", f"{path.stat().st_size / size:,.0f} bytes"),
        Line("disk a result, incompressible text", f"{letters.stat().st_size / fewer:,.0f} bytes"),
        Line("disk a result, a commit for each", f"{trickle.stat().st_size / one_by_one:,.0f} bytes"),
        Line("written on the way, a commit for each", f"{trickled / one_by_one:,.0f} bytes"),
    ]
