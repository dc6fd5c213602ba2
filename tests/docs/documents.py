"""Documents as tests read them: their sections, tables, files and terminal sessions. Covers: reading, and running.

A file is a code block after its name in a line of its own, "`people.csv`:". A session is a `console` block: `$` begins
a command, what follows is what it prints, and `$ echo $?` shows the code it exits with, which is otherwise 0. In what
is shown, `...` stands for any text, in a line of its own for any lines, and sizes and times for any size and time. A
block after a `<!-- not run: why -->` line is not run.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.forks import Forks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What may differ from one run to the next: sizes, times, the width of a column.
_VARIES = re.compile(r"\.\.\.|\bnow\b|\d[\d,.]* (?:B|KB|MB|GB|s|interviews/s)(?!\w)|─+| +")


class Command(NamedTuple):
    words: str
    shown: str
    exit_code: int


class Section(NamedTuple):
    title: str
    text: str


def sections(document: str) -> list[Section]:
    """The parts under a heading of the second level; what stands before the first has no title."""
    before, *rest = _SECTION.split(document)
    return [Section("", before), *map(Section, rest[::2], rest[1::2])]


def tables(text: str) -> list[list[list[str]]]:
    """Each table's rows of cells, without its head."""
    found = re.findall(r"^\|.+\n\|[-|]+\n((?:\|.*\n)*)", text + "\n", re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()] for rows in found]


def code_names(text: str) -> list[str]:
    """The words in backquotes."""
    return re.findall(r"`([^`\n]+)`", text)


def files(document: str) -> dict[str, str]:
    return dict(_FILE.findall(document))


def session(document: str) -> Iterator[Command]:
    """The commands to run, in order."""
    for is_left_out, block in _SESSION.findall(document):
        if not is_left_out:
            yield from _commands(block)


def _commands(block: str) -> Iterator[Command]:
    asked = re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]
    parts = [(words, shown) for words, _, shown in (each.partition("\n") for each in asked)]
    for (words, shown), (following, code) in zip(parts, [*parts[1:], ("", "")], strict=True):
        if words != "echo $?":
            yield Command(words, shown, int(code) if following == "echo $?" else 0)


def is_as_shown(printed: str, shown: str) -> bool:
    lines = [line.rstrip() + "\n" for line in printed.splitlines()]
    return re.fullmatch("".join(map(_pattern, shown.splitlines())), "".join(lines)) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    fixed = map(re.escape, _VARIES.split(line))
    varying = [_stands_for(found) for found in _VARIES.findall(line)]
    return "".join(part for pair in zip(fixed, [*varying, r"\n"], strict=True) for part in pair)


def _stands_for(found: str) -> str:
    match found[0]:
        case ".":
            return ".*"
        case "n":
            return r"(?:now|\d+ seconds?|\d+ minutes?)"
        case "─" | " ":
            return f"{found[0]}+"
        case _:
            return r"\d[\d,.]* (?:B|KB|MB|GB|TB|s|min \d+ s|interviews/s)"


def run_program(program: Path, directory: Path) -> str:
    command = [sys.executable, "-W", "error", str(program)]
    ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


class Shell:
    """Runs what users type, with `headrace` on the path as an installer puts it there.

    A command that was started for real once may be given to `forks` from then on.
    """

    def __init__(self, place: Path, work: Path, forks: Forks | None = None) -> None:
        self._real, self._forked = place / "bin" / "headrace", place / "forked" / "headrace"
        self._real.parent.mkdir()
        self._real.write_text(f"#!{sys.executable}\nfrom headrace.cli.main import main\n\nmain()\n", "utf-8")
        self._real.chmod(0o755)
        self._forks, self._work = forks, work
        self._started: set[str] = set()
        if forks is not None:
            self._forked.parent.mkdir()
            forks.write_client(self._forked)

    def _environment(self, words: str) -> dict[str, str]:
        commands = set(re.findall(r"\bheadrace ([a-z]+)", words))
        program = self._forked if self._forks is not None and commands <= self._started else self._real
        self._started |= commands
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}

    def run(self, words: str) -> tuple[int, str]:
        """The exit code, and everything printed, errors too, as a terminal shows it."""
        ran = subprocess.run(
            words, shell=True, cwd=self._work, env=self._environment(words), check=False, timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip
        return ran.returncode, ran.stdout
