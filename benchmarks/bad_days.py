"""Bad days of a real model, counted at its server: what a kill -9 makes it answer twice, and what a storm costs."""

import itertools
import json
import random
import signal
import time
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.model_server import ModelServer, model_server
from benchmarks.processes import ChildFailed, run_child, start_python
from benchmarks.report import Line, Table

_WINDOW = 64
_LATENCY_S = 0.05
_LATEST_KILL_S = 1.5
_PATIENCE_S = 60.0
_HANDFUL = 10
_STORM_ROWS = 3_000


def measure(bench: Bench) -> Table:
    repeated = _repeated_by_kills(bench)
    storms = [_storm(bench, name) for name in ("429-seconds", "429")]
    return Table(
        "bad days of a real model",
        [
            Line("most calls made twice by one kill -9", f"{max(repeated)}", f"<= {_WINDOW}", max(repeated) <= _WINDOW),
            *(line for lines in storms for line in lines),
        ],
        [
            f"window {_WINDOW}, {_LATENCY_S * 1000:.0f} ms a call; every call that reached the server counts",
            f"made twice by each of {len(repeated)} kills: {', '.join(map(str, repeated))}",
            "a storm turns away what is under way when it begins, at most a window; extra is what exceeds that",
        ],
    )


def _repeated_by_kills(bench: Bench) -> list[int]:
    """For each kill, the calls that the server saw again afterwards; the last run is let end."""
    data, path = _rows(bench, bench.sizes.killed_calls), bench.directory / "killed.run"
    moments, repeated = random.Random(), list[int]()
    with model_server(latency_s=_LATENCY_S) as server:
        for _ in range(bench.sizes.kills):
            _kill(server, data, path, moments.random() * _LATEST_KILL_S)
            repeated.append(server.seen().repeated)
        run_child("services", "run", server.url, data, _WINDOW, path)
        seen = server.seen()
        if seen.prompts != bench.sizes.killed_calls:
            raise ChildFailed(f"{seen.prompts:,} of {bench.sizes.killed_calls:,} prompts reached the server")
        repeated.append(seen.repeated)
    return [after - before for before, after in itertools.pairwise(repeated)]


def _kill(server: ModelServer, data: Path, path: Path, delay_s: float) -> None:
    """Go on with the run and kill it so long after its first call."""
    before, began_s = server.seen().calls, time.monotonic()
    process = start_python("-m", "benchmarks.children.services", "run", server.url, data, _WINDOW, path)
    while server.seen().calls == before:
        if process.poll() is not None or time.monotonic() - began_s > _PATIENCE_S:
            raise ChildFailed("the run to be killed did not start")
        time.sleep(0.005)
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.close()
    if process.wait() != -signal.SIGKILL:
        raise ChildFailed("the run to be killed ended first: make killed_calls larger")


def _storm(bench: Bench, name: str) -> list[Line]:
    storm_s, path = bench.sizes.storm_s, bench.directory / f"{name}.run"
    data = _rows(bench, _STORM_ROWS)
    with model_server("--behave", name, "--storm-s", storm_s, latency_s=_LATENCY_S) as server:
        ended = run_child("services", "run", server.url, data, _WINDOW, path)
        seen = server.seen()
    if not seen.turned_away:
        raise ChildFailed("the run ended before the storm began")
    lost, extra = _STORM_ROWS - ended.figures["interviews"], max(0, seen.repeated - _WINDOW)
    told = f"storm of {storm_s:g} s, {name}"
    return [
        Line(f"{told}: interviews lost or failed", str(lost), "0", lost == 0),
        Line(f"{told}: turned away", str(seen.turned_away)),
        Line(f"{told}: extra calls beyond a window", str(extra), f"<= {_HANDFUL}", extra <= _HANDFUL),
        Line(f"{told}: over after", f"{ended.wall_s:.0f} s"),
    ]


def _rows(bench: Bench, count: int) -> Path:
    data = bench.directory / f"{count}.jsonl"
    data.write_text("".join(json.dumps({"number": number}) + "\n" for number in range(count)), "utf-8")
    return data
