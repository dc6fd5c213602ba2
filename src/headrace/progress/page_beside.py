"""Starts a page beside a run (`view=True`) and shows its address: a line on standard error, a link in a notebook.

The page is a process of its own, one for a program however many runs it shows, and ends with the program, however that
ends: its standard input is a pipe that the system closes. It detaches itself, so that its memory is none of the
run's. Does not cover: the page (headrace.web), or its command (`headrace view`).
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

from headrace.display import visible
from headrace.progress.notebook import is_notebook

_ROOT = str(Path(__file__).parents[2])
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from headrace.web.beside import main; main()"
_ADDRESS_WITHIN_S = 30.0
_log = logging.getLogger("headrace")


class PageBeside:
    """The page's process. It is told paths, a line each, and answers each with the address where that run is shown."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the run
        )
        self._pid = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Not in a fork: two processes would read each other's answers."""
        return self._pid == os.getpid()

    def address_of(self, path: Path) -> str | None:
        """Where the run is shown; None where no page answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(os.fsdecode(path)).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return None
        ready, _, _ = select.select([self._process.stdout], [], [], _ADDRESS_WITHIN_S)
        line = self._process.stdout.readline() if ready else b""
        self._process.poll()  # what was started has detached itself and ended
        return line.decode().strip() or None

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


_beside: PageBeside | None = None
_starting = threading.Lock()


def show_page(path: Path, address: str | None) -> None:
    """Say where a run is shown. It goes on without its page where none can be had."""
    if address is None:
        shown = visible(str(path))
        _log.warning("No page could be started beside %s. Look at it with: headrace view %s", shown, shown)
    elif is_notebook():
        link = {"text/plain": address, "text/html": f'<a href="{address}" target="_blank">The page of this run</a>'}
        import_module("IPython.display").display(link, raw=True)
    else:
        print(f"page: {address}", file=sys.stderr)  # noqa: T201 - it was asked for


def page_address(path: Path) -> str | None:
    """Have the program's page show a run, and start the page where there is none; None where that cannot be done."""
    global _beside  # noqa: PLW0603 - one page for a program, like one standard error
    with _starting:
        if _beside is not None and _beside.is_ours and (address := _beside.address_of(path)):
            return address
        if _beside is not None and _beside.is_ours:
            _beside.close()
        try:
            _beside = PageBeside()
        except OSError:
            return None
        return _beside.address_of(path)
