"""The holders that did not answer in time those who only look: each is waited for once, not by everyone who looks.

The unanswered request is left open. While nothing comes back through it the process still does not answer, which costs
no more waiting to see; as soon as something does (an answer, or the end of the process) it is asked anew. Does not
cover: asking (request_client).
"""

from __future__ import annotations

import os
import select
import threading
import time
from pathlib import Path
from typing import NamedTuple

from headrace.store.lock import writer_of

# Who only looks has the file to look at, and looks again soon.
_MOST_PATIENCE_S, _LEAST_PATIENCE_S = 0.5, 0.1
_MOST_HOLDERS = 256
_TURNS = 64
# A process that answers now and then, always too late, is not waited for all the time.
_AGAIN_AFTER_S = 2.0


class _SilentHolder(NamedTuple):
    """`descriptor` is that of the unanswered request; without a socket object, which would want to be closed."""

    pid: str | None
    since_s: float
    descriptor: int

    def is_so_still(self, path: Path) -> bool:
        if writer_of(path) != self.pid:
            return False
        return time.monotonic() - self.since_s < _AGAIN_AFTER_S or not _is_readable(self.descriptor)


class SilentHolders:
    """Those of one kind of file, by path. Asked from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = tuple(threading.Lock() for _ in range(_TURNS))
        self._silent: dict[Path, _SilentHolder] = {}

    def turn(self, path: Path) -> threading.Lock:
        """Held while the holder is asked: whoever comes meanwhile sees what came of it, and does not wait as well."""
        return self._turns[hash(path) % _TURNS]

    @property
    def patience_s(self) -> float:
        """How long to wait for one that is not known to be silent: less the more are, for a list asks them in turn."""
        return max(_LEAST_PATIENCE_S, _MOST_PATIENCE_S / (1 + len(self._silent)))

    def add(self, path: Path, descriptor: int) -> None:
        """The holder has not answered the request that was sent through this descriptor, which is closed here later."""
        holder = _SilentHolder(writer_of(path), time.monotonic(), descriptor)
        with self._lock:
            self._forget(path)
            for other in [other for other, each in self._silent.items() if not each.is_so_still(other)]:
                self._forget(other)  # nobody looks at it any more
            if len(self._silent) >= _MOST_HOLDERS:
                self._forget(next(iter(self._silent)))
            self._silent[path] = holder

    def has(self, path: Path) -> bool:
        """Whether the holder still owes an answer, so that asking it would only mean waiting."""
        with self._lock:
            holder = self._silent.get(path)
            if holder is None:
                return False
            if not holder.is_so_still(path):
                self._forget(path)
                return False
            return True

    def _forget(self, path: Path) -> None:
        holder = self._silent.pop(path, None)
        if holder is not None:
            os.close(holder.descriptor)


def _is_readable(descriptor: int) -> bool:
    """Whether something has come, or the other end has gone."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(0))
