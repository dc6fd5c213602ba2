"""Options that several commands share, and the exit codes. Does not cover: the commands (cli.main lists them)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from headrace.units import NONE

SOME_FAILED = 3
BUDGET_SPENT = 4
INTERRUPTED = 130
DEBUG = "--debug"

WATCH_EVERY_S = 1.0

_Number = TypeVar("_Number", int, float)


def _count(text: str) -> int | str:
    """A whole number, or `none` to lift the budget that the run file keeps."""
    return NONE if text.lower() == NONE else _number(text, int, "a whole number from 1 on")


def _workers(text: str) -> int | str:
    if text == "0" or text.lower() == NONE:
        return 0 if text == "0" else NONE
    return _number(text, int, "a whole number from 0 on")


def _amount(text: str) -> float | str:
    """A number, or `none`."""
    return NONE if text.lower() == NONE else _number(text, float, "a number above 0")


def _number(text: str, kind: Callable[[str], _Number], what: str) -> _Number:
    try:
        number = kind(text)
    except ValueError:
        number = kind("0")
    if not number > 0:
        raise typer.BadParameter(f"{text!r} is neither {what} nor none.")
    return number


RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Memory = Annotated[
    str | None, typer.Option(help='A budget: "512MB", "60%" of the machine, or "+512MB" on top; none: the default.')
]
Concurrency = Annotated[
    int | None,
    typer.Option(parser=_count, metavar="N", help="How many interviews may be in flight; none: 200."),
]
Workers = Annotated[
    int | None,
    typer.Option(parser=_workers, metavar="N", help="How many processes conduct the interviews; 0 for this one."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many interviews of the plan.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask again where an answer was not valid.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Only so many interviews, chosen at random from the plan.")]
Seed = Annotated[int, typer.Option(help="Which sample: the same seed chooses the same interviews.")]
Iterations = Annotated[int | None, typer.Option("--n", min=1, help="How often each interview is asked.")]
MaxCost = Annotated[
    float | None,
    typer.Option(
        parser=_amount,
        metavar="DOLLARS",
        help="Stop, resumably, before more dollars than this are spent; none: no limit.",
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens-total",
        parser=_count,
        metavar="N",
        help="Stop, resumably, before more tokens are used; none: no limit.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not use the replies that earlier runs paid for.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over; the old file is kept under another name.")]
Extend = Annotated[bool, typer.Option("--extend", help="The lists grew at their end.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count and estimate; run nothing.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="The run file; by default one named by the job.")]
Models = Annotated[
    list[str] | None,
    typer.Option(help="A model: gpt-4o,temperature=0.2. Repeatable.", metavar="MODEL"),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Let a file from elsewhere use this address, key or model file. Repeatable."),
]
Log = Annotated[bool, typer.Option("--log", help="Progress as a plain line a minute, also into a file.")]
Lines = Annotated[bool, typer.Option("--lines", help="Progress in several lines.")]
