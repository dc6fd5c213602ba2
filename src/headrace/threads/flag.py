"""A flag that one thread sets and another waits for, wherever a Ctrl-C comes meanwhile.

Python raises KeyboardInterrupt between any two instructions of the main thread, also between taking a lock and the
`with` that would give it back. `threading.Event` and `concurrent.futures.wait` take locks that the other thread needs
too, so one left held keeps it waiting for good. Here setting the flag takes none.
"""

from __future__ import annotations

import threading


class Flag:
    """Set once, by one thread."""

    def __init__(self) -> None:
        self.is_set = False
        self._until_set = threading.Lock()
        self._until_set.acquire()

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            self._until_set.release()

    def wait(self, longest_s: float) -> bool:
        """Wait until it is set, at most so long; return whether it is."""
        # A waiter that is interrupted between the two lines costs another one its `longest_s`, and no more.
        if not self.is_set and self._until_set.acquire(timeout=longest_s):
            self._until_set.release()
        return self.is_set
