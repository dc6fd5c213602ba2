"""The commands on run files: `results`, `export`, `runs`, `copy`, `merge`, `compact` and `verify`.

Does not cover: what is printed (cli.output, cli.run_files, cli.made_files, cli.damage_report).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import (
    Agg,
    EscapeFormulas,
    GroupBy,
    Json,
    Limit,
    RunFileArguments,
    Select,
    Sort,
    Timeout,
    Totals,
    Where,
)
from headrace.errors import OptionError


def results(
    paths: RunFileArguments,
    select: Select = "*",
    where: Where = None,
    group_by: GroupBy = None,
    agg: Agg = None,
    sort: Sort = None,
    limit: Limit = None,
    timeout: Timeout = None,
    totals: Totals = False,
    sql: Annotated[str | None, typer.Option(help="Ask in SQL instead: select mood, count(*) from self ...")] = None,
    format: Annotated[str | None, typer.Option(help="table, csv, jsonl, markdown or parquet.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Into this file, whole or not at all.")] = None,
    escape_formulas: EscapeFormulas = False,
    failed: Annotated[bool, typer.Option("--failed", help="Only the questions without an answer, and why.")] = False,
) -> None:
    """Print the results in run files."""
    from headrace.cli.output import Layout, show_failed, show_results
    from headrace.cli.queries import Query

    layout = Layout(format, output, escape_formulas=escape_formulas)
    if failed:
        if select != "*" or sort or sql or group_by or agg or totals:
            raise OptionError("--failed has columns and an order of its own.", fix="Leave --select and --sort out.")
        show_failed(paths, where=where, limit=limit, layout=layout)
    else:
        query = Query(
            select=select,
            where=where,
            group_by=group_by,
            agg=tuple(agg or ()),
            sort=sort,
            limit=limit,
            sql=sql,
            totals=totals,
            timeout_s=timeout,
        )
        show_results(paths, query, layout)


def export(
    paths: RunFileArguments,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file: x.csv, x.parquet and so on; else named like the run file."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="csv, jsonl, parquet, xlsx, sqlite, markdown, html or edsl; by default what the file's name says."
        ),
    ] = None,
    select: Select = "*",
    where: Where = None,
    group_by: GroupBy = None,
    agg: Agg = None,
    sort: Sort = None,
    limit: Limit = None,
    timeout: Timeout = None,
    totals: Totals = False,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Write results into a file of another kind, whole or not at all."""
    from headrace.cli.output import export_results
    from headrace.cli.queries import Query

    query = Query(
        select=select,
        where=where,
        group_by=group_by,
        agg=tuple(agg or ()),
        sort=sort,
        limit=limit,
        totals=totals,
        timeout_s=timeout,
    )
    export_results(paths, query, output, format, escape_formulas=escape_formulas)


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
        bool,
        typer.Option("--without-log", help="Take what there is where RUN-wal is lost or damaged: rows are missing."),
    ] = False,
) -> None:
    """Copy a run file, also while it is written, as one whole file."""
    from headrace.cli.made_files import copy_run

    copy_run(path, target, without_log=without_log)


def merge(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Two run files of one survey, or more.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The new run file. Nothing may be there.")],
    json: Json = False,
) -> None:
    """Make one run file of several of the same survey."""
    from headrace.cli.made_files import merge_runs

    merge_runs(paths, output, as_json=json)


def compact(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run file or an engine's file.")],
    drop_damaged: Annotated[
        bool,
        typer.Option("--drop-damaged", help="Leave out what verify finds damaged; the file is kept as it was, too."),
    ] = False,
) -> None:
    """Make a file smaller by writing it anew, while nothing runs it."""
    from headrace.cli.made_files import compact_run

    compact_run(path, drop_damaged=drop_damaged)


def verify(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run file or an engine's file.")], json: Json = False
) -> None:
    """Look through a whole file for damage."""
    from headrace.cli.damage_report import show_verified

    show_verified(path, as_json=json)
