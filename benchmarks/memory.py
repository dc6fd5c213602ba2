"""Memory: the peak of the whole process for a small and a large run. Flat: the second is hardly above the first."""

from benchmarks.bench import Bench
from benchmarks.report import NOT_MEASURED, Line, Table, megabytes

_MOST_BYTES = 100e6
_MOST_GROWTH_BYTES = 12e6


def measure(bench: Bench) -> Table:
    small, large = bench.sizes.small_run, bench.sizes.large_run
    (small_run, _), (large_run, _) = bench.run_once(small), bench.run_once(large)
    peer, unkept = bench.edsl(bench.sizes.edsl), bench.edsl(bench.sizes.edsl, keeps=False)
    grown = large_run.peak_bytes - small_run.peak_bytes
    each = grown / (large - small)
    return Table(
        "memory: peak resident memory of the process",
        [
            Line(f"{small:,} interviews", megabytes(small_run.peak_bytes)),
            Line(
                f"{large:,} interviews",
                megabytes(large_run.peak_bytes),
                f"<= {megabytes(_MOST_BYTES)}",
                large_run.peak_bytes <= _MOST_BYTES,
            ),
            Line(
                "growth between them",
                megabytes(grown),
                f"<= {megabytes(_MOST_GROWTH_BYTES)}",
                grown <= _MOST_GROWTH_BYTES,
            ),
            Line(
                "growth per interview",
                f"{each:.1f} bytes",
                peer=f"{peer.resident_kb:.0f} KB" if peer else NOT_MEASURED,
            ),
            Line(
                "the peer with its object store off",
                "",
                peer=f"{unkept.resident_kb:.0f} KB" if unkept else NOT_MEASURED,
            ),
        ],
        [f"peer: EDSL at {bench.sizes.edsl:,} further interviews, after a few to warm up"],
    )
