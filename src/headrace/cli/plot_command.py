"""The command `plot`: a picture of a column of results, or of the memory of their run, in letters or as an SVG file.

Does not cover: the pictures (results.plots, charts).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import RunFileArgument
from headrace.errors import OptionError


def plot(
    path: RunFileArgument,
    column: Annotated[str | None, typer.Argument(metavar="[COLUMN]", help="What is drawn: answer.mood")] = None,
    by: Annotated[str | None, typer.Option(help="Split it by this column: agent.city")] = None,
    where: Annotated[str | None, typer.Option(help="Only where this holds: answer.rating > 5")] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Draw the memory of the run against its budget.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="An SVG file to write; by default it is drawn here.")
    ] = None,
) -> None:
    """Draw a column of the results, or the memory of their run."""
    if memory == (column is not None):
        raise OptionError("plot draws a column, or --memory.", fix="Write: headrace plot RUN answer.mood")
    if memory and (by or where):
        raise OptionError("--memory is of the whole run.", fix="Leave --by and --where out.")
    _show(path, column, by, where, output)


def _show(path: Path, column: str | None, by: str | None, where: str | None, output: Path | None) -> None:
    from headrace.cli.terminal import say, seen_from_here
    from headrace.results.results import Results

    with Results.open(path) as results:
        view = results.filter(where) if where else results
        drawn = view.plot_memory() if column is None else view.plot(column, by=by)
    if output is None:
        print(drawn)
    else:
        drawn.save(output)
        say(f"drew {seen_from_here(path)} in {seen_from_here(output)}")
