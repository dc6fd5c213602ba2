"""Makes Python's garbage collector run less often while calls are in flight.

Every call in flight is some hundred objects, none of them garbage. By default the collector looks through the young
ones after every 700: at a thousand calls in flight that is 150 us a call, nearly as much as the call itself. Does not
cover: giving memory back under pressure (memory.reclaiming).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_YOUNG_OBJECTS = 20_000  # about as many as a few hundred calls; as garbage, some megabytes
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []  # the thresholds that each run in progress found


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect less often until the last run that asked for it has ended. A user who changes it meanwhile is heeded."""
    with _lock:
        _before.append(_before[-1] if _before else gc.get_threshold())
        is_eager = 0 < gc.get_threshold()[0] < _YOUNG_OBJECTS
        if is_eager:
            gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before and gc.get_threshold()[0] == _YOUNG_OBJECTS:
                gc.set_threshold(*before)
