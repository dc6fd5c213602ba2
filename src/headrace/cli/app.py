"""The command's frame: the app that commands register with, options that several share, and exit codes.

A module that declares commands imports little: `headrace --help` loads all of them. What a command needs is imported
inside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
SOME_FAILED = 3
INTERRUPTED = 130

RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Memory = Annotated[str | None, typer.Option(help='A budget: "512MB", "60%" of the machine, or "+512MB" on top.')]
Concurrency = Annotated[int, typer.Option(min=1, help="How many interviews may be in flight.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many interviews of the plan.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask again where an answer was not valid.")]


@app.callback()
def headrace() -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""
