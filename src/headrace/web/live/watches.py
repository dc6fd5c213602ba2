"""Reads what clients watch, once a second and once for all of them, and tells which parts have changed.

Does not cover: HTTP (web.live.event_stream), or what is read (web.live.streams).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

import msgspec

from headrace.errors import HeadraceError
from headrace.web.reads import Reads

EVERY_S = 1.0
MOST_WATCHERS = 128
_MOST_PARTS = 100

Parts: TypeAlias = dict[str, msgspec.Struct]
ReadParts: TypeAlias = Callable[[], Parts | None]


class TooManyWatch(HeadraceError):
    """So many pages are open already that another one gets no live updates."""

    def __init__(self) -> None:
        super().__init__(
            f"{MOST_WATCHERS} pages are followed live already.", fix="Close some, or load this one again by hand."
        )


class LiveChange(NamedTuple):
    """The parts that have changed, at most a hundred, as JSON; `total` is how many there are."""

    cursor: str
    parts: list[msgspec.Raw]
    total: int
    is_cut: bool


class _NumberedPart(NamedTuple):
    number: int
    body: bytes


class LiveWatch:
    """One thing that is watched. `read` gives its parts, or None where it knows that nothing has changed."""

    def __init__(self, reads: Reads, read: ReadParts, every_s: float) -> None:
        self._reads = reads
        self._read = read
        self._every_s = every_s
        self._id = secrets.token_hex(4)  # a cursor of an earlier watch is not one of this
        self._number = 0
        self._parts: dict[str, _NumberedPart] = {}
        self.error: HeadraceError | None = None
        self._changed = asyncio.Event()
        self._kept: tuple[int, LiveChange] | None = None
        self.watchers = 0
        self.is_over = False
        self.task = asyncio.create_task(self._look())

    async def ready(self) -> None:
        """Wait for the first reading; raises what it failed with."""
        while self._number == 0 and not self.is_over:
            await self._changed.wait()
        if self.error is not None:
            raise self.error

    def since(self, cursor: str) -> LiveChange | None:
        """What has changed since a cursor; everything for one that is not ours, None where nothing has."""
        number = self._number_of(cursor)
        if number == self._number or self.is_over:
            return None
        if self._kept is None or self._kept[0] != number:  # clients that keep up have the same cursor: made once
            self._kept = number, self._change_since(number)
        return self._kept[1]

    async def changed(self) -> None:
        """Return after the next change, or when the watch is over."""
        if not self.is_over:
            await self._changed.wait()

    def end(self) -> None:
        self.task.cancel()
        self.is_over = True
        self._wake()

    def _change_since(self, number: int) -> LiveChange:
        changed = [part.body for part in self._parts.values() if part.number > number]
        raw = [msgspec.Raw(body) for body in changed[:_MOST_PARTS]]
        return LiveChange(f"{self._id}-{self._number}", raw, len(self._parts), len(changed) > len(raw))

    def _number_of(self, cursor: str) -> int:
        name, _, number = cursor.partition("-")
        is_ours = name == self._id and number.isdecimal() and len(number) <= len(str(self._number))
        return min(int(number), self._number) if is_ours else -1

    async def _look(self) -> None:
        try:
            while True:
                await self._look_once()
                await asyncio.sleep(self._every_s)
        finally:
            self.is_over = True
            self._wake()

    async def _look_once(self) -> None:
        try:
            parts = await self._reads.run_own(self._read)
        except HeadraceError as error:
            is_new = self.error is None or str(self.error) != str(error)
            self.error = error
            self._parts = {}
        else:
            if parts is None:
                return
            is_new, self.error = self._take(parts) or self.error is not None, None
        if is_new or self._number == 0:  # the first reading may be of nothing
            self._number += 1
            self._kept = None
            self._wake()

    def _take(self, parts: Parts) -> bool:
        """Keep a reading, in its order; whether anything in it is new."""
        taken: dict[str, _NumberedPart] = {}
        for name, part in parts.items():
            body, before = msgspec.json.encode(part), self._parts.get(name)
            taken[name] = (
                before if before is not None and before.body == body else _NumberedPart(self._number + 1, body)
            )
        is_new = taken.keys() != self._parts.keys() or any(part.number > self._number for part in taken.values())
        self._parts = taken
        return is_new

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Watches:
    """What is watched at present, by key; a watch ends with its last watcher."""

    def __init__(self, reads: Reads, every_s: float = EVERY_S) -> None:
        self._reads = reads
        self._every_s = every_s
        self._watches: dict[Hashable, LiveWatch] = {}
        self._watchers = 0
        self._is_closed = False

    @asynccontextmanager
    async def watching(self, key: Hashable, read: ReadParts) -> AsyncGenerator[LiveWatch]:
        """While the block runs, this is watched; `read` is called in a thread where nobody watches it yet."""
        if self._watchers >= MOST_WATCHERS or self._is_closed:
            raise TooManyWatch
        watch = self._watches.get(key)
        if watch is None or watch.is_over:
            watch = self._watches[key] = LiveWatch(self._reads, read, self._every_s)
        self._watchers += 1
        watch.watchers += 1
        try:
            yield watch
        finally:
            self._watchers -= 1
            watch.watchers -= 1
            if not watch.watchers:
                if self._watches.get(key) is watch:
                    del self._watches[key]
                await _ended(watch)

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for watch in self._watches.values():
            watch.end()


async def _ended(watch: LiveWatch) -> None:
    """End a watch, and pass on what it failed with."""
    watch.end()
    await asyncio.wait([watch.task])
    if not watch.task.cancelled() and (error := watch.task.exception()) is not None:
        raise error
