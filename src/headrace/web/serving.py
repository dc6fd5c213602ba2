"""The page's process from its first line to Ctrl-C: the socket, the printed address, the loop.

Does not cover: what it answers (web.page_server).
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import msgspec

from headrace.errors import OptionError
from headrace.memory.measure.os_limits import share_one_arena
from headrace.store.home import home
from headrace.web.access import TOKEN_VARIABLE, Access, checked_token
from headrace.web.page_server import PageServer
from headrace.web.shown_files import ShownFiles

_BACKLOG = 128


def serve(places: list[Path] | None, *, host: str, port: int, can_steer: bool, on_ready: Callable[[str], None]) -> None:
    """Answer until Ctrl-C. `on_ready` is given the address, which has the token in it."""
    share_one_arena()
    token = checked_token(host, os.environ.get(TOKEN_VARIABLE))
    files = ShownFiles(checked_places(places))
    with _listening(host, port) as listener:
        access = Access(host, listener.getsockname()[1], token)
        on_ready(access.address)
        asyncio.run(_until_interrupted(PageServer(files, access, can_steer=can_steer), listener))


def serve_beside(paths: TextIO, addresses: TextIO) -> None:
    """Answer until there are no more paths, for the runs at them; each is answered with the run's address."""
    share_one_arena()
    host = "127.0.0.1"
    token, files = checked_token(host, os.environ.get(TOKEN_VARIABLE)), ShownFiles([])
    with _listening(host, 0) as listener:
        access = Access(host, listener.getsockname()[1], token)

        def show(line: bytes) -> None:
            file = files.add(Path(msgspec.json.decode(line, type=str)))
            print(access.address_of(f"/runs/{file.id}"), file=addresses, flush=True)

        asyncio.run(_until_input_ends(PageServer(files, access), listener, paths, show))


async def _until_input_ends(
    server: PageServer, listener: socket.socket, given: TextIO, take: Callable[[bytes], None]
) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), given)
    async with server.running(listener):
        try:
            while line := await lines.readline():
                take(line)
        finally:
            pipe.close()


async def _until_interrupted(server: PageServer, listener: socket.socket) -> None:
    is_over = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, is_over.set)
    async with server.running(listener):
        await is_over.wait()


def checked_places(places: list[Path] | None) -> list[Path]:
    if not places:
        return [home() / "runs"]
    for place in places:
        if not place.expanduser().exists():
            raise OptionError(f"There is nothing at {place}.", fix="Name a run file, an engine file or a directory.")
    return places


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"The page cannot listen at {host}:{port}: {error.strerror or error}.", fix="Choose another with --port."
        ) from None
    return listener
