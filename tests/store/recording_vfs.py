"""What SQLite writes and syncs, recorded, and what a power cut at any moment of it would leave on the disk.

A write is on the disk once its file is synced; until then each of its sectors may be there or not. The index of a log
(`-shm`) is never synced, and made anew.
"""

import random
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

_SECTOR = 512


class Write(NamedTuple):
    name: str
    at: int
    data: bytes


class Truncation(NamedTuple):
    name: str
    size: int


class Sync(NamedTuple):
    name: str


class Deletion(NamedTuple):
    name: str


class Acknowledged(NamedTuple):
    """So many rows are journaled, by the word of the store."""

    rows: int


@dataclass
class Recording:
    before: dict[str, bytes]
    events: list[Write | Truncation | Sync | Deletion | Acknowledged] = field(default_factory=list)

    def after_power_cut(self, moment: int, share: float, chance: random.Random) -> tuple[dict[str, bytearray], int]:
        """The files after the first so many events, with a share of what was not synced; and the rows acknowledged."""
        held = {name: bytearray(data) for name, data in self.before.items()}
        unsynced, rows = defaultdict[str, list[Write | Truncation]](list), 0
        for event in self.events[:moment]:
            match event:
                case Acknowledged():
                    rows = event.rows
                case Sync():
                    for each in unsynced.pop(event.name, []):
                        _carry_out(held.setdefault(event.name, bytearray()), each)
                case Deletion():
                    held.pop(event.name, None)
                    unsynced.pop(event.name, None)
                case _:
                    unsynced[event.name].append(event)
        for name, events in unsynced.items():
            for event in events:
                for part in _sectors(event):
                    if chance.random() < share:
                        _carry_out(held.setdefault(name, bytearray()), part)
        return held, rows


def _carry_out(held: bytearray, event: Write | Truncation) -> None:
    if isinstance(event, Truncation):
        del held[event.size :]
        return
    held.extend(bytes(max(0, event.at + len(event.data) - len(held))))
    held[event.at : event.at + len(event.data)] = event.data


def _sectors(event: Write | Truncation) -> Iterator[Write | Truncation]:
    if isinstance(event, Truncation):
        yield event
        return
    at = 0
    while at < len(event.data):
        size = _SECTOR - (event.at + at) % _SECTOR
        yield Write(event.name, event.at + at, event.data[at : at + size])
        at += size


class _RecordingFile(apsw.VFSFile):
    def __init__(self, recording: Recording, name: "str | apsw.URIFilename | None", flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        shown = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._name = "" if shown.endswith("-shm") else shown
        self._recording = recording

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - the name that apsw calls
        super().xWrite(data, offset)
        self._recording.events.append(Write(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - the name that apsw calls
        super().xTruncate(newsize)
        self._recording.events.append(Truncation(self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802 - the name that apsw calls
        super().xSync(flags)
        self._recording.events.append(Sync(self._name))


class _RecordingVfs(apsw.VFS):
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        super().__init__("recording", "unix", makedefault=True)

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> _RecordingFile:  # noqa: N802 - the name that apsw calls
        return _RecordingFile(self._recording, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - the name that apsw calls
        super().xDelete(filename, syncdir)
        self._recording.events.append(Deletion(filename))


@contextmanager
def recorded(path: Path) -> Generator[Recording]:
    """Record what SQLite does with this file, and whatever lies beside it, while the block goes on."""
    recording = Recording({str(path): path.read_bytes()})
    vfs = _RecordingVfs(recording)
    try:
        yield recording
    finally:
        apsw.set_default_vfs("unix")
        vfs.unregister()
