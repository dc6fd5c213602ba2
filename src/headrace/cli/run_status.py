"""Prints the status of a run that goes on elsewhere, for `status`, `pause`, `tune`, `stop` and `resume`.

Covers: reading a run's status from its file and from its process, once or until it ends. Does not cover: the commands
(cli.steering_commands, cli.job_commands), or how a process is asked (interviews.steering.client).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer
from msgspec import structs

from headrace.cli.options import INTERRUPTED, WATCH_EVERY_S
from headrace.cli.output import budgets_text, larger_budgets, spent_text
from headrace.cli.terminal import own_command, print_json, say, seen_from_here
from headrace.display import counted, visible
from headrace.errors import NotRunning, NotSteerable, RunFileBusy
from headrace.interviews.steering.client import ask, state_of
from headrace.interviews.steering.messages import ResumeRequest, StateReply, SteeringRequest
from headrace.limits import Budgets, Keep
from headrace.results.results import Results
from headrace.results.stats import Stats
from headrace.store.lock import writer_of
from headrace.store.run_file.removal import disk_bytes
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets
from headrace.store.run_file.stored_job.stored_lists import latest_note, planned_interviews
from headrace.units import format_bytes, format_duration

_KEPT = {Keep.ANSWERS: "answers, without prompts and raw responses", Keep.NOTHING: "no rows: totals only"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundStatus:
    """A run at one moment. `live` is what its process says; `holder` is that process, which may not say anything."""

    path: Path
    stats: Stats
    total: int
    budgets: Budgets
    size_bytes: int
    live: StateReply | None
    holder: str | None
    kept: str

    @classmethod
    def at(cls, path: Path) -> _FoundStatus:
        live, holder = None, None
        try:
            live = state_of(path)
        except NotSteerable:
            holder = writer_of(path.expanduser().resolve())
        # The file after the process: of a run that has just ended, the end is seen.
        with Results.open(path) as results:
            stats, kept = results.stats(), results.kept
        if (live or holder) and (noted_at := latest_note(path)) is not None:
            # What the run has taken since then is not in its file yet.
            stats = replace(stats, seconds=stats.seconds + max(0.0, time.time() - noted_at))
        return cls(
            path=path,
            stats=stats,
            total=planned_interviews(path),
            budgets=kept_budgets(path),
            size_bytes=disk_bytes(path.expanduser().resolve()),
            live=live,
            holder=holder,
            kept=kept,
        )

    @property
    def goes_on(self) -> bool:
        return self.live is not None or self.holder is not None

    @property
    def state(self) -> str:
        if self.live is not None:
            return _state(self.live)
        if self.holder is not None:
            return "running"
        return "complete" if self.stats.interviews >= self.total else "not running"

    @property
    def counted(self) -> str:
        return f"{self.stats.interviews:,} of {counted(self.total, 'interview')}, {self.stats.failed:,} failed"

    def as_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"path": str(self.path), "state": self.state, "total": self.total}
        facts |= {
            "size_bytes": self.size_bytes,
            "keep": self.kept,
            **asdict(self.stats),
            "budgets": structs.asdict(self.budgets),
        }
        return facts | (_live_facts(self.live) if self.live is not None else {"pid": _number(self.holder)})


def show_status(path: Path, *, as_json: bool) -> None:
    look = _FoundStatus.at(path)
    if as_json:
        print_json(look.as_dict())
    else:
        say("\n".join(_lines(look)))


def watch_status(path: Path, *, as_json: bool) -> None:
    """Prints the status once a second until the run ends: redrawn on a terminal, elsewhere a line when it changed."""
    try:
        if as_json:
            for look in _statuses(path):
                print_json(look.as_dict(), on_one_line=True)
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
            f"{path} is already {_state(live)} in process {live.pid},"
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
        print_json({"path": str(path), "state": _state(live), **_live_facts(live)})
        return
    progress = live.progress
    say(f"{path}: {progress.done:,} of {counted(progress.total, 'interview')}")
    say(_process_line(live))
    if hint := _hint(_state(live), path):
        say(hint)


def _statuses(path: Path) -> Iterator[_FoundStatus]:
    """The run's status once a second, and once more when it has ended."""
    while (look := _FoundStatus.at(path)).goes_on:
        yield look
        time.sleep(WATCH_EVERY_S)
    yield look


def _print_changes(path: Path) -> None:
    before = ""
    for look in _statuses(path):
        in_flight = f", {look.live.progress.in_flight:,} in flight" if look.live is not None else ""
        line = f"{look.state}: {look.counted}{in_flight}"
        if line != before:  # a run that is paused overnight is one line, not thousands
            print(line, flush=True)
        before = line


def _redraw(path: Path) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as screen:
        for look in _statuses(path):
            screen.update(Text(visible("\n".join(_lines(look)))), refresh=True)


def _lines(look: _FoundStatus) -> Iterator[str]:
    stats = look.stats
    yield f"{look.path}: {look.counted}"
    if look.live is not None:
        yield _process_line(look.live)
        if notice := look.live.progress.notice:
            yield notice
    elif look.holder is not None:
        yield f"running in process {look.holder}, which cannot be asked"
    yield f"{spent_text(stats)}, {format_duration(stats.seconds)} of running"
    peak = f", at most {format_bytes(stats.peak_memory)} of memory" if stats.peak_memory else ""
    yield f"{format_bytes(look.size_bytes)} on disk{peak}"
    if look.kept != Keep.EVERYTHING:
        yield f"keeps {_KEPT[Keep(look.kept)]}"
    if budgets := budgets_text(look.budgets, stats):
        yield f"budgets, kept for each run: {budgets}"
    if hint := _hint(look.state, look.path):
        yield hint + (larger_budgets(look.budgets, stats) if look.state == "not running" else "")


def _process_line(live: StateReply) -> str:
    progress = live.progress
    return (
        f"{_state(live)} in process {live.pid}: {progress.in_flight:,} in flight, concurrency {live.concurrency:,},"
        f" memory {format_bytes(progress.memory_bytes)} of {format_bytes(progress.budget_bytes)}"
    )


def _hint(state: str, path: Path) -> str:
    return f"go on: {own_command()} resume {seen_from_here(path)}" if state in ("paused", "not running") else ""


def _state(live: StateReply) -> str:
    if live.is_stopping:
        return "stopping"
    return "paused" if live.progress.is_paused else "running"


def _live_facts(live: StateReply) -> dict[str, Any]:
    progress = live.progress
    return {
        "pid": live.pid,
        "concurrency": live.concurrency,
        "in_flight": progress.in_flight,
        "memory_bytes": progress.memory_bytes,
        "budget_bytes": progress.budget_bytes,
    }


def _number(holder: str | None) -> int | None:
    return int(holder) if holder is not None and holder.isdecimal() else None
