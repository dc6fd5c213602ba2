"""The command `top`: what the page lists, at the terminal; with one run its figures, endpoints and memory line.

Covers: drawing once a second until Ctrl-C; elsewhere than at a terminal, plain lines, once. Does not cover: reading
(web.api).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import INTERRUPTED, WATCH_EVERY_S

if TYPE_CHECKING:
    from headrace.cli.rich_terminal import Terminal
    from headrace.web.api.run_summary import RunSummary
    from headrace.web.shown_files import ShownFile, ShownFiles

_LONGEST = 60


def top(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE | DIRECTORY]...", help="Run files, engine files and directories; by default all of yours."
        ),
    ] = None,
) -> None:
    """Watch runs and engines at the terminal. One run is shown with its models and its memory over time."""
    from headrace.cli.rich_terminal import Terminal
    from headrace.web.serving import checked_places
    from headrace.web.shown_files import ShownFiles

    files, terminal = ShownFiles(checked_places(places)), Terminal()
    if not terminal.is_live:
        for line in _lines(files, terminal):
            terminal.say(line)
        return
    try:
        _redraw(files, terminal)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None  # Ctrl-C ends the watching; what runs goes on


def _redraw(files: ShownFiles, terminal: Terminal) -> None:
    from rich.live import Live
    from rich.text import Text

    from headrace.display import visible

    with Live(console=terminal, auto_refresh=False, screen=True) as screen:
        while True:
            shown = [visible(line)[: terminal.width] for line in _lines(files, terminal)][: terminal.height - 1]
            screen.update(Text("\n".join(shown), no_wrap=True), refresh=True)
            time.sleep(WATCH_EVERY_S)


def _lines(files: ShownFiles, terminal: Terminal) -> Iterator[str]:
    from headrace.web.api.run_summary import summary_of
    from headrace.web.shown_files import ShownKind

    found, is_cut = files.latest()
    if len(found) == 1 and found[0].kind is ShownKind.RUN:
        yield from _run_lines(found[0], summary_of(files, found[0]), terminal)
        return
    yield from _list_lines(files, found)
    if is_cut:
        yield f"there are more: these are the latest {len(found):,}"


def _list_lines(files: ShownFiles, found: list[ShownFile]) -> Iterator[str]:
    from headrace.cli.terminal import showable
    from headrace.web.api.run_list import listed_file

    rows = [("file", "state", "progress", "failed", "cost", "memory", "size", "changed")]
    for file in found:
        line = listed_file(files, file)
        texts = line.texts
        name = showable(line.name, _LONGEST, "utf-8")
        rows.append(
            (name, line.state, texts.progress, texts.failed, texts.cost, texts.memory, texts.size, texts.changed)
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _run_lines(file: ShownFile, run: RunSummary, terminal: Terminal) -> Iterator[str]:
    from headrace.charts.memory_text import memory_text
    from headrace.cli.terminal import showable
    from headrace.results.plots.distributions import memory_chart
    from headrace.web.api.run_summary import history_at

    yield f"{showable(run.name, _LONGEST, 'utf-8')}: {run.state}, {run.percent} %"
    shown = [figure for figure in run.figures if figure.text]
    width = max(len(figure.name) for figure in shown)
    yield from (f"  {figure.name:<{width}}  {figure.text}" for figure in shown)
    if run.live is not None and run.live.notice:
        yield run.live.notice
    for each in run.endpoints:
        yield f"{each.model}: {each.calls:,} calls, {each.busy:,} told to wait, {each.failures:,} failed. {each.now}"
    if points := history_at(file):
        chart = memory_chart(points, "memory", run.done)
        yield from memory_text(chart, terminal.width, unicode=terminal.has_unicode).splitlines()
