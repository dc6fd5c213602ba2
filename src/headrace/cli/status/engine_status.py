"""Prints the status of an engine's file for `status`: its agent runs by state, and those that failed last, with why.

Does not cover: run files (cli.status.run_status), or what an engine knows and its file does not (Engine.status).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from msgspec import structs

from headrace.cli.options import INTERRUPTED, WATCH_EVERY_S
from headrace.cli.terminal import print_json, say, showable
from headrace.display import counted
from headrace.errors import NotSteerable
from headrace.store.engine_file.engine_overview import EngineOverview, FailedRun, read_overview
from headrace.store.engine_file.engine_schema import RunState, standing
from headrace.store.lock import writer_of
from headrace.store.run_file.removal import disk_bytes
from headrace.units import format_bytes

if TYPE_CHECKING:
    from headrace.cluster.node_states import NodeState

_MOST_FAILED = 5
_TO_DECIDE = (
    "a side effect of an undecided run has started, and may or may not have happened: find out, then, of"
    " await engine.unfinished(), await engine.handle(status).resolve(status.error, result=...) if it has, or again=True"
)
_LONGEST_NAME, _LONGEST_CAUSE = 60, 160


def show_engine_status(path: Path, *, as_json: bool) -> None:
    overview, holder = read_overview(path, _MOST_FAILED), _holder(path)
    nodes = _nodes(path, holder)
    if as_json:
        print_json(_facts(path, overview, holder, nodes))
    else:
        say("\n".join(_lines(path, overview, holder, nodes)))


def watch_engine_status(path: Path, *, as_json: bool) -> None:
    """Print the status when it has changed, once a second, until no engine has the file open."""
    before, is_open = "", True
    try:
        while is_open:
            # The file after the process: of an engine that has just ended, the end is seen.
            holder = _holder(path)
            overview, is_open = read_overview(path, _MOST_FAILED), holder is not None
            nodes = _nodes(path, holder)
            shown = "\n".join(_lines(path, overview, holder, nodes))
            if shown != before and as_json:
                print_json(_facts(path, overview, holder, nodes), on_one_line=True)
            elif shown != before:
                say(shown, at_once=True)
            before = shown
            if is_open:
                time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None  # Ctrl-C ends the watching; the engine goes on


def _holder(path: Path) -> str | None:
    return writer_of(path.expanduser().resolve())


def _nodes(path: Path, holder: str | None) -> tuple[NodeState, ...]:
    """The nodes of the cluster that the engine's runs are on, as far as it answers."""
    if holder is None:
        return ()
    from headrace.agents.steering.engine_client import engine_state

    try:
        live = engine_state(path.expanduser().resolve())
    except NotSteerable:
        return ()
    return live.status.nodes if live is not None else ()


def _lines(path: Path, overview: EngineOverview, holder: str | None, nodes: tuple[NodeState, ...]) -> Iterator[str]:
    total, runs = sum(overview.runs.values()), standing(overview.runs, is_open=holder is not None)
    states = ", ".join(f"{count:,} {state.word}" for state, count in runs.items())
    yield f"{path}: {counted(total, 'agent run')}{': ' if states else ''}{states}"
    if holder is not None:
        yield f"open in process {holder}"
    elif any(not state.is_final and state is not RunState.UNDECIDED for state in runs):
        yield "no process has it open: run its program again to go on"
    if RunState.UNDECIDED in runs:
        yield _TO_DECIDE
    yield from (showable(node.in_words(), _LONGEST_CAUSE, "utf-8") for node in nodes)
    peak = overview.peak_memory_bytes
    memory = "" if peak is None else f", at most {format_bytes(peak)} of memory"
    yield f"{format_bytes(disk_bytes(path.expanduser().resolve()))} on disk{memory}"
    if overview.failed:
        shown = len(overview.latest_failed)
        yield "failed:" if shown == overview.failed else f"failed, the latest {shown} of {overview.failed:,}:"
        yield from map(_failed_line, overview.latest_failed)
        yield "go on with one once its cause is gone: await engine.handle(status).retry(), of await engine.failed()"


def _failed_line(run: FailedRun) -> str:
    name, cause = showable(run.name, _LONGEST_NAME, "utf-8"), showable(_cause(run), _LONGEST_CAUSE, "utf-8")
    return f"  {run.id} {name}: {run.state.value}{': ' if cause else ''}{cause}"


def _cause(run: FailedRun) -> str:
    """The first line of an error: behind it are the rest of a message, and a traceback."""
    return run.error.strip().partition("\n")[0]


def _facts(path: Path, overview: EngineOverview, holder: str | None, nodes: tuple[NodeState, ...]) -> dict[str, Any]:
    return {
        "path": str(path),
        "state": "not running" if holder is None else "running",
        "runs": {state.word: count for state, count in standing(overview.runs, is_open=holder is not None).items()},
        "failed": overview.failed,
        "latest_failed": [
            {"id": run.id, "name": run.name, "kind": run.kind, "state": run.state.word, "cause": _cause(run)}
            for run in overview.latest_failed
        ],
        "peak_memory_bytes": overview.peak_memory_bytes,
        "size_bytes": disk_bytes(path.expanduser().resolve()),
        "nodes": [structs.asdict(node) for node in nodes],
        "pid": int(holder) if holder is not None and holder.isdecimal() else None,
    }
