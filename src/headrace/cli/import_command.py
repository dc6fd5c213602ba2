"""The command `import`: files of EDSL's become run files, studies and lists. Does not cover: how (edsl_files)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_edsl(
    source: Annotated[Path, typer.Argument(help="What EDSL saved: a .json, .json.gz, .jsonl or .ep file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="x.run for results and jobs, x.yaml for studies, x.csv for lists; else beside SOURCE.",
        ),
    ] = None,
) -> None:
    """Make a file of Headrace's from one that EDSL saved. Results become a run file that can be asked questions; a job
    or a survey becomes a study (.yaml), or a run file that is ready to run (-o x.run); lists become .jsonl, .csv or
    .yaml.
    """
    from headrace.cli.terminal import own_command, path_text, say, seen_from_here
    from headrace.edsl_files.file_import import import_file

    made = import_file(source, output)
    made.notes.warn()
    path = seen_from_here(made.path)
    say(f"imported {path_text(source)} to {path}: {made.told}")
    if made.is_ready_to_run:
        say(f"run it: {own_command()} resume {path}")
    elif made.option:
        say(f"use them: {own_command()} run SURVEY {made.option} {path}")
    elif made.path.suffix.lower() in (".yaml", ".yml", ".json"):
        say(f"run it: {own_command()} run {path}")
    else:
        say(f"look at them: {own_command()} results {path}")
