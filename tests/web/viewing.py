"""`headrace view` in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.cli.live import command


class Viewing(NamedTuple):
    process: "subprocess.Popen[str]"
    port: int
    token: str


@contextmanager
def viewing(*places: Path, words: tuple[str, ...] = ()) -> Iterator[Viewing]:
    """Started, with the address it has printed; killed at the end where it still runs."""
    process = subprocess.Popen(
        command("view", *map(str, places), *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        assert address.port, process.communicate()[1]
        yield Viewing(process, address.port, parse_qs(address.query)["token"][0])
    finally:
        process.kill()
        process.communicate()
