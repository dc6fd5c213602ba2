"""Adapts output to the terminal: its letters, paths as typed there, and the command to type next.

Does not cover: its width and colours (cli.rich_terminal), tables (tables) or pictures (cli.demo.pictures).
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, TextIO

import msgspec

from headrace.display import visible
from headrace.results.export.json_values import to_json


def showable(value: Any, longest: int, encoding: str) -> str:
    """A value on one line, without control characters, in letters that the terminal has."""
    text = to_json(value).decode() if isinstance(value, (list, dict)) else str(value)
    text = visible(" ".join(text[: 4 * longest].split()))
    text = text if len(text) <= longest else text[: longest - 3] + "..."
    return text.encode(encoding, "backslashreplace").decode(encoding)


def say(line: str, *, on_error: bool = False, at_once: bool = False) -> None:
    """Prints a line on standard output or standard error, without control characters: names in it may be anybody's.

    `at_once` where the command goes on: in a pipe or a file, Python would keep the line until its end.
    """
    print(visible(line), file=sys.stderr if on_error else sys.stdout, flush=at_once)


def print_data_as_utf8() -> None:
    """Makes standard output UTF-8 whatever the locale: programs read CSV and JSON."""
    stream: TextIO = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")


def print_json(value: Any, *, on_one_line: bool = False) -> None:
    print_data_as_utf8()
    encoded = msgspec.json.encode(value)
    print((encoded if on_one_line else msgspec.json.format(encoded)).decode(), flush=on_one_line)


def path_text(path: Path) -> str:
    """A path as text that any encoding of Unicode can hold; bytes that are none are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")


def seen_from_here(path: Path) -> str:
    """A path as it is typed in a shell, short where it lies below the current directory. It is safe to show: what would
    steer the terminal, or begin another line, is written as an escape that the shell reads.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # removed while we were in it
        return _typed(str(path))
    return _typed(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _typed(name: str) -> str:
    """A name as a word of a shell's: plain, in quotes, or as `$'a\\x1b[8m.run'` (bash, zsh)."""
    if not any(map(_needs_escape, name)):
        return shlex.quote(name)
    return "$'" + "".join(_escape(letter) if _needs_escape(letter) else letter for letter in _in_quotes(name)) + "'"


def _needs_escape(letter: str) -> bool:
    return letter in "\t\n" or visible(letter) != letter


def _in_quotes(name: str) -> str:
    return name.replace("\\", r"\\").replace("'", r"\'")


def _escape(letter: str) -> str:
    """The letter's bytes: a shell may not know the letter, and a name need not be UTF-8."""
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(letter))


def own_command() -> str:
    """The command that calls this program again from here: `headrace` where that is this one, else its path."""
    called, found = Path(sys.argv[0]).absolute(), shutil.which("headrace")
    if found and (called == Path(found) or Path(found).resolve().parent == Path(sys.executable).parent):
        return "headrace"
    return seen_from_here(called) if called.name == "headrace" else f"{own_python()} -m headrace"


def own_python() -> str:
    return seen_from_here(Path(sys.executable))
