"""Growth: whether the last interviews of a long run cost what the first ones did, in CPU and in bytes written.

One process grows one run file in steps, with `limit=`; see children/growing_run.py for what that leaves out.
"""

from benchmarks.bench import Bench
from benchmarks.processes import run_child
from benchmarks.report import NOT_MEASURED, Line, Table, loops

_MOST_CHANGE = 0.10


def measure(bench: Bench) -> Table:
    early, late = bench.sizes.growth_early, bench.sizes.growth_late
    path = bench.directory / "growing.run"
    ended = run_child("growing_run", path, *early, *late)
    path.unlink()  # as large as the largest run, and no other measure looks at it
    first, last = ended.figures["early"], ended.figures["late"]
    kind = "written_bytes" if first["written_bytes"] else "handed_bytes"
    peer_cpu, peer_bytes = _peer(bench)
    return Table(
        f"growth: {late[0]:,} to {late[1]:,} against {early[0]:,} to {early[1]:,} interviews",
        [
            _line("CPU per interview, us", first["cpu_us"], last["cpu_us"], peer_cpu),
            _line("bytes written per interview", first[kind], last[kind], peer_bytes),
        ],
        [
            f"bytes are {'write_bytes' if kind == 'written_bytes' else 'wchar'} of /proc/self/io",
            "making the lists is left out, and what it costs to open and to seal the file",
            loops([first["loop_ms"], last["loop_ms"]]),
            f"peer: EDSL, {bench.sizes.edsl:,} against {_few(bench):,} interviews",
        ],
    )


def _line(name: str, first: float, last: float, peer: str) -> Line:
    change = last / first - 1
    return Line(name, _change(first, last), f"<= {_MOST_CHANGE:+.0%}", change <= _MOST_CHANGE, peer)


def _peer(bench: Bench) -> tuple[str, str]:
    few, many = bench.edsl(_few(bench)), bench.edsl(bench.sizes.edsl)
    if few is None or many is None:
        return NOT_MEASURED, NOT_MEASURED
    return _change(few.cpu_us, many.cpu_us), _change(few.written_bytes, many.written_bytes)


def _few(bench: Bench) -> int:
    return bench.sizes.edsl // 4


def _change(first: float, last: float) -> str:
    return f"{first:,.0f} -> {last:,.0f}, {last / first - 1:+.1%}"
