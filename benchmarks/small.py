"""Small things: one question to one agent, the import, and one answer on its way to the disk."""

import statistics

from benchmarks.bench import Bench
from benchmarks.processes import run_child, run_python
from benchmarks.report import Line, Table

_MOST_RUN_MS = 100.0
_MOST_IMPORT_MS = 60.0
_MOST_JOURNAL_MS = 3.0


def measure(bench: Bench) -> Table:
    return Table(
        "small things",
        [*_one_question(bench), *_import(bench.sizes.imports), *_journal(bench)],
        [
            "run: wall, from job.run() to the answer, a new run file each; the first includes what loads on first use",
            f"import: CPU of `from headrace import *` over `import asyncio`, median of {bench.sizes.imports} of each",
            "journal: from an answer to the return of the COMMIT that holds it, one interview at a time",
        ],
    )


def _one_question(bench: Bench) -> list[Line]:
    figures = run_child("one_question", bench.directory).figures
    first_ms, median_ms, target = figures["first_ms"], figures["median_ms"], f"<= {_MOST_RUN_MS:.0f} ms"
    return [
        Line("one question, one agent: first run", f"{first_ms:.1f} ms", target, first_ms <= _MOST_RUN_MS),
        Line("one question, one agent: later runs", f"{median_ms:.1f} ms", target, median_ms <= _MOST_RUN_MS),
    ]


def _import(repeats: int) -> list[Line]:
    """Both in turn, so that a busy moment of the machine falls on both."""
    statements = ("import asyncio", "from headrace import *")
    for statement in statements:
        run_python("-c", statement)  # writes byte code where there is none yet
    bare, ours = zip(
        *([run_python("-c", each).cpu_s * 1000 for each in statements] for _ in range(repeats)), strict=True
    )
    bare_ms, ours_ms = statistics.median(bare), statistics.median(ours)
    loaded = run_child("loaded_modules").figures["heavy"]
    over_ms = ours_ms - bare_ms
    measured = f"{ours_ms:.0f} - {bare_ms:.0f} = {over_ms:.0f} ms"
    return [
        Line("import headrace over asyncio", measured, f"<= {_MOST_IMPORT_MS:.0f} ms", over_ms <= _MOST_IMPORT_MS),
        Line("pandas, pyarrow, aiohttp, rich loaded by it", ", ".join(loaded) or "none", "none", not loaded),
    ]


def _journal(bench: Bench) -> list[Line]:
    figures = run_child("journaled_answers", bench.directory / "journaled.run").figures
    p50_ms, p95_ms = figures["p50_ms"], figures["p95_ms"]
    return [
        Line(
            "journaling one answer, p50",
            f"{p50_ms:.2f} ms",
            f"<= {_MOST_JOURNAL_MS:.0f} ms",
            p50_ms <= _MOST_JOURNAL_MS,
        ),
        Line("journaling one answer, p95", f"{p95_ms:.2f} ms"),
    ]
