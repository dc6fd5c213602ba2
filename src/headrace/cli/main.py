"""The `headrace` command: which commands there are, and how errors become messages and exit codes.

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
130 stopped by Ctrl-C, resumable. A module that declares commands imports little, for `headrace --help` loads all of
them: what a command needs is imported inside it.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from headrace.cli.first_steps import demo
from headrace.cli.mapping import map_rows
from headrace.cli.options import INTERRUPTED
from headrace.cli.reading import results, runs
from headrace.cli.running import resume, run
from headrace.cli.watching import status
from headrace.errors import HeadraceError, Interrupted

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
_DEBUG = "--debug"
COMMANDS = {
    "demo": demo,
    "run": run,
    "map": map_rows,
    "resume": resume,
    "status": status,
    "results": results,
    "runs": runs,
}
for name, command in COMMANDS.items():
    app.command(name)(command)


@app.callback()
def headrace(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from. May stand anywhere.")] = False,
) -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""
    del debug  # main() has read it: it must serve errors that are met before this is called


def main() -> None:
    words = sys.argv[1:]
    try:
        app([word for word in words if word != _DEBUG])
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except HeadraceError as error:
        if _DEBUG in words:
            traceback.print_exception(error)
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough; the interpreter must not complain at exit.
        sys.stdout = None
        sys.exit(0)
    except Exception:  # noqa: BLE001 - the last place it could be told at
        traceback.print_exc()
        print("headrace: this is a fault of Headrace, not yours. Please report the lines above.", file=sys.stderr)
        sys.exit(1)
