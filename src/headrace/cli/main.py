"""The `headrace` command: where it starts, which commands it has, and the two that a new user types first.

A module that declares commands imports little, for `headrace --help` loads all of them: what a command needs is
imported inside it. Does not cover: errors and exit codes (cli.error_messages).
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.error_messages import show_log_records, with_error_messages, written_to_the_end
from headrace.cli.file_commands import compact, copy, export, merge, results, runs, verify
from headrace.cli.import_command import import_edsl
from headrace.cli.job_commands import map_rows, resume, run
from headrace.cli.options import DEBUG, Json
from headrace.cli.plot_command import plot
from headrace.cli.steering_commands import pause, status, stop, tune
from headrace.cli.top.top_command import top
from headrace.cli.view_command import view


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


def doctor(
    json: Json = False,
    ray: Annotated[bool, typer.Option("--ray", help="Ask the nodes of the Ray cluster too, each for itself.")] = False,
) -> None:
    """Say what is installed and which limits hold here."""
    from headrace.cli.doctor.report import show_report

    show_report(as_json=json, with_cluster=ray)


# Plain help: with markup it would load a Markdown parser, 80 ms, and draw boxes that a narrow terminal breaks.
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
COMMANDS = {
    "demo": demo,
    "doctor": doctor,
    "run": run,
    "map": map_rows,
    "resume": resume,
    "pause": pause,
    "tune": tune,
    "stop": stop,
    "status": status,
    "view": view,
    "top": top,
    "results": results,
    "export": export,
    "import": import_edsl,
    "plot": plot,
    "runs": runs,
    "copy": copy,
    "merge": merge,
    "compact": compact,
    "verify": verify,
}
for name, command in COMMANDS.items():
    # Its first sentence, given as such: left alone, a narrow terminal would see half of it.
    summary = " ".join((command.__doc__ or "").split()).partition(". ")[0].rstrip(".")
    app.command(name, short_help=f"{summary}.")(with_error_messages(command))


def _show_version(asked: bool) -> None:
    if asked:
        _print_version()
        raise typer.Exit


@with_error_messages
def _print_version() -> None:
    from importlib.metadata import version

    print(f"headrace {version('headrace')}")


@app.callback()
def headrace(
    debug: Annotated[bool, typer.Option(DEBUG, help="Show where an error came from. May stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""
    del debug, version  # cli.error_messages looks for the first, wherever it stands; the second has a callback


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # letters that the locale lacks are printed as escapes
    show_log_records()
    words = [word for word in sys.argv[1:] if word != DEBUG]
    # As wide as the terminal is: left alone, help is never narrower than 50 columns.
    with written_to_the_end():
        app(words, prog_name="headrace", terminal_width=min(80, shutil.get_terminal_size().columns))
