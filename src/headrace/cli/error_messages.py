"""How a command's errors become messages and exit codes. Covers: users' mistakes, Ctrl-C, closed pipes, our own faults.

Errors that name options of a run carry the command's own words for them (errors.Spelled).

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
4 stopped at --max-cost or --max-tokens-total, resumable; 130 stopped by Ctrl-C, resumable.
"""

from __future__ import annotations

import errno
import functools
import os
import select
import sys
from collections.abc import Callable

import typer

from headrace.cli.options import BUDGET_SPENT, DEBUG, INTERRUPTED
from headrace.display import visible
from headrace.errors import BudgetSpent, HeadraceError, Interrupted

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def with_error_messages(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors told in words. Here and not around the app, which swallows some of them."""

    @functools.wraps(command)
    def wrapped(*words: object, **options: object) -> None:
        try:
            command(*words, **options)
            print(end="", flush=True)  # a pipe that closed must show itself here, not at the interpreter's end
        except Interrupted as stopped:
            print(visible(_how_to_go_on(stopped)), file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BudgetSpent as spent:
            print(spent.at_command, file=sys.stderr)
            raise typer.Exit(BUDGET_SPENT) from None
        except HeadraceError as error:
            _tell_mistake(error)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            if not _has_no_reader():
                raise  # some other pipe
            _discard_output()  # whoever read it, `head` for instance, has seen enough
        except (typer.Exit, typer.Abort):
            raise
        except OSError as error:
            if error.errno not in _NO_ROOM:
                _tell_fault()
            else:  # run files say it themselves (StorageFull): this is where our output went
                print(f"headrace: the output cannot be written: {error.strerror}. Make room.", file=sys.stderr)
                _discard_output()
            raise typer.Exit(1) from None
        except Exception:  # noqa: BLE001 - the last place where it can be told
            _tell_fault()
            raise typer.Exit(1) from None

    return wrapped


def _how_to_go_on(stopped: Interrupted) -> str:
    from headrace.cli.terminal import own_command, seen_from_here

    if not stopped.path.exists():
        return "Stopped before the run file was made; the same command starts again."
    path = seen_from_here(stopped.path)
    saved = f"{stopped.done:,} of {stopped.total:,} interviews are saved in {path}; " if stopped.total else ""
    return f"Stopped. {saved}go on with: {own_command()} resume {path}"


def _tell_mistake(error: HeadraceError) -> None:
    if DEBUG in sys.argv:
        import traceback

        print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    print(visible(f"headrace: {error.at_command}"), file=sys.stderr)


def _tell_fault() -> None:
    import traceback

    print(visible(traceback.format_exc()), end="", file=sys.stderr)
    print("headrace: this is a fault of Headrace, not yours. Please report the lines above.", file=sys.stderr)


def _discard_output() -> None:
    """What could not be written would be tried again, and complained about, when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _has_no_reader() -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in output.poll(0))
