"""The engine with agents in worker processes: the same mix as inline in one budget, and what a death costs.

Memory is what all processes hold together (PSS), read from outside as often as every 10 ms; drawn like inline.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.memory_picture import draw
from benchmarks.processes import ChildFailed, loop_ms, run_child, start_python
from benchmarks.report import Line, Table, loops, megabytes

_BUDGET_BYTES = 512_000_000
_SAMPLE_EVERY_S = 0.01
_MOST_RECOVERY_MS = 100.0
_BEST_PEAK_BYTES = 428_000_000
_DESIGNS = "978 / 428 / 628 MB"
_DRAWN = "memory of controller, warden and workers together (PSS)"
_DESIGNS_STEADY = "528 / 278 / 378 MB"
_DEATHS = 20


def measure(bench: Bench) -> Table:
    recovery = run_child("engine_recovery", bench.directory / "recovery.run", _DEATHS).figures
    mix, two_slots = _mix(bench, 4), _mix(bench, 2)
    return Table(
        "the engine, agents in processes",
        [_recovery_line(recovery), *_mix_lines(bench, "mix", mix), *_mix_lines(bench, "mix, two slots", two_slots)],
        [
            "peers of two slots: what a process pool, streaming, and a priority queue aim at, peak and steady",
            "steady is the median while agents run; memory is PSS of controller, warden and workers",
            f"drawn in {mix['picture']} and {two_slots['picture']}",
            loops([loop_ms()]),
        ],
    )


def _recovery_line(figures: dict[str, Any]) -> Line:
    told = f"{figures['p50_ms']:.0f} ms, most {figures['most_ms']:.0f} ms of {figures['deaths']}"
    is_met = figures["p50_ms"] <= _MOST_RECOVERY_MS
    return Line("out-of-memory death to the next step, p50", told, f"<= {_MOST_RECOVERY_MS:.0f} ms", is_met)


def _mix_lines(bench: Bench, name: str, mix: dict[str, Any]) -> list[Line]:
    agents, interviews = bench.sizes.mixed_agents, bench.sizes.mixed_interviews
    peak = max(used for _, used in mix["samples"])
    with_agents = sorted(used for at, used in mix["samples"] if at <= mix["agents_ended_at"])
    steady = with_agents[len(with_agents) // 2]
    is_two = mix["slots"] == 2
    most = _BEST_PEAK_BYTES if is_two else _BUDGET_BYTES
    stopped = f"{mix['preemptions']}, {mix['kills']}, {mix['shortages']}"
    return [
        Line(f"{name}: peak", megabytes(peak), f"< {megabytes(most)}", peak < most, _DESIGNS if is_two else ""),
        Line(f"{name}: steady state", megabytes(steady), "", None, _DESIGNS_STEADY if is_two else ""),
        Line(f"{name}: agents with the right result", f"{mix['right']} of {agents}", "all", mix["right"] == agents),
        Line(f"{name}: interviews", f"{mix['answered']:,}", f"{interviews:,}", mix["answered"] == interviews),
        Line(f"{name}: preempted, killed, out of memory", stopped),
        Line(f"{name}: heartbeats run, skipped", f"{mix['beats']}, {mix['skips']}"),
        Line(f"{name}: seconds, samples", f"{mix['seconds']:.1f}, {len(mix['samples']):,}"),
    ]


def _mix(bench: Bench, slots: int) -> dict[str, Any]:
    sizes = (bench.sizes.mixed_agents, bench.sizes.mixed_interviews)
    path = bench.directory / f"isolated-{slots}.run"
    child = start_python("-m", "benchmarks.children.engine_mix", path, *sizes, _BUDGET_BYTES, slots, "process")
    samples: list[tuple[float, int]] = []
    while child.poll() is None:
        if used := _tree_pss_bytes(child.pid):
            samples.append((time.time(), used))
        time.sleep(_SAMPLE_EVERY_S)
    assert child.stdout is not None
    with child.stdout:
        printed = child.stdout.read()
    if child.returncode:
        raise ChildFailed(f"the mix ended with {child.returncode}")
    figures = json.loads(printed)
    picture = Path(tempfile.gettempdir()) / f"headrace-isolated-{slots}-slots.svg"
    picture.write_text(draw(samples, figures["events"], _BUDGET_BYTES, _DRAWN), encoding="utf-8")
    return {**figures, "samples": samples, "picture": picture, "slots": slots}


def _tree_pss_bytes(root: int) -> int:
    pids, total = [root], 0
    for pid in pids:
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_bytes().split())
            lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
        except OSError:
            continue  # it has just ended
        total += next((int(line.split()[1]) << 10 for line in lines if line.startswith(b"Pss:")), 0)
    return total
