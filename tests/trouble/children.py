"""Child processes that tests start, watch, kill and wait for. Covers: those under tests/trouble/programs, and others.

A child tells what it knows as lines of JSON on its standard output. Every wait is for something that can be seen, and
has an end; whatever happens, no child outlives its `with` block.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.forks import Fork, serving

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90.0
# Programs whose own memory no test measures.
FORKED = {
    "tests.agents.engine.programs.mix",
    *(f"tests.trouble.programs.{name}" for name in ("run_letters", "run_numbers", "run_rows", "run_town", "stopping")),
}
_LOOK_EVERY_S = 0.002

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], what: str, *, within_s: float = PATIENCE_S, every_s: float = _LOOK_EVERY_S) -> Seen:
    """The first thing that `look` sees that is true; an error that says what was waited for where it never is."""
    give_up_at = time.monotonic() + within_s
    while not (seen := look()):
        assert time.monotonic() < give_up_at, f"waited {within_s:g} s for {what}"
        time.sleep(every_s)
    return seen


def size_of(path: Path) -> int:
    """In bytes; 0 where there is no such file, which another process may be making or removing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Child:
    """`Child("run_town", path, 60)` runs tests/trouble/programs/run_town.py, warnings as errors; a name
    with dots is that of a module.

    Those of FORKED are forks where tests use the fixture `forks`, but `within` another program.
    """

    def __init__(self, program: str, *arguments: object, within: tuple[str, ...] = (), **environment: str) -> None:
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit
        paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
        module = program if "." in program else f"tests.trouble.programs.{program}"
        words, whole = [str(argument) for argument in arguments], {**os.environ, "PYTHONPATH": paths, **environment}
        self._process: subprocess.Popen[bytes] | Fork
        with Path(os.devnull).open("rb") as nothing:
            if module in FORKED and not within and (server := serving()) is not None:
                streams = [stream.fileno() for stream in (nothing, self._out, self._err)]
                self._process = server.start(module, words, whole, streams)
            else:
                command = [*within, sys.executable, "-W", "error", "-m", module, *words]
                self._process = subprocess.Popen(
                    command, cwd=ROOT, env=whole, stdin=nothing, stdout=self._out, stderr=self._err
                )
        self.pid = self._process.pid

    @property
    def told(self) -> list[Any]:
        """Everything it has told so far."""
        *whole, _ = os.pread(self._out.fileno(), 1 << 24, 0).decode().split("\n")
        return [json.loads(line) for line in whole]

    @property
    def complaints(self) -> str:
        """What it wrote to standard error, but for the line that answers a Ctrl-C."""
        lines = os.pread(self._err.fileno(), 1 << 24, 0).decode(errors="replace").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("stopping"))

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_told(self, count: int = 1) -> list[Any]:
        until(lambda: len(self.told) >= count or not self.is_alive, f"{count} lines of {self._process.args}")
        assert len(self.told) >= count, f"it ended with {self._process.returncode}: {self.complaints}"
        return self.told

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait_until_stopping(self) -> None:
        """Wait for its answer to Ctrl-C: two signals that come together may arrive as one."""
        until(lambda: self._says_stopping or not self.is_alive, f"an answer to Ctrl-C of {self._process.args}")

    @property
    def _says_stopping(self) -> bool:
        return b"stopping" in os.pread(self._err.fileno(), 1 << 20, 0)

    def kill(self) -> None:
        """SIGKILL: it gets no chance to put anything in order."""
        self._process.kill()
        self._process.wait()

    def ended(self, *, within_s: float = PATIENCE_S) -> list[Any]:
        """What it told in all, once it has ended by itself and well."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler then shows where it hangs
            self._process.wait()
            raise AssertionError(f"{self._process.args} did not end in {within_s:g} s: {self.complaints}") from None
        assert (code, self.complaints) == (0, ""), f"it ended with {code}: {self.complaints}"
        return self.told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._out.close()
        self._err.close()


def run_child(program: str, *arguments: object, within: tuple[str, ...] = (), **environment: str) -> list[Any]:
    """Run a program to its end; what it told."""
    with Child(program, *arguments, within=within, **environment) as child:
        return child.ended()
