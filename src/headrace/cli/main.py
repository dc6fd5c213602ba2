"""The `headrace` command: which commands there are, and how errors become messages and exit codes.

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
130 stopped by Ctrl-C, resumable. A module that declares commands imports little, for `headrace --help` loads all of
them: what a command needs is imported inside it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

import typer

from headrace.cli.first_steps import demo
from headrace.cli.options import INTERRUPTED
from headrace.cli.reading import results, runs
from headrace.cli.running import resume, run
from headrace.cli.watching import pause, status, stop, tune
from headrace.errors import HeadraceError, Interrupted


def _telling_how_to_go_on(command: Callable[..., None]) -> Callable[..., None]:
    """A command that says what a Ctrl-C left; outside of it, typer would take the error for its own."""

    @functools.wraps(command)
    def told(*arguments: object, **options: object) -> None:
        try:
            command(*arguments, **options)
        except Interrupted as stopped:
            print(_how_to_go_on(stopped), file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return told


def _how_to_go_on(stopped: Interrupted) -> str:
    from headrace.cli.seen import seen_from_here

    if not stopped.path.exists():
        return "Stopped before the run file was made; the same command starts again."
    path = seen_from_here(stopped.path)
    saved = f"{stopped.done:,} of {stopped.total:,} interviews are saved in {path}; " if stopped.total else ""
    return f"Stopped. {saved}go on with: headrace resume {path}"


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
for command in (demo, run, resume, pause, tune, stop, status, results, runs):
    app.command()(_telling_how_to_go_on(command))


@app.callback()
def headrace() -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""


def main() -> None:
    try:
        app()
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough; the interpreter must not complain at exit.
        sys.stdout = None
        sys.exit(0)
