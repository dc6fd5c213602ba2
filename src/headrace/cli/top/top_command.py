"""The command `top`: what the page lists, at the terminal; with one run or engine what it does and its memory line.

Covers: drawing once a second until Ctrl-C; elsewhere than at a terminal, plain lines, once. Does not cover: the lines
(cli.top.top_lines).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import INTERRUPTED, WATCH_EVERY_S

if TYPE_CHECKING:
    from headrace.cli.rich_terminal import Terminal
    from headrace.web.shown_files import ShownFiles


def top(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE | DIRECTORY]...", help="Run files, engine files and directories; by default all of yours."
        ),
    ] = None,
) -> None:
    """Watch runs and engines at the terminal. One run is shown with its models and its memory over time, one engine
    with its slots, queue and heartbeats.
    """
    from headrace.cli.rich_terminal import Terminal
    from headrace.cli.top.top_lines import Room, top_lines
    from headrace.web.serving import checked_places
    from headrace.web.shown_files import ShownFiles

    files, terminal = ShownFiles(checked_places(places)), Terminal()
    if not terminal.is_live:
        for line in top_lines(files, Room(terminal.width, None, has_unicode=terminal.has_unicode)):
            terminal.say(line)
        return
    try:
        _redraw(files, terminal)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None  # Ctrl-C ends the watching; what runs goes on


def _redraw(files: ShownFiles, terminal: Terminal) -> None:
    from rich.live import Live
    from rich.text import Text

    from headrace.cli.top.top_lines import Room, top_lines
    from headrace.display import visible

    with Live(console=terminal, auto_refresh=False, screen=True) as screen:
        while True:
            room = Room(terminal.width, terminal.height - 1, has_unicode=terminal.has_unicode)
            shown = [visible(line)[: room.columns] for line in top_lines(files, room)][: room.rows]
            screen.update(Text("\n".join(shown), no_wrap=True), refresh=True)
            time.sleep(WATCH_EVERY_S)
