"""Runs of the command in processes of their own, which tests steer, interrupt and kill. None outlives its block.

They are forks in modules that use the fixture `forks`, where they keep this process's umask.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.interviews.steering.client import state_of
from headrace.interviews.steering.messages import StateReply
from tests.cli.forked import headrace
from tests.forks import PipedFork, serving
from tests.trouble.children import until

PATIENCE_S = 60
_PROGRAM = "from headrace.cli.main import main; main()"
SURVEY = "questions:\n  - {kind: free_text, name: q, text: 'Well?'}\n"


def command(*words: str) -> list[str]:
    return [sys.executable, "-W", "error", "-c", _PROGRAM, *words]


def told(place: Path, *words: str) -> Any:
    ended = headrace(place, *words, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


class Live:
    """One command, while it goes on."""

    def __init__(self, place: Path, words: tuple[str, ...], environment: dict[str, str] | None, umask: int) -> None:
        self._process: subprocess.Popen[str] | PipedFork
        if (server := serving()) is not None and umask == -1:
            self._process = server.start_piped("headrace", list(words), environment or dict(os.environ), place)
        else:
            self._process = subprocess.Popen(
                command(*words),
                cwd=place,
                env=environment,
                umask=umask,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def first_line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def error_line(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.readline()

    def wait_for_line(self, beginning: str) -> None:
        """Read its output up to a line that begins like this; `ended` has the rest."""
        assert self._process.stdout is not None
        while not (line := self._process.stdout.readline()).startswith(beginning):
            assert line, f"it ended without a line that begins with {beginning!r}"

    def ended(self) -> tuple[int, str, str]:
        """Its exit code, and what it wrote to standard output and error."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, out, err

    def state_once(self, path: Path, *, done: int = 1) -> StateReply:
        """How the run stands as soon as so many interviews are done."""

        def look() -> StateReply | None:
            assert self.is_alive, self.ended()
            try:
                state = state_of(path)
            except HeadraceError:
                return None  # there is no file yet
            return state if state is not None and state.progress.done >= done else None

        return until(look, f"{done} interviews of {path}", every_s=0.02)


@contextmanager
def live(place: Path, *words: str, environment: dict[str, str] | None = None, umask: int = -1) -> Iterator[Live]:
    started = Live(place, words, environment, umask)
    try:
        yield started
    finally:
        started.kill()


def endless(output: str, *, latency_s: float = 0.05, concurrency: int = 4, interviews: int = 100_000) -> list[str]:
    """The words of a run that nobody waits for, unless they ask for fewer interviews."""
    model = f"test,latency_s={latency_s}"
    return ["run", "s.yaml", "--model", model, "--n", str(interviews), "--concurrency", str(concurrency), "-o", output]
