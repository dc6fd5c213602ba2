"""The commands that read run files: `results`, `runs`, `copy` and `verify`.

Does not cover: what is printed (cli.output, cli.run_files, cli.damage_report).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json, RunFileArgument
from headrace.errors import OptionError


def results(
    path: RunFileArgument,
    select: Annotated[str, typer.Option(help="Columns, with commas between: agent.age,answer.*")] = "*",
    where: Annotated[str | None, typer.Option(help="Only where this holds: answer.rating > 5")] = None,
    sort_by: Annotated[str | None, typer.Option(help="Columns to sort by, with commas between.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    format: Annotated[str, typer.Option(help="table, csv or jsonl.")] = "table",
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="In CSV for a spreadsheet: ' before a text that is a formula there."),
    ] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only the questions without an answer, and why.")] = False,
) -> None:
    """Print the results in a run file."""
    from headrace.cli.output import Layout, show_failed, show_results

    layout = Layout(format, escape_formulas=escape_formulas)
    if failed:
        if select != "*" or sort_by:
            raise OptionError("--failed has columns and an order of its own.", fix="Leave --select and --sort-by out.")
        show_failed(path, where=where, limit=limit, layout=layout)
    else:
        show_results(path, select=select, where=where, sort_by=sort_by, limit=limit, layout=layout)


def runs(
    remove: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="Delete this one, by name or path. May be repeated.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    json: Json = False,
) -> None:
    """List, size and remove the run files that have no path of their own."""
    from headrace.cli.run_files import remove_runs, show_runs

    if remove:
        remove_runs(remove, agreed=yes, as_json=json)
    else:
        show_runs(as_json=json)


def copy(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run file or an engine's file.")],
    target: Annotated[Path, typer.Argument(metavar="NEW", help="Where the copy goes. Nothing may be there.")],
    without_log: Annotated[
        bool, typer.Option("--without-log", help="Take what there is where RUN-wal is lost: rows are missing.")
    ] = False,
) -> None:
    """Copy a run file, also while it is written, as one whole file."""
    from headrace.cli.run_files import copy_run

    copy_run(path, target, without_log=without_log)


def verify(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run file or an engine's file.")], json: Json = False
) -> None:
    """Look through a whole file for damage."""
    from headrace.cli.damage_report import show_verified

    show_verified(path, as_json=json)
