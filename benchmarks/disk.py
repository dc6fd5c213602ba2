"""Disk: what a sealed run file takes, and what was written on the way to it, beside what EDSL leaves and writes."""

from benchmarks.bench import Bench
from benchmarks.report import NOT_MEASURED, Line, Table


def measure(bench: Bench) -> Table:
    interviews = bench.sizes.large_run
    (run, path), peer = bench.run_once(interviews), bench.edsl(bench.sizes.edsl)
    written = run.figures["written_bytes"] or run.figures["handed_bytes"]
    return Table(
        f"disk: bytes per interview, after {interviews:,}",
        [
            Line(
                "left on disk",
                f"{path.stat().st_size / interviews:,.0f}",
                peer=f"{peer.left_bytes:,.0f}" if peer else NOT_MEASURED,
            ),
            Line(
                "written on the way",
                f"{written / interviews:,.0f}",
                peer=f"{peer.written_bytes:,.0f}" if peer else NOT_MEASURED,
            ),
        ],
        [
            "the run file holds agents, prompts, raw responses and answers; written includes the spool of the agents",
            f"peer: EDSL at {bench.sizes.edsl:,} interviews, its cache in memory; bytes each grow with their number",
        ],
    )
