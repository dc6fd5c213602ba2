"""The `headrace` command: which commands there are, and how errors become messages and exit codes.

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
130 stopped by Ctrl-C, resumable. A module that declares commands imports little, for `headrace --help` loads all of
them: what a command needs is imported inside it.
"""

from __future__ import annotations

import functools
import io
import os
import select
import shutil
import sys
from collections.abc import Callable

import typer

from headrace.cli.first_steps import demo, doctor
from headrace.cli.options import INTERRUPTED
from headrace.cli.reading import results, runs
from headrace.cli.running import resume, run
from headrace.cli.watching import status
from headrace.errors import HeadraceError, Interrupted

# Plain help: with markup it would load a Markdown parser, 80 ms, and draw boxes that a narrow terminal breaks.
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _told(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors told in words. Here and not around `app()`, which swallows some of them."""

    @functools.wraps(command)
    def telling(*words: object, **options: object) -> None:
        try:
            command(*words, **options)
            print(end="", flush=True)  # a pipe that closed must show itself here, not at the interpreter's end
        except Interrupted as stopped:
            print(stopped, file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except HeadraceError as error:
            print(f"headrace: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            if not _has_no_reader():
                raise  # some other pipe
            # Whoever read our output, `head` for instance, has seen enough; the interpreter must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return telling


def _has_no_reader() -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in output.poll(0))


for _command in (demo, doctor, run, resume, status, results, runs):
    app.command()(_told(_command))


@app.callback()
def headrace() -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what the locale has no letters for is told all the same
    # As wide as the terminal is: left alone, help is never narrower than 50 columns.
    app(prog_name="headrace", terminal_width=min(80, shutil.get_terminal_size().columns))
