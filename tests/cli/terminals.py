"""Commands run in a real terminal of a given size, and without one. Covers: starting (in forks), typing, collecting."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

from tests.cli import forked
from tests.cli.forked import start

HEADRACE = (sys.executable, "-W", "error", "-m", "headrace")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UP = re.compile(r"\x1b\[\d*A")


class Shown(NamedTuple):
    raw: str
    returncode: int

    @property
    def lines(self) -> list[str]:
        """What was drawn, line by line; a line that was drawn over counts as one of its own."""
        return _ESCAPE.sub("", _UP.sub("\n", self.raw)).replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "", **more}


def in_terminal(*words: str, columns: int = 80, typed: str = "", cwd: Path | None = None, **env: str) -> Shown:
    """`headrace` with these words, in a terminal so many columns wide."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    started = start(cwd or Path.cwd(), words, environment(**env), [theirs, theirs, theirs])
    os.close(theirs)
    os.write(ours, typed.encode())
    raw = b""
    try:
        while chunk := _read(ours):
            raw += chunk
    finally:
        os.close(ours)
        code = started.wait()
    return Shown(raw.decode(errors="replace"), code)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other end is gone
        return b""


def headrace(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """`headrace` with these words, and no terminal. What Python reads when it starts needs a start."""
    if not any(name.startswith(("PYTHON", "LC_")) for name in env):
        return forked.headrace(cwd or Path.cwd(), *words, environment=environment(**env))
    return subprocess.run(
        [*HEADRACE, *words],
        cwd=cwd,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding=env.get("PYTHONIOENCODING") or "utf-8",
        check=False,
        timeout=60,
    )
