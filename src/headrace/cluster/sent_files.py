"""The controller's side of files in prompts: it reads what nodes ask for, and sends it in blocks.

    NodeFiles ── FileWanted ──► FileSender ── a block at a time ──► FilePiece, FilePiece, ... ──► NodeFiles
              ── BlockTaken ──►              (survey.files.checked_file)

Nothing of a file leaves before all of it has the digest that the plan knows; one that changed or is gone is refused
with the words that a reader on this host would get. A block is read when its turn comes, and held until the node has it
on disk: so many are held at once, for all nodes together, whatever the number of nodes and the size of files.

Does not cover: the node's side (cluster.node_files), or where this host has the file (survey.files.file_contents).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.cluster.tunnel_wire import (
    PIECE_BYTES,
    BlockTaken,
    FileLeft,
    FilePiece,
    FileRefused,
    FileWanted,
    FromFiles,
)
from headrace.errors import FileUnusable
from headrace.survey.files.checked_file import CheckedFile

_MOST_BLOCKS = 16  # 6 MB, and as much again on its way through Ray


class BlockTurns(asyncio.Semaphore):
    """Turns to hold a block, of all nodes of a run."""

    def __init__(self) -> None:
        super().__init__(_MOST_BLOCKS)


class FileSender:
    """The files that one node asks for. `post` sends a message to it."""

    def __init__(self, post: Callable[[FilePiece | FileRefused], None], turns: BlockTurns) -> None:
        self._post = post
        self._turns = turns
        self._sending: dict[int, tuple[asyncio.Task[None], asyncio.Event]] = {}  # bounded by the node

    def take(self, message: FromFiles) -> None:
        match message:
            case FileWanted():
                taken = asyncio.Event()
                task = asyncio.create_task(self._send(message, taken))
                self._sending[message.number] = task, taken
                task.add_done_callback(lambda _: self._sending.pop(message.number, None))
            case BlockTaken():
                if sending := self._sending.get(message.number):
                    sending[1].set()
            case FileLeft():
                if sending := self._sending.get(message.number):
                    sending[0].cancel()

    def close(self) -> None:
        """Send nothing more: the node is gone."""
        for task, _ in self._sending.values():
            task.cancel()

    async def _send(self, wanted: FileWanted, taken: asyncio.Event) -> None:
        reading = CheckedFile(wanted)
        try:
            while await self._sent_block(wanted.number, reading, taken):
                pass
        except FileUnusable as error:
            self._post(FileRefused(wanted.number, error.reason))
        except Exception as error:  # noqa: BLE001 - whatever it is: without a word the node would wait for ever
            self._post(FileRefused(wanted.number, f"{type(error).__name__}: {error}"))
        finally:
            reading.close()

    async def _sent_block(self, number: int, reading: CheckedFile, taken: asyncio.Event) -> bool:
        """Whether there was a block to send."""
        async with self._turns:
            block = memoryview(await asyncio.to_thread(reading.next_block))
            taken.clear()
            for at in range(0, len(block), PIECE_BYTES):
                ends_block = at + PIECE_BYTES >= len(block)
                self._post(FilePiece(number, bytes(block[at : at + PIECE_BYTES]), ends_block))
            if block:
                await taken.wait()
            return bool(block)
