"""`Emits`: which events of `ctx.emit` are sent. Covers: not repeating those that an earlier attempt has sent.

A run that goes on is called from its beginning, and comes to its earlier emits again. An emit was sent before if a step
behind it is journaled, so while journaled steps are ahead, emits are held until the next step shows which they are:

    the step returns from the journal    the earlier attempt came past these emits: drop them
    the step has to be run               this attempt is past the journal: send them, and all later ones at once

Only emits of the same asyncio task are dropped, since parallel branches come to their steps in any order: an emit may
be sent again, and is never lost. Does not cover: how events travel (link), or readers that are too slow (run_handle).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized
from typing import Any

_MOST_HELD_BYTES = 1_000_000


class Emits:
    """`ahead` are the journaled steps that this attempt has not come to. `is_unjournaled`: an emit was sent, and
    nothing was journaled after it.
    """

    def __init__(self, send: Callable[[bytes], None], ahead: Sized) -> None:
        self._send = send
        self._ahead = ahead
        self._held: dict[asyncio.Task[Any] | None, list[bytes]] = {}
        self._held_bytes = 0
        self._is_past_journal = False
        self.is_unjournaled = False

    def add(self, payload: bytes) -> None:
        if not self._is_past_journal and self._ahead and self._held_bytes + len(payload) <= _MOST_HELD_BYTES:
            self._held.setdefault(_current_task(), []).append(payload)
            self._held_bytes += len(payload)
            return
        self.send_held()
        self._send(payload)
        self.is_unjournaled = True

    def passed_journaled(self) -> None:
        """What comes next in this task is journaled: an earlier attempt has sent what is held."""
        self._held_bytes -= sum(map(len, self._held.pop(_current_task(), ())))

    def passed_journal(self) -> None:
        """A step has to be run: whatever is emitted from here on is new."""
        self._is_past_journal = True
        self.send_held()

    def send_held(self) -> None:
        held, self._held, self._held_bytes = self._held, {}, 0
        for payload in (payload for payloads in held.values() for payload in payloads):
            self._send(payload)
            self.is_unjournaled = True


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # in a thread
        return None
