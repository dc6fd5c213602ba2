"""The command `view`: the page in a browser.

Does not cover: the page itself (web).
"""

from __future__ import annotations

import webbrowser
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
) -> None:
    """Show runs in a browser, live."""
    from headrace.cli.terminal import say
    from headrace.web.serving import serve

    def show_address(address: str) -> None:
        say(address)
        if open_browser:
            webbrowser.open(address)

    serve(places, host=host, port=port, can_steer=not no_steering, on_ready=show_address)
