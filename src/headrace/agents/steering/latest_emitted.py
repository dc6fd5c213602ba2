"""`LatestEmitted`: the latest events of `ctx.emit`, for whoever looks at the engine from outside. In memory only, and
bounded: an event is passed on to those who listen, and not recorded.
"""

from __future__ import annotations

from collections import deque

_MOST_KEPT = 200
_MOST_BYTES = 1_000


class LatestEmitted:
    def __init__(self) -> None:
        self._kept: deque[tuple[float, int, bytes, bool]] = deque(maxlen=_MOST_KEPT)

    def keep(self, at: float, run: int, payload: bytes) -> None:
        self._kept.append((at, run, payload[:_MOST_BYTES], len(payload) > _MOST_BYTES))

    def of_run(self, run: int) -> list[tuple[float, str]]:
        """When and what a run emitted lately, oldest first; at most some hundred events of all runs are kept."""
        return [
            (at, payload.decode("utf-8", "replace") + "…" * is_cut)
            for at, emitted_by, payload, is_cut in self._kept
            if emitted_by == run
        ]
