"""What a new user types first: `demo` and `doctor`. Does not cover: what they do (cli.demo)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    size: Annotated[int, typer.Option(min=1, help="How many interviews to run.")] = 600,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the run file here; by default it is a temporary one.")
    ] = None,
) -> None:
    """Run a small survey with the test model and show its answers and its memory."""
    from headrace.cli.demo import run_demo

    run_demo(size, output)
