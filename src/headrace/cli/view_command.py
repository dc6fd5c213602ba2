"""The command `view`: the page in a browser.

Does not cover: the page itself (web).
"""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def view(
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE | DIRECTORY]...", help="Run files, engine files and directories; by default all of yours."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where it listens; by default a free port.")] = 0,
    host: Annotated[
        str, typer.Option(help="The address it listens at. Others than loopback need HEADRACE_VIEW_TOKEN.")
    ] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    no_steering: Annotated[
        bool, typer.Option("--no-steering", help="Only look: nothing can be paused or stopped.")
    ] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one run's page as one HTML file instead of serving it.")
    ] = None,
    export_size: Annotated[str, typer.Option(metavar="SIZE", help="The most that --export writes.")] = "5MB",
) -> None:
    """Show runs in a browser, live."""
    from headrace.cli.terminal import say

    if export is not None:
        written = _exported(places or [], export, export_size)
        if open_browser:
            webbrowser.open(written.resolve().as_uri())
        return
    from headrace.web.serving import serve

    def show_address(address: str) -> None:
        with suppress(BrokenPipeError):  # the page is what was asked for
            say(address, at_once=True)
        if open_browser:
            webbrowser.open(address)

    serve(places, host=host, port=port, can_steer=not no_steering, on_ready=show_address)


def _exported(places: list[Path], path: Path, size: str) -> Path:
    from headrace.cli.terminal import say
    from headrace.errors import OptionError
    from headrace.units import format_bytes, parse_bytes
    from headrace.web.exported_page import export_page

    if len(places) != 1:
        raise OptionError("--export writes one run.", fix="Name its file: headrace view city.run --export city.html")
    written = export_page(places[0], path, most_bytes=parse_bytes(size))
    say(f"{written.path}: {format_bytes(written.size_bytes)}", at_once=True)
    if written.left_out:
        say(f"left out: {'; '.join(written.left_out)}", at_once=True)
    return written.path
