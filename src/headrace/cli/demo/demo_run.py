"""Runs the demo and prints all of it, up to what to type next. Does not cover: its survey (cli.demo.moods)."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.live import Live

from headrace.cli.demo.pictures import Bar, MemoryPicture, bar_chart
from headrace.cli.demo.subject import Subject
from headrace.cli.rich_terminal import Terminal
from headrace.cli.terminal import own_command, own_python, seen_from_here, showable
from headrace.interviews.delivery import Delivery
from headrace.limits import RunOptions
from headrace.memory.measure.own_tree import tree_bytes
from headrace.plan.job import Job
from headrace.results.results import Results
from headrace.store.disk_errors import translated_errors
from headrace.store.home import home
from headrace.store.run_file.reader import open_run_file
from headrace.store.run_file.removal import check_is_removable, disk_bytes, remove_run, set_aside
from headrace.store.run_file.stored_job.creation import read_identity
from headrace.tables import print_rows, table_width
from headrace.units import format_bytes, format_duration

# What EDSL 1.0.9 was measured to keep in RAM for each interview: `./scripts/bench memory` prints it.
THEIR_BYTES_EACH = 47_000
_LARGE = 20_000
_REDRAWN_EVERY_S = 0.4


def run_demo(subject: Subject, size: int, output: Path | None) -> None:
    terminal = Terminal()
    job = subject.job(size)
    terminal.print(subject.opening.format(size=len(job)))
    path = (output if output is not None else home() / "runs" / subject.file_name).absolute()
    options = RunOptions(fresh=output is None and _is_in_the_way(path, subject), progress_bar=size < _LARGE)
    started_s = time.monotonic()
    with _making_way(path) if output is None and _is_over(path, job, subject) else nullcontext():
        _run(terminal, job, path, options)
    took_s = time.monotonic() - started_s
    with Results.open(path) as results:
        _show_answers(terminal, results, subject)
        _show_bars(terminal, results, subject)
        _show_cost(terminal, results, took_s)
    _show_next(terminal, path, subject, is_large=size >= _LARGE)


def _is_in_the_way(path: Path, subject: Subject) -> bool:
    """Whether the demo's place holds a run file of something else, which is then kept under another name."""
    if not path.exists():
        return False
    with Results.open(path) as results:
        return not set(subject.columns.values()) <= set(results.columns)


def _is_over(path: Path, job: Job, subject: Subject) -> bool:
    """Whether an earlier demo is there that has nothing left to run; one that was cut short goes on."""
    if not path.exists() or _is_in_the_way(path, subject):
        return False
    with Results.open(path) as results:
        done = len(results)
    return done >= len(job) or not _is_of(path, job)


@contextmanager
def _making_way(path: Path) -> Generator[None]:
    """An earlier demo makes way, so that there is a run to see, and is removed when the new one has its answers."""
    check_is_removable(path)  # not from under another demo that is running
    earlier = set_aside(path)
    try:
        yield
    except BaseException:
        if earlier is not None and not path.exists():
            earlier.rename(path)
        raise
    if earlier is not None:
        remove_run(earlier)


def _is_of(path: Path, job: Job) -> bool:
    connection = open_run_file(path)
    try:
        with translated_errors(path):
            return read_identity(connection) == job.identity()
    finally:
        connection.close()


def _run(terminal: Terminal, job: Job, path: Path, options: RunOptions) -> None:
    """Runs the job; a large one is drawn meanwhile in this thread, or once at the end where there is no terminal."""
    if options.progress_bar:
        job.run(path, fresh=options.fresh, progress_bar=True, cache=False).close()
        return
    picture = MemoryPicture(len(job), THEIR_BYTES_EACH)
    live = Live(console=terminal, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with Delivery(job, path, options, listening=False) as delivery, live if terminal.is_live else nullcontext():
        delivery.start()
        for progress in delivery.progress(_REDRAWN_EVERY_S):
            picture.note(progress.done, progress.memory_bytes)
            if terminal.is_live:
                live.update(picture.drawn(terminal.width, unicode=terminal.has_unicode), refresh=True)
        delivery.finish()
        picture.finish(tree_bytes())
        drawn = picture.drawn(terminal.width, unicode=terminal.has_unicode)
        live.update(drawn, refresh=True) if terminal.is_live else terminal.print(drawn)


def _show_answers(terminal: Terminal, results: Results, subject: Subject) -> None:
    """Prints the first few answers, with as many columns as fit."""
    found = results.select(*subject.columns.values()).head(5).to_dicts()
    rows = [["-" if value is None else showable(value, 36, terminal.encoding) for value in r.values()] for r in found]
    names, count = list(subject.columns), len(subject.columns)
    while count > 1 and table_width(names[:count], [row[:count] for row in rows]) > terminal.width:
        count -= 1
    terminal.print("\nThe first few answers", style="bold")
    print_rows(terminal, names[:count], [row[:count] for row in rows], right=subject.right)


def _show_bars(terminal: Terminal, results: Results, subject: Subject) -> None:
    counted = results.sql(f'select "{subject.group}", {subject.question}, count(*) from self group by 1, 2')
    counts = {(group, answer): count for group, answer, count in counted}
    bars = [
        Bar(group=group, name=answer, count=counts.get((group, answer), 0), style=style)
        for group in sorted({group for group, _ in counts})
        for answer, style in subject.styles.items()
    ]
    terminal.print(f"\n{subject.heading}", style="bold")
    terminal.print(bar_chart(bars, terminal.width, unicode=terminal.has_unicode))


def _show_cost(terminal: Terminal, results: Results, took_s: float) -> None:
    stats = results.stats()
    if stats.reused:
        terminal.print(f"\nreused: {stats.reused:,} of an earlier run", end="")
    new = stats.interviews - stats.reused
    terminal.print(f"\ntime: {format_duration(took_s)}, {new / took_s:,.{0 if new > took_s * 10 else 1}f} interviews/s")
    terminal.print(f"memory: {format_bytes(stats.peak_memory or 0)} at most")


def _show_next(terminal: Terminal, path: Path, subject: Subject, *, is_large: bool) -> None:
    command, here = own_command(), seen_from_here(path)
    opened = f"from headrace import Results; r = Results.open({json.dumps(str(path))})"
    asked = f'{opened}; print(r.sql("{subject.query}"))'
    chosen = f"--select '{subject.group},answer.*' --where {shlex.quote(subject.where)} --limit 5"
    hints = {
        "see how it went": f"{command} status {here}",
        "look at some answers": f"{command} results {here} {chosen}",
        "ask SQL, from Python": f"{own_python()} -c {shlex.quote(asked)}",
    }
    if is_large:
        hints["remove the run file"] = f"{command} runs --remove {here}"
    else:
        hints["see memory stay flat"] = f"{command} demo --size 100000"
    terminal.say(f"run file: {here}, {format_bytes(disk_bytes(path))}")
    terminal.print("\nType next, to", style="bold")
    for what, words in hints.items():
        terminal.print(what, style="dim")
        terminal.say(f"  {words}")
