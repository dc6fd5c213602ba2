"""A worker's event loop that can be seen to be stuck, and asked what blocks it.

It counts its turns in memory that the warden sees, which costs no message and no time while it waits. What blocks it is
asked for by a signal: faulthandler's handler is C and writes the stack whatever Python is doing. Does not cover:
noticing, asking and reading (workers.warden.stuck). Linux only: elsewhere workers have no such page.
"""

from __future__ import annotations

import asyncio
import faulthandler
import fcntl
import os
import selectors

from headrace.workers.progress_page import Place
from headrace.workers.warden.stuck import ASK_FOR_STACK, STACK_FILE

_wait = selectors.DefaultSelector.select  # each turn of each worker comes by here


class WatchedLoop(asyncio.SelectorEventLoop):
    def __init__(self, place: Place) -> None:
        if not place.stacks:
            place.set_stacks(_ready_to_tell())
        self._place = place
        super().__init__(_CountedWaits(place))

    def close(self) -> None:
        super().close()
        self._place.turns += self._place.turns % 2


class _CountedWaits(selectors.DefaultSelector):
    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place
        self._turns = place.turns  # even: no loop is there before this one

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        place, turns = self._place, self._turns
        place.turns = turns
        ready = _wait(self, timeout)
        place.turns = turns + 1
        self._turns = turns + 2
        return ready


def _ready_to_tell() -> int:
    """The descriptor of a file in memory that has the stack when it was asked for."""
    file = os.memfd_create(STACK_FILE)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # whoever reads it empties it
    faulthandler.register(ASK_FOR_STACK, file=file, all_threads=False)
    return file
