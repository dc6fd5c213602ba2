"""The command in forks, as typed. Does not cover: how it starts, which HEADRACE in terminals does."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.forks import Fork, serving


def start(place: Path, words: tuple[str, ...], environment: dict[str, str], streams: list[int]) -> Fork:
    server = serving()
    assert server is not None, "the tests of this module have to use the fixture `forks`"
    return server.start("headrace", list(words), environment, streams, place)


def headrace(place: Path, *words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        streams = [nothing.fileno(), out.fileno(), err.fileno()]
        code = start(place, words, dict(os.environ) if environment is None else environment, streams).wait()
        out_text, err_text = (os.pread(file.fileno(), 1 << 26, 0).decode() for file in (out, err))
    return subprocess.CompletedProcess(words, code, out_text, err_text)
