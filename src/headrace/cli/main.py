"""The `headrace` command. Covers: reading arguments and turning errors into messages and exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headrace.errors import HeadraceError, Interrupted

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
_INTERRUPTED = 130


@app.callback()
def headrace() -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""


@app.command()
def demo(
    size: Annotated[int, typer.Option(min=1, help="How many interviews to run.")] = 600,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Keep the run file here; by default it is a temporary one."),
    ] = None,
) -> None:
    """Run a small survey with the test model and show its answers and its memory."""
    from headrace.cli.demo import run_demo

    run_demo(size, output)


def main() -> None:
    try:
        app()
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(1)
