"""Prints the status of a run that goes on elsewhere, for `status`, `pause`, `tune`, `stop` and `resume`.

Covers: words, once or until the run ends. Does not cover: the commands (cli.steering_commands, cli.job_commands), or
how a status is found (interviews.steering.run_file_status).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from msgspec import structs

from headrace.cli.options import INTERRUPTED, WATCH_EVERY_S
from headrace.cli.status.spending_text import budgets_text, spent_text
from headrace.cli.terminal import own_command, print_json, say, seen_from_here
from headrace.display import counted, visible
from headrace.errors import NotRunning, RunFileBusy
from headrace.interviews.steering.client import ask, state_of
from headrace.interviews.steering.ended_runs import larger_budgets
from headrace.interviews.steering.messages import ResumeRequest, StateReply, SteeringRequest
from headrace.interviews.steering.run_file_status import RunFileStatus, live_activity, live_state
from headrace.limits import Keep
from headrace.store.run_file.stored_job.kept_budgets import how_to_give_again
from headrace.units import format_bytes, format_duration

_KEPT = {Keep.ANSWERS: "answers, without prompts and raw responses", Keep.NOTHING: "no rows: totals only"}


def show_status(path: Path, *, as_json: bool) -> None:
    look = RunFileStatus.at(path)
    if as_json:
        print_json(_facts(look))
    else:
        say("\n".join(_lines(look)))


def watch_status(path: Path, *, as_json: bool) -> None:
    """Prints the status once a second until the run ends: redrawn on a terminal, elsewhere a line when it changed."""
    try:
        if as_json:
            for look in _statuses(path):
                print_json(_facts(look), on_one_line=True)
        elif sys.stdout.isatty():
            _redraw(path)
        else:
            _print_changes(path)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None  # Ctrl-C ends the watching; the run goes on


def tell_run(path: Path, request: SteeringRequest, *, as_json: bool) -> None:
    """Sends the run a request and prints its status after it."""
    _say(path, ask(path, request), as_json=as_json)


def go_on_elsewhere(path: Path, *, has_options: bool, as_json: bool) -> bool:
    """Lets a paused run go on in its own process; False where no process has it, so that it has to be run here."""
    live = state_of(path)
    if live is None:
        return False
    if live.is_stopping or not live.progress.is_paused:
        raise RunFileBusy(
            f"{path} is already {live_activity(live)} in process {live.pid},"
            f" {live.progress.done:,} of {counted(live.progress.total, 'interview')}.",
            path=path,
            fix=f"Watch it with: {own_command()} status {seen_from_here(path)} --watch",
        )
    try:
        _say(path, ask(path, ResumeRequest()), as_json=as_json)
    except NotRunning:
        return False  # it ended between the two questions
    if has_options:
        say(
            "it keeps the options it was started with; to change how many are in flight:"
            f" {own_command()} tune {seen_from_here(path)} --concurrency N",
            on_error=True,
        )
    return True


def _say(path: Path, live: StateReply, *, as_json: bool) -> None:
    if as_json:
        print_json({"path": str(path), "state": live_state(live), **_live_facts(live)})
        return
    progress = live.progress
    say(f"{path}: {progress.done:,} of {counted(progress.total, 'interview')}")
    say(_process_line(live))
    if live_state(live) == "paused":
        say(_to_resume(path))


def _statuses(path: Path) -> Iterator[RunFileStatus]:
    """The run's status once a second, and once more when it has ended. A process that does not answer is waited for
    once: then the figures are those of its file, until it answers.
    """
    while (look := RunFileStatus.at(path, is_brief=True)).goes_on:
        yield look
        time.sleep(WATCH_EVERY_S)
    yield look


def _print_changes(path: Path) -> None:
    before = ""
    for look in _statuses(path):
        in_flight = f", {look.live.progress.in_flight:,} in flight" if look.live is not None else ""
        line = f"{look.state}: {_counted(look)}{in_flight}"
        if line != before:  # a run that is paused overnight is one line, not thousands
            say(line, at_once=True)
        before = line


def _redraw(path: Path) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as screen:
        for look in _statuses(path):
            screen.update(Text(visible("\n".join(_lines(look)))), refresh=True)


def _lines(look: RunFileStatus) -> Iterator[str]:
    stats = look.stats
    yield f"{look.path}: {_counted(look)}"
    if look.live is not None:
        yield _process_line(look.live)
        if notice := look.live.progress.notice:
            yield notice
        yield from (node.in_words() for node in look.live.nodes)
        if more := look.live.nodes_left_out:
            yield f"and {counted(more, 'node')} more"
    elif look.holder is not None:
        yield f"running in process {look.holder}, which cannot be asked"
    if look.needed_keys:
        yield f"needs a key: {look.needed_keys}"
    yield f"{spent_text(stats)}, {format_duration(stats.seconds)} of running"
    peak = f", at most {format_bytes(stats.peak_memory)} of memory" if stats.peak_memory else ""
    yield f"{format_bytes(look.size_bytes)} on disk{peak}"
    if look.kept is not Keep.EVERYTHING:
        yield f"keeps {_KEPT[look.kept]}"
    if look.budgets_trouble:
        yield f"damaged: {look.budgets_trouble}. {how_to_give_again().command}"
    elif budgets := budgets_text(look.budgets, stats):
        yield f"budgets, kept for each run: {budgets}"
    if look.ended:
        yield _to_go_on(look)
    elif look.state == "paused":
        yield _to_resume(look.path)


def _process_line(live: StateReply) -> str:
    progress = live.progress
    return (
        f"{live_activity(live)} in process {live.pid}: {progress.in_flight:,} in flight,"
        f" concurrency {live.concurrency:,},"
        f" memory {format_bytes(progress.memory_bytes)} of {format_bytes(progress.budget_bytes)}"
    )


def _to_go_on(look: RunFileStatus) -> str:
    """How to go on with a run that no process runs."""
    from headrace.interviews.steering.needed_functions import needed_functions

    if functions := needed_functions(look.path):
        return f"go on: run the program again that made it, which has {', '.join(functions)}"
    return _to_resume(look.path) + larger_budgets(look.budgets, look.stats)


def _to_resume(path: Path) -> str:
    return f"go on: {own_command()} resume {seen_from_here(path)}"


def _counted(look: RunFileStatus) -> str:
    again = look.live.to_ask_again if look.live is not None else 0
    being_asked = f", {again:,} to be asked again" if again else ""
    return f"{look.done:,} of {counted(look.total, 'interview')}, {look.stats.failed:,} failed{being_asked}"


def _facts(look: RunFileStatus) -> dict[str, Any]:
    facts: dict[str, Any] = {"path": str(look.path), "state": look.state, "total": look.total}
    facts |= {
        "size_bytes": look.size_bytes,
        "keep": look.kept.value,
        **asdict(look.stats),
        "budgets": structs.asdict(look.budgets),
        "budgets_trouble": look.budgets_trouble,
    }
    return facts | (_live_facts(look.live) if look.live is not None else {"pid": _number(look.holder)})


def _live_facts(live: StateReply) -> dict[str, Any]:
    progress = live.progress
    return {
        "pid": live.pid,
        "concurrency": live.concurrency,
        "in_flight": progress.in_flight,
        "memory_bytes": progress.memory_bytes,
        "budget_bytes": progress.budget_bytes,
        "nodes": [structs.asdict(node) for node in live.nodes],
    }


def _number(holder: str | None) -> int | None:
    return int(holder) if holder is not None and holder.isdecimal() else None
