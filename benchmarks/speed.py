"""Speed: CPU per further interview, everything on. The difference of two runs leaves out what every run costs once."""

import statistics
import time

from benchmarks.bench import Bench
from benchmarks.edsl import Peer
from benchmarks.report import NOT_MEASURED, Line, Table, loops
from headrace.store.run_file.checksums import interview_checksum

_MOST_US = 60.0


def _checksum_us(repeats: int = 200_000) -> float:
    """Of a row of three answers with a detail of 300 bytes."""
    values, detail = (123_456, 0, 123_456, 1, 0, 0, "Good", 7, "a sentence of the usual length", None), bytes(300)
    started_s = time.process_time()
    for _ in range(repeats):
        interview_checksum(values, detail)
    return (time.process_time() - started_s) / repeats * 1e6


def measure(bench: Bench) -> Table:
    sizes = bench.sizes
    costs_us: list[float] = []
    loops_ms: list[float] = []
    for _ in range(sizes.speed_repeats):
        (short, _), (long, _) = bench.run(sizes.speed_from), bench.run(sizes.speed_to)
        costs_us.append((long.cpu_s - short.cpu_s) / (sizes.speed_to - sizes.speed_from) * 1e6)
        loops_ms += [short.figures["loop_ms"], long.figures["loop_ms"]]
    cost_us, peers = statistics.median(costs_us), _peers(bench)
    first = next(iter(peers), None)
    lines = [
        Line(
            "CPU per further interview",
            f"{cost_us:.1f} us",
            f"<= {_MOST_US:.0f} us",
            cost_us <= _MOST_US,
            f"{first.cpu_us:,.0f} us" if first else NOT_MEASURED,
        ),
        Line("of that, the row's checksum", f"{_checksum_us():.2f} us"),
    ]
    lines += [
        Line(f"the peer, {_described(peer)}", f"1 / {peer.cpu_us / cost_us:,.0f}", peer=f"{peer.cpu_us:,.0f} us")
        for peer in peers
    ]
    notes = [
        f"user + system, from {sizes.speed_from:,} to {sizes.speed_to:,} interviews of three questions",
        f"median of {', '.join(f'{cost:.1f}' for cost in costs_us)} us",
        loops(loops_ms),
    ]
    if first:
        notes += [
            f"peer: EDSL at {first.interviews:,} interviews, the limit of its test model lifted, its cache in memory",
            "plain: no {{ name }} in any text; for each that has one, EDSL looks through all that the job holds",
            loops(peer.loop_ms for peer in peers),
        ]
    return Table("speed: CPU", lines, notes)


def _peers(bench: Bench) -> list[Peer]:
    """As its users run it, then without its object store; with names in its texts, as ours has, and without."""
    ways = [(keeps, has_names) for keeps in (True, False) for has_names in (True, False)]
    measured = [bench.edsl(bench.sizes.edsl, keeps=keeps, has_names=has_names) for keeps, has_names in ways]
    return [peer for peer in measured if peer is not None]


def _described(peer: Peer) -> str:
    return f"{'as it comes' if peer.keeps else 'object store off'}, {'the same' if peer.has_names else 'plain'} texts"
