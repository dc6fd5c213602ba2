"""The standard streams of a program that runs on a node: files at both ends, and pieces of them in between.

    controller: RemoteStreams                          node: NodeProgram
      input, a file ── StreamData ──────────────────────► a nameless file; then SpawnProgram, and the program reads it
      <── LinkTaken ─────────────────────────────────────
      output, the end of errors, files <── StreamData ──── nameless files, once the program has ended; then its Death
      ── LinkTaken ─────────────────────────────────────►

Each end sends as far as the other has given it credit, as for a worker's channel (cluster.links): a program that writes
gigabytes waits on the node's disk, not in memory. Does not cover: running the program (workers.warden), its limits and
its result (workers.command).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from tempfile import TemporaryFile
from typing import IO, cast

from headrace.cluster.links import Post, TakenCount
from headrace.cluster.tunnel_wire import CREDIT_BYTES, PIECE_BYTES, StreamData
from headrace.errors import InvalidInput
from headrace.workers.command import ERROR_TAIL_BYTES
from headrace.workers.wire import Death, DeathKind, SpawnProgram


class StandardStream(IntEnum):
    """The standard streams, by the number that each has in a program."""

    INPUT = 0
    OUTPUT = 1
    ERRORS = 2


class _StreamSender:
    """Sends files in pieces, one after the other, as far as there is credit; then calls `on_sent`, once."""

    def __init__(
        self, link: int, files: Sequence[tuple[StandardStream, int, int]], post: Post, on_sent: Callable[[], None]
    ):
        self._link = link
        self._files = list(files)  # the stream, its descriptor, and the bytes of it that are still to be sent
        self._post = post
        self._on_sent = on_sent
        self._credit_bytes = CREDIT_BYTES

    def credit(self, size_bytes: int) -> None:
        self._credit_bytes += size_bytes
        if self._files:
            self.send()

    def send(self) -> None:
        while self._files and self._credit_bytes > 0:
            stream, descriptor, left_bytes = self._files[0]
            data = os.read(descriptor, min(PIECE_BYTES, left_bytes))
            if data:
                self._credit_bytes -= len(data)
                self._post(StreamData(self._link, stream, data))
                self._files[0] = stream, descriptor, left_bytes - len(data)
            else:
                del self._files[0]
        if not self._files:
            self._on_sent()


class RemoteStreams:
    """The controller's end. `streams` are descriptors of files, which the caller may close: these are copies. `begin`
    is called with the order when all of the input is sent: it may be changed until then.
    """

    def __init__(
        self, order: SpawnProgram, streams: Sequence[int], post: Post, begin: Callable[[SpawnProgram], None]
    ) -> None:
        link = order.worker
        self.order = order
        self.has_begun = False
        self._begin = begin
        self._descriptors = [os.dup(descriptor) for descriptor in streams]
        self._failure = ""
        self._taken = TakenCount(link, post)
        given = self._descriptors[StandardStream.INPUT]
        os.lseek(given, 0, os.SEEK_SET)
        files = [(StandardStream.INPUT, given, os.fstat(given).st_size)]
        self._sender = _StreamSender(link, files, post, self._input_sent)

    def _input_sent(self) -> None:
        self.has_begun = True
        self._begin(self.order)

    def send_input(self) -> None:
        self._sender.send()

    def credit(self, size_bytes: int) -> None:
        self._sender.credit(size_bytes)

    def arrived(self, message: StreamData) -> None:
        if message.stream in (StandardStream.OUTPUT, StandardStream.ERRORS) and not self._failure:
            try:
                _write_all(self._descriptors[message.stream], message.data)
            except OSError as error:  # a full disk, for one: that costs this program
                self._failure = f"what it wrote cannot be kept: {error.strerror}"
        self._taken.count(len(message.data))

    def ended(self, death: Death) -> Death:
        """The program has ended like this, and nothing of it comes any more."""
        self.close()
        return Death(death.worker, DeathKind.LOST, reason=self._failure) if self._failure else death

    def close(self) -> None:
        descriptors, self._descriptors = self._descriptors, []
        for descriptor in descriptors:
            os.close(descriptor)


class NodeProgram:
    """The node's end: three nameless files in the node's temporary directory."""

    def __init__(self, link: int, post: Post) -> None:
        self._link = link
        self._post = post
        self._files: list[IO[bytes]] = []
        self._taken = TakenCount(link, post)
        self._sender: _StreamSender | None = None
        self._most_output_bytes = 0
        self._failure = ""
        try:
            for _ in StandardStream:
                self._files.append(cast("IO[bytes]", TemporaryFile(buffering=0)))  # noqa: SIM115 - see `close`
        except OSError as error:
            self._failure = f"its streams cannot be kept on the node: {error.strerror}"

    def arrived(self, message: StreamData) -> None:
        try:
            if not self._failure:
                _write_all(self._files[StandardStream.INPUT].fileno(), message.data)
        except OSError as error:  # a full disk, for one: that costs this program
            self._failure = f"its input cannot be kept on the node: {error.strerror}"
        self._taken.count(len(message.data))

    def begin(self, order: SpawnProgram) -> list[int]:
        """The descriptors of a program that is about to be started; raises InvalidInput where that is in vain."""
        if self._failure:
            raise InvalidInput(f"{self._failure[0].upper()}{self._failure[1:]}.")
        self._files[StandardStream.INPUT].seek(0)
        self._most_output_bytes = order.largest_output_bytes
        return [file.fileno() for file in self._files]

    def credit(self, size_bytes: int) -> None:
        if self._sender is not None:
            self._sender.credit(size_bytes)

    def ended(self, death: Death, report: Callable[[Death], None]) -> None:
        """Send what the program wrote, and then the news of its end."""
        if self._failure:
            report(death)
            return
        output, errors = self._files[StandardStream.OUTPUT], self._files[StandardStream.ERRORS]
        errors_bytes = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors_bytes - ERROR_TAIL_BYTES))
        output.seek(0)
        files = [
            # One byte more than it may: the controller sees that it wrote too much.
            (StandardStream.OUTPUT, output.fileno(), self._most_output_bytes + 1),
            (StandardStream.ERRORS, errors.fileno(), ERROR_TAIL_BYTES),
        ]
        self._sender = _StreamSender(self._link, files, self._post, lambda: report(death))
        self._sender.send()

    def close(self) -> None:
        self._sender = None
        for file in self._files:
            file.close()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
