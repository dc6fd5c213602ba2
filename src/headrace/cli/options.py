"""The options that several commands share, each declared once, and the exit codes.

`RunFlags` has those of `run`, `map` and `resume`; `with_run_flags` gives them to a command.
Does not cover: the commands (cli.main lists them).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

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


ROWS = "a .csv, .jsonl, .parquet, .xlsx or .db file, a pattern for many, an address, or -"
Delimiter = Annotated[str | None, typer.Option(help="What separates the cells of CSV files; by default it is found.")]
Encoding = Annotated[str | None, typer.Option(help="The encoding of CSV files: cp1252. By default UTF-8.")]
TableName = Annotated[
    str | None, typer.Option("--table", help="Which sheet of a workbook, or table of an SQLite file.")
]
RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
RunFileArguments = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="A run file. Several, of one survey, are read as one.")
]
Select = Annotated[str, typer.Option(help="Columns, with commas between: agent.age,answer.*")]
Where = Annotated[str | None, typer.Option(help="Only where this holds: answer.rating > 5")]
GroupBy = Annotated[
    str | None, typer.Option(help="A row for each group that is equal in these columns: agent.city,answer.mood")
]
Agg = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=EXPRESSION", help='What to compute of each group: "m=mean(answer.rating)". Repeatable.'),
]
Sort = Annotated[
    str | None,
    typer.Option("--sort", "--sort-by", help="Columns to sort by, with commas between; -agent.age: from the largest."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many.")]
Timeout = Annotated[
    float | None,
    typer.Option(min=0.001, metavar="SECONDS", help="How long the next rows may take; a minute by default."),
]
Totals = Annotated[bool, typer.Option("--totals", help="The totals that the run was asked to keep with --aggregate.")]
EscapeFormulas = Annotated[
    bool,
    typer.Option("--escape-formulas", help="In CSV for a spreadsheet: ' before a text that is a formula there."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """How a job is run, as typed: the options of `run`, `map` and `resume`, in the order in which help lists them."""

    model: Annotated[
        list[str] | None,
        typer.Option(help="A model: gpt-4o,temperature=0.2. Repeatable.", metavar="MODEL"),
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run file; by default one named by the job.")
    ] = None
    memory: Annotated[
        str | None, typer.Option(help='A budget: "512MB", "60%" of the machine, or "+512MB" on top; none: the default.')
    ] = None
    concurrency: Annotated[
        int | None,
        typer.Option(parser=_count, metavar="N", help="How many interviews may be in flight; none: 200."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(parser=_workers, metavar="N", help="How many processes conduct the interviews; 0 for this one."),
    ] = None
    on: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER", help="Run on a Ray cluster: ray is this host's, host:6379 or ray://host:10001 another."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many interviews of the plan.")] = None
    sample: Annotated[
        int | None, typer.Option(min=1, help="Only so many interviews, chosen at random from the plan.")
    ] = None
    seed: Annotated[int, typer.Option(help="Which sample: the same seed chooses the same interviews.")] = 0
    n: Annotated[int | None, typer.Option("--n", min=1, help="How often each interview is asked.")] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            parser=_amount,
            metavar="DOLLARS",
            help="Stop, resumably, before more dollars than this are spent; none: no limit.",
        ),
    ] = None
    max_tokens_total: Annotated[
        int | None,
        typer.Option(parser=_count, metavar="N", help="Stop, resumably, before more tokens are used; none: no limit."),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="everything, answers (no prompts, no raw responses) or nothing (totals only)."
        ),
    ] = None
    aggregate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FUNCTION", help="A total to keep: mean=mean(answer.rating). Repeatable."),
    ] = None
    group_by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Group the totals by this column. Repeatable.")
    ] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not use the replies that earlier runs paid for.")] = (
        False
    )
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over; the old file is kept under another name.")] = False
    extend: Annotated[bool, typer.Option("--extend", help="The lists grew at their end.")] = False
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again where an answer was not valid.")] = (
        False
    )
    embed: Annotated[bool, typer.Option("--embed", help="Keep the files that prompts send in the run file too.")] = (
        False
    )
    telemetry: Annotated[
        bool, typer.Option("--telemetry", help="Export spans and metrics by OTLP, as OTEL_* variables say.")
    ] = False
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Let a file from elsewhere use this address, key or model file. Repeatable."),
    ] = None
    log: Annotated[bool, typer.Option("--log", help="Progress as a plain line a minute, also into a file.")] = False
    lines: Annotated[bool, typer.Option("--lines", help="Progress in several lines.")] = False
    view: Annotated[bool, typer.Option("--view", help="Show the run in a browser; it prints the address.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and estimate; run nothing.")] = False
    json: Json = False


def with_run_flags(*, without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of RunFlags, except those named in `without`, as its keyword `flags`."""
    left_out = frozenset(without.split())
    types = get_type_hints(RunFlags, include_extras=True)
    shared = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name])
        for field in fields(RunFlags)
        if field.name not in left_out
    ]
    names = {parameter.name for parameter in shared}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            flags = RunFlags(**{name: given.pop(name) for name in names})
            command(**given, flags=flags)

        written = signature(command, eval_str=True)
        own = [parameter for name, parameter in written.parameters.items() if name != "flags"]
        # typer reads both.
        wrapped.__signature__ = Signature([*own, *shared], return_annotation=None)  # pyright: ignore[reportAttributeAccessIssue]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
        return wrapped

    return decorate
