"""The `headrace` command: which commands there are, and where they start.

A module that declares commands imports little, for `headrace --help` loads all of them: what a command needs is
imported inside it. Does not cover: errors and exit codes (cli.error_messages).
"""

from __future__ import annotations

import io
import shutil
import sys
from typing import Annotated

import typer

from headrace.cli.error_messages import with_error_messages
from headrace.cli.file_commands import copy, results, runs, verify
from headrace.cli.first_steps import demo, doctor
from headrace.cli.log_lines import show_log_lines
from headrace.cli.mapping import map_rows
from headrace.cli.options import DEBUG
from headrace.cli.run_commands import resume, run
from headrace.cli.steering_commands import pause, status, stop, tune

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
    "results": results,
    "runs": runs,
    "copy": copy,
    "verify": verify,
}
for name, command in COMMANDS.items():
    app.command(name)(with_error_messages(command))


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"headrace {version('headrace')}")
        raise typer.Exit


@app.callback()
def headrace(
    debug: Annotated[bool, typer.Option(DEBUG, help="Show where an error came from. May stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""
    del debug, version  # cli.error_messages looks for the first, wherever it stands; the second has done its work


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what the locale has no letters for is told all the same
    show_log_lines()
    words = [word for word in sys.argv[1:] if word != DEBUG]
    # As wide as the terminal is: left alone, help is never narrower than 50 columns.
    app(words, prog_name="headrace", terminal_width=min(80, shutil.get_terminal_size().columns))
