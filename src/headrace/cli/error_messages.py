"""The command's messages on standard error: errors, with the exit code that each becomes, and what the library logs.

Covers: users' mistakes, Ctrl-C, closed pipes, our own faults. An error that names options of a run carries the words
that the command has for them (errors.Spelled).

Exit codes: 0 done; 1 an error, with a message; 2 a command that cannot be read; 3 done, and some interviews failed;
4 stopped at --max-cost or --max-tokens-total, resumable; 130 stopped by Ctrl-C, resumable.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import select
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from headrace.cli.options import BUDGET_SPENT, DEBUG, INTERRUPTED
from headrace.display import visible
from headrace.errors import BudgetSpent, HeadraceError, HeadraceWarning, Interrupted

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def exit_with(code: int) -> Generator[None]:
    """Run the block, which prints, then end the command with this code, also where the output has no reader any more or
    its disk is full. With 0 the command goes on behind the block.
    """
    try:
        yield
    except OSError as error:
        if not code or error.errno not in {errno.EPIPE, *_NO_ROOM}:
            raise
        _give_up_output(error)
    if code:
        raise typer.Exit(code)


def with_error_messages(command: Callable[..., None]) -> Callable[..., None]:
    """Makes the command print its errors and exit with their codes. The app itself would swallow some of them."""

    @functools.wraps(command)
    def wrapped(*words: object, **options: object) -> None:
        try:
            command(*words, **options)
            print(end="", flush=True)  # a pipe that closed must show itself here, not at the interpreter's end
        except Interrupted as stopped:
            print(visible(_how_to_go_on(stopped)), file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:  # of a command that has nothing to go on with
            _discard_output()
            raise typer.Exit(INTERRUPTED) from None
        except BudgetSpent as spent:
            print(spent.at_command, file=sys.stderr)
            raise typer.Exit(BUDGET_SPENT) from None
        except HeadraceError as error:
            _print_error(error)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            if not _has_no_reader():
                raise  # some other pipe
            _discard_output()  # its reader, `head` for instance, has seen enough
        except (typer.Exit, typer.Abort):
            raise
        except OSError as error:
            if error.errno not in _NO_ROOM:
                _print_fault()
            else:  # run files say it themselves (StorageFull): this is where our output went
                _give_up_output(error)
            raise typer.Exit(1) from None
        except Exception:  # noqa: BLE001 - the last place where it can be reported
            _print_fault()
            raise typer.Exit(1) from None

    return wrapped


def _how_to_go_on(stopped: Interrupted) -> str:
    from headrace.cli.terminal import own_command, seen_from_here

    if not stopped.path.exists():
        return "Stopped before the run file was made; the same command starts again."
    path = seen_from_here(stopped.path)
    saved = f"{stopped.done:,} of {stopped.total:,} interviews are saved in {path}; " if stopped.total else ""
    return f"Stopped. {saved}go on with: {own_command()} resume {path}"


def _print_error(error: HeadraceError) -> None:
    if DEBUG in sys.argv:
        import traceback

        print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    print(visible(f"headrace: {_unsaid(error.at_command)}"), file=sys.stderr)


def _unsaid(words: str) -> str:
    """What of an error's words the last log record has not said: a refused model is logged when it is refused, and may
    end the run at once.
    """
    handlers = logging.getLogger("headrace").handlers
    last = next((handler.last for handler in handlers if isinstance(handler, LogHandler)), "")
    return words.removeprefix(last).lstrip() or words


def _print_fault() -> None:
    import traceback

    print(visible(traceback.format_exc()), end="", file=sys.stderr)
    print("headrace: this is a fault of Headrace, not yours. Please report the lines above.", file=sys.stderr)


@contextmanager
def written_to_the_end() -> Generator[None]:
    """Around the command: what is left is written at the end, or discarded where that is not possible: the exit code
    stays what the command made it.
    """
    try:
        yield
    except OSError as error:  # of what the framework itself prints, such as help
        if error.errno not in _NO_ROOM:
            raise
        _give_up_output(error)
        raise SystemExit(1) from None
    finally:
        _end_output()


def _end_output() -> None:
    try:
        print(end="", flush=True)
    except OSError as error:
        _give_up_output(error)
    except KeyboardInterrupt:  # its reader takes nothing
        _discard_output()


def _give_up_output(error: OSError) -> None:
    _discard_output()
    if error.errno in _NO_ROOM:
        try:
            print(f"headrace: the output cannot be written: {error.strerror}. Make room.", file=sys.stderr)
        except OSError:  # both streams go to the full disk
            _discard(sys.stderr)


def _discard_output() -> None:
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    """Sends a stream to nowhere: the interpreter would try to write the rest, and complain, when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _has_no_reader() -> bool:
    """Tells whether standard output is a pipe whose reader has closed it."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in output.poll(0))


class LogHandler(logging.Handler):
    """Prints log records on standard error as it is at that moment: above a progress line where one is drawn. `last` is
    the latest one.
    """

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
        with suppress(OSError, ValueError):  # it was closed: the run goes on
            print(f"headrace: {visible(self.last)}", file=sys.stderr, flush=True)


_python_shows = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Prints a warning of ours as a message: the line of a program that it names is the command's own."""
    if issubclass(category, HeadraceWarning):
        print(f"headrace: {visible(str(message))}", file=sys.stderr, flush=True)
    else:
        _python_shows(message, category, *place, **more)


def show_log_records() -> None:
    """Prints what the library logs and warns of from now on, also where standard error is a pipe."""
    warnings.showwarning = _show_warning
    logger = logging.getLogger("headrace")
    if not any(isinstance(handler, LogHandler) for handler in logger.handlers):
        logger.addHandler(LogHandler(logging.INFO))
        logger.setLevel(logging.INFO)
