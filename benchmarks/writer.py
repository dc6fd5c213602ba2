"""The one writer: how many encoded rows a second the journal's thread takes, and what each costs."""

from benchmarks.bench import Bench
from benchmarks.processes import Ended, run_child
from benchmarks.report import Line, Table, loops

_LEAST_ROWS_S = 50_000
_IN_A_COMMIT = (64, 1_000)
_KEEPS = ("everything", "answers", "nothing")


def measure(bench: Bench) -> Table:
    rows, lines, loop_times = bench.sizes.fed_rows, list[Line](), list[float]()
    for keep in _KEEPS:
        for in_a_commit in _IN_A_COMMIT:
            path = bench.directory / f"fed-{keep}-{in_a_commit}.run"
            ended = run_child("fed_rows", path, keep, rows, in_a_commit)
            path.unlink()
            loop_times.append(ended.figures["loop_ms"])
            lines.append(_line(keep, in_a_commit, rows, ended))
    return Table(
        "writer",
        lines,
        [
            f"{rows:,} rows through WriterThread and Journal.commit into a real run file, synchronous=FULL",
            "the clock stands while rows are made; a commit waits for the disk, so wall says what the disk allows",
            "a full-speed run commits whatever came during the last COMMIT, up to 1,000 rows",
            loops(loop_times),
        ],
    )


def _line(keep: str, in_a_commit: int, rows: int, ended: Ended) -> Line:
    figures = ended.figures
    rate, by_cpu = rows / figures["wall_s"], rows / figures["cpu_s"]
    measured = (
        f"{rate:,.0f} rows/s, {1e6 * figures['cpu_s'] / rows:.1f} us of CPU a row ({by_cpu:,.0f}/s),"
        f" {figures['bytes'] / rows:.0f} bytes a row"
    )
    is_aimed = in_a_commit == max(_IN_A_COMMIT)
    target = f">= {_LEAST_ROWS_S:,} rows/s" if is_aimed else ""
    return Line(
        f"keep={keep}, {in_a_commit:,} in a commit", measured, target, rate >= _LEAST_ROWS_S if is_aimed else None
    )
