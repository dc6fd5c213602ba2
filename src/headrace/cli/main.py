"""The `headrace` command: where it starts, and how errors become messages and exit codes.

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
130 stopped by Ctrl-C, resumable.
"""

from __future__ import annotations

import sys

# Declares the commands, in the order `--help` lists them.
from headrace.cli import first_steps, running, watching, reading  # noqa: F401, I001
from headrace.cli.app import INTERRUPTED, app
from headrace.errors import HeadraceError, Interrupted


def main() -> None:
    try:
        app()
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough; the interpreter must not complain at exit.
        sys.stdout = None
        sys.exit(0)
