"""The local model server that calls are measured against, in a process of its own: it answers about 2 KB a call."""

import json
import random
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.processes import ChildFailed, start_python

ANSWER_LETTERS = 2_000
_WORDS = "the harbour is a short walk away and trams run late so people here seldom own cars but rents have risen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What reached the server: calls, different prompts among them, and calls that got no answer."""

    calls: int
    prompts: int
    turned_away: int

    @property
    def repeated(self) -> int:
        return self.calls - self.prompts


@dataclass(frozen=True, slots=True)
class ModelServer:
    url: str

    def seen(self) -> Seen:
        with urllib.request.urlopen(f"{self.url}/seen", timeout=30) as response:
            return Seen(**json.load(response))


@contextmanager
def model_server(*options: object, latency_s: float = 0.0) -> Iterator[ModelServer]:
    """`options` are the server's own; by default it answers every call after `latency_s`."""
    process = start_python(
        "-m", "tests.models.server", "--answer", _answer(), "--latency", latency_s, *options
    )  # fmt: skip
    try:
        yield ModelServer(_address(process))
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    if not url:
        raise ChildFailed("the local model server did not start")
    return url


def _answer() -> str:
    """Words in a random order: what compresses as badly as an answer does."""
    words, chance = _WORDS.split(), random.Random(0)
    return " ".join(chance.choices(words, k=ANSWER_LETTERS))[:ANSWER_LETTERS]
