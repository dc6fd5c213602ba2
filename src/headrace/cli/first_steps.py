"""What a new user types first: `demo` and `doctor`. Does not cover: what they do (cli.demo, cli.doctor)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json


def demo(
    size: Annotated[int, typer.Option(min=1, help="How many interviews; a large job draws its memory.")] = 600,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The run file; by default demo.run among the others, made anew each time."),
    ] = None,
    people: Annotated[
        bool, typer.Option("--people", help="Ask a real model on this machine, some 60 interviews; no key, no network.")
    ] = False,
) -> None:
    """Run a small survey and show its answers. The test model is asked, or with --people a real one on this machine."""
    from headrace.cli.demo.demo_run import run_demo

    if people:
        from headrace.cli.demo.people import people as subject
    else:
        from headrace.cli.demo.moods import moods as subject
    run_demo(subject(), size, output)


def doctor(json: Json = False) -> None:
    """Say what is installed and which limits hold here."""
    from headrace.cli.doctor.report import show_report

    if show_report(as_json=json):
        raise typer.Exit(1)
