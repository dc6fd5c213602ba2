"""The program that holds a local model: reads chats from its standard input, a socket, and writes the replies there.

Started by models.protocols.local_process with its settings as JSON and a directory of its own; it imports nothing but
the standard library, headrace.framing and xllamacpp. A message is a frame: four bytes with the call's number, then
JSON. The first one it writes has number 0 and says whether the model is loaded. When the socket closes, for whatever
reason, the program ends at once. What llama.cpp says goes to stderr.
"""

from __future__ import annotations

import fcntl
import functools
import importlib
import json
import os
import queue
import select
import shutil
import socket
import struct
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.framing import framed, receive

NUMBER = struct.Struct("!I")  # of a call, in front of each message's JSON
_ERRORS_ONLY = 1
_CANNOT_LOAD = (ImportError, MemoryError, OSError, RuntimeError, ValueError)


class ParentSocket:
    """The socket to the parent process; several threads write to it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def read(self) -> tuple[int, bytes] | None:
        """Wait for the next call: its number and its JSON; None when the parent has closed the socket."""
        try:
            body = receive(self._connection)
        except OSError:
            return None
        return NUMBER.unpack_from(body)[0], body[NUMBER.size :]

    def write(self, number: int, body: bytes) -> None:
        with self._lock:
            self._connection.sendall(framed(NUMBER.pack(number) + body))


def load(settings: dict[str, Any], socket_path: Path) -> Any:
    """Load the model into llama.cpp's server, which must listen somewhere: on a path that is then removed."""
    xllamacpp = _xllamacpp()
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_parallel = settings["parallel"]
    params.n_ctx = settings["context"] * settings["parallel"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = [str(socket_path)]
    params.verbosity = _ERRORS_ONLY
    params.fit_params = False
    params.warmup = False
    # What would otherwise grow with the number of different prompts, up to 8 GB.
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    return xllamacpp.Server(params)


@functools.lru_cache(maxsize=64)
def grammar(schema: str) -> str:
    """Return llama.cpp's grammar for a JSON schema, without blanks: a small model would fill a line with them.

    `lenient`: a keyword that the library does not know, like uniqueItems, would make it drop the whole grammar.
    """
    compact = {**json.loads(schema), "x-guidance": {"whitespace_flexible": False, "lenient": True}}
    return _xllamacpp().json_schema_to_grammar(compact)


def answer(server: Any, body: bytes) -> bytes:
    chat = json.loads(body)
    schema = chat.pop("schema", None)
    replies: list[bytes] = []
    try:
        if schema is not None:
            chat["grammar"] = grammar(json.dumps(schema))
        server.handle_chat_completions(json.dumps(chat).encode(), replies.append)
    except (RuntimeError, ValueError) as error:
        return _failed(400, str(error))
    return replies[0] if replies else _failed(500, "the model gave no reply")


def _xllamacpp() -> Any:
    return importlib.import_module("xllamacpp")  # it has no types


def _failed(code: int, message: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message}}).encode()


def _serve(line: ParentSocket, calls: queue.SimpleQueue[tuple[int, bytes]], server: Any) -> None:
    while True:
        number, body = calls.get()
        line.write(number, answer(server, body))


@contextmanager
def _ending_with(descriptor: int) -> Generator[None]:
    """End this process by SIGIO when the socket closes while the block runs.

    Loading keeps Python's lock, for minutes where a model is large, so no thread could notice. Until the model is
    loaded the parent sends nothing: the socket can only become readable by closing.
    """
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([descriptor], [], [], 0)[0]:
        os._exit(0)
    try:
        yield
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def main() -> None:
    settings, directory = json.loads(sys.argv[1]), Path(sys.argv[2])
    line = ParentSocket(socket.socket(fileno=0))
    try:
        with _ending_with(0):
            server = load(settings, directory / "unused.sock")
    except _CANNOT_LOAD as error:
        line.write(0, _failed(400, str(error)))
        sys.exit(1)  # an orderly exit: llama.cpp writes its log in a thread of its own, and the cause is in there
    shutil.rmtree(directory, ignore_errors=True)
    line.write(0, b"{}")
    calls: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()  # the parent bounds what is in flight
    for _ in range(settings["parallel"]):
        threading.Thread(target=_serve, args=(line, calls, server), daemon=True).start()
    while (message := line.read()) is not None:
        calls.put(message)
    os._exit(0)  # at once: no process reads the replies that are being computed
