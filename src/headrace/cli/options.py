"""Options that several commands share, and the exit codes. Does not cover: the commands (cli.main lists them)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SOME_FAILED = 3
INTERRUPTED = 130

WATCH_EVERY_S = 1.0

RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Memory = Annotated[str | None, typer.Option(help='A budget: "512MB", "60%" of the machine, or "+512MB" on top.')]
Concurrency = Annotated[int, typer.Option(min=1, help="How many interviews may be in flight.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many interviews of the plan.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask again where an answer was not valid.")]
