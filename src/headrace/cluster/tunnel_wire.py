"""The messages between a controller and the host of a warden on a node, and how they wait to be sent.

    controller (cluster.remote_warden)                     node (cluster.node_host)
      StartWarden, WardenOrder, EndWarden ------------------> its warden
      <------------------------- WardenReport, WardenGone ---
      LinkData, LinkTaken, LinkClosed <---------------------> the channel of each worker, as bytes
      StreamData, LinkTaken <-------------------------------> the standard streams of each program, as bytes
      <--------------- FileWanted, BlockTaken, FileLeft ---
      FilePiece, FileRefused -------------------------------> its cache of files (cluster.node_files)
      <--------------------------------------- NodeReading --- in a rhythm that the controller has chosen

A link is one worker's channel, or one program's streams; its number is the worker's. `LinkTaken` returns credit: so
many bytes of a link may be on their way at most, and whoever does not read holds up its own link only. A payload to the
node, and each part of one that it answers, stays below the size from which on Ray would put it into its object store.
Does not cover: what the bytes of a link mean (workers.wire).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

import msgspec

from headrace.workers.wire import ForkWorker, FromWarden, KillWorker, SetLimit, Setup, SpawnProgram

CREDIT_BYTES = 1 << 20  # of one link, in each direction
PIECE_BYTES = 1 << 15
PAYLOAD_BYTES = 90_000  # Ray keeps arguments and results of 100 KB and more in shared memory
PARTS = 8  # results of one call: eight take hardly more CPU than one
_MESSAGE_BYTES = 16  # of one without data, about


class StartWarden(msgspec.Struct, tag=True, array_like=True):
    """`environment` is for the warden and its workers: the variables that hold keys."""

    setup: Setup
    environment: dict[str, str]


class WardenOrder(msgspec.Struct, tag=True, array_like=True):
    order: ForkWorker | SpawnProgram | SetLimit | KillWorker


class EndWarden(msgspec.Struct, tag=True, array_like=True):
    pass


class WardenReport(msgspec.Struct, tag=True, array_like=True):
    report: FromWarden


class WardenGone(msgspec.Struct, tag=True, array_like=True):
    reason: str


class LinkData(msgspec.Struct, tag=True, array_like=True):
    link: int
    data: bytes


class LinkTaken(msgspec.Struct, tag=True, array_like=True):
    """So many more bytes of the link have been taken from it."""

    link: int
    size_bytes: int


class LinkClosed(msgspec.Struct, tag=True, array_like=True):
    link: int


class StreamData(msgspec.Struct, tag=True, array_like=True):
    """A piece of a program's standard stream: the input goes to the node, output and errors come from it."""

    link: int
    stream: int
    data: bytes


class FileWanted(msgspec.Struct, tag=True, array_like=True):
    """The content of a file on the controller's host, as it was when it had this digest. `number` is the transfer's."""

    number: int
    path: str
    digest: str
    size: int


class FilePiece(msgspec.Struct, tag=True, array_like=True):
    """The next bytes of a file. More follow the end of a block when that was answered by BlockTaken."""

    number: int
    data: bytes
    ends_block: bool


class FileRefused(msgspec.Struct, tag=True, array_like=True):
    """The file cannot be had, or no more of it."""

    number: int
    reason: str


class BlockTaken(msgspec.Struct, tag=True, array_like=True):
    number: int


class FileLeft(msgspec.Struct, tag=True, array_like=True):
    """The node wants no more of this transfer."""

    number: int


class MessagePiece(msgspec.Struct, tag=True, array_like=True):
    """A part of another message, encoded, that is too large for one payload: an order with long arguments, for one."""

    data: bytes
    is_last: bool


class NodeReading(msgspec.Struct, tag=True, array_like=True):
    """What the node's host, its warden, workers and programs use together; `held_bytes` of that is not theirs but the
    host's and the warden's. `budget_bytes` is the given budget, or what the node has left, whichever is less.
    """

    used_bytes: int
    held_bytes: int
    budget_bytes: int


FromFiles: TypeAlias = FileWanted | BlockTaken | FileLeft
ToFiles: TypeAlias = FilePiece | FileRefused
Links: TypeAlias = LinkData | LinkTaken | LinkClosed | StreamData
ToNode: TypeAlias = StartWarden | WardenOrder | EndWarden | Links | ToFiles
FromNode: TypeAlias = WardenReport | WardenGone | Links | FromFiles | NodeReading

decode_to_node = msgspec.msgpack.Decoder(list[ToNode | MessagePiece]).decode
decode_from_node = msgspec.msgpack.Decoder(list[FromNode | MessagePiece]).decode
_encode = msgspec.msgpack.Encoder().encode


class NodeHello(msgspec.Struct, frozen=True):
    """What a node says of itself. `base_bytes` is as in MemoryLimits. `problem` is why it cannot take part, empty where
    it can.
    """

    pid: int
    host: str
    code: str
    python: str
    budget_bytes: int = 0
    base_bytes: int = 0
    used_bytes: int = 0
    problem: str = ""


Message = TypeVar("Message")
_MAY_BE_LARGE = StartWarden, WardenOrder, WardenReport, WardenGone, FileRefused
_HAS_DATA = LinkData, StreamData, FilePiece, MessagePiece


def _size_bytes(message: ToNode | FromNode | MessagePiece) -> int:
    """What the message takes of a payload, about."""
    if isinstance(message, _HAS_DATA):
        return _MESSAGE_BYTES + len(message.data)
    return len(_encode(message)) if isinstance(message, _MAY_BE_LARGE) else _MESSAGE_BYTES


class IncomingMessages(Generic[Message]):
    """Puts messages together again that came in pieces. `decode` reads a payload's messages."""

    def __init__(self, decode: Callable[[bytes], list[Message | MessagePiece]]) -> None:
        self._decode = decode
        self._pieces = bytearray()

    def messages(self, payload: bytes) -> Iterator[Message]:
        for message in self._decode(payload):
            if not isinstance(message, MessagePiece):
                yield message
                continue
            self._pieces += message.data
            if message.is_last:
                whole, self._pieces = bytes(self._pieces), bytearray()
                yield from self.messages(whole)


class OutgoingMessages:
    """Messages that wait for the next payload: whatever was posted while the last one was on its way."""

    def __init__(self) -> None:
        # Bounded by each link's credit, and each file's block.
        self._waiting: deque[ToNode | FromNode | MessagePiece] = deque()
        self._posted = asyncio.Event()

    def post(self, message: ToNode | FromNode) -> None:
        if isinstance(message, _MAY_BE_LARGE) and len(encoded := _encode([message])) > PIECE_BYTES:
            pieces = [encoded[at : at + PIECE_BYTES] for at in range(0, len(encoded), PIECE_BYTES)]
            self._waiting += [MessagePiece(piece, piece is pieces[-1]) for piece in pieces]
        else:
            self._waiting.append(message)
        self._posted.set()

    async def wait(self, patience_s: float | None = None) -> bool:
        """Return True as soon as something waits, and False where nothing does after so long."""
        if not self._waiting:
            self._posted.clear()
            try:
                async with asyncio.timeout(patience_s):
                    await self._posted.wait()
            except TimeoutError:
                return False
        return True

    def payload(self, most_bytes: int = PAYLOAD_BYTES) -> bytes:
        """The next messages, encoded."""
        messages: list[ToNode | FromNode | MessagePiece] = []
        size_bytes = 0
        while self._waiting:
            message = self._waiting[0]
            size_bytes += _size_bytes(message)
            if messages and size_bytes > most_bytes:
                break
            messages.append(self._waiting.popleft())
        return _encode(messages)

    def payload_in_parts(self) -> list[bytes]:
        """The next messages, encoded, as the results of one call: some may be empty."""
        payload = self.payload(PARTS * PAYLOAD_BYTES)
        size = -(-len(payload) // PARTS)
        return [payload[part * size : (part + 1) * size] for part in range(PARTS)]
