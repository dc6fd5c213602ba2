"""The thread that makes spans and metrics, and the bounded queue before it.

Covers: never waiting for it but at the end, and there for a bounded time. Does not cover: what is made (otel_export).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from headrace.telemetry.otel_export import OtelExport

_MOST_WAITING = 4_096  # interviews, steps and calls
_MOST_WAITING_BYTES = 16_000_000
CLOSE_WITHIN_S = 3.0
# Loading OpenTelemetry is our own work, a second of it: where that takes long, no collector is to blame.
_SET_UP_WITHIN_S = 10.0
_log = logging.getLogger("headrace")

Work: TypeAlias = Callable[[OtelExport], None]


class ExportThread:
    """`offer` never waits: what does not fit, or is refused by OpenTelemetry, is counted in `dropped`."""

    def __init__(self) -> None:
        self._queue: deque[tuple[Work, int, int]] = deque()  # bounded by `offer`
        self._changed = threading.Condition()
        self._waiting = self._waiting_bytes = 0
        self._is_closing = self._is_abandoned = False
        self._set_up = threading.Event()  # or failed to
        self._export: OtelExport | None = None
        self.dropped = 0
        # A daemon: a collector that does not answer must not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="headrace-telemetry", daemon=True)
        self._thread.start()

    def offer(self, work: Work, *, count: int = 1, held_bytes: int = 0) -> None:
        """Have `work` done on the thread; it is about so many interviews, steps or calls and holds so many bytes."""
        with self._changed:
            is_full = self._waiting and (
                self._waiting + count > _MOST_WAITING or self._waiting_bytes + held_bytes > _MOST_WAITING_BYTES
            )
            if is_full or self._is_closing:
                self.dropped += count
                return
            self._queue.append((work, count, held_bytes))
            self._waiting += count
            self._waiting_bytes += held_bytes
            self._changed.notify()

    def close(self, within_s: float = CLOSE_WITHIN_S) -> None:
        """Wait until everything is sent, for so long at most; what is left then is dropped."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if not self._set_up.wait(_SET_UP_WITHIN_S):
            self._abandon()
            _log.warning("telemetry: OpenTelemetry did not load within %g s; the rest is dropped", _SET_UP_WITHIN_S)
        else:
            self._thread.join(within_s)
            if self._thread.is_alive():
                self._abandon()
                _log.warning(
                    "telemetry: the collector did not take everything within %g s; the rest is dropped", within_s
                )
        if self.dropped:
            _log.warning("telemetry: %d interviews, steps or calls were not exported", self.dropped)

    def _abandon(self) -> None:
        """Drop what is left, and have the thread end without waiting for the collector."""
        with self._changed:
            self._is_abandoned = True
            self.dropped += self._waiting
            self._queue.clear()
        if self._export is not None:
            self._export.abandon()

    def _run(self) -> None:
        try:
            export = OtelExport()
        except Exception:  # noqa: BLE001 - told in the log: telemetry fails no run
            _log.warning("telemetry: nothing is exported, since it could not be set up", exc_info=True)
            with self._changed:
                self._is_closing = True
                self.dropped += self._waiting
                self._queue.clear()
            return
        finally:
            self._set_up.set()
        with self._changed:
            self._export = export
            is_abandoned = self._is_abandoned
        if is_abandoned:  # before there was an export to abandon
            export.abandon()
        self._export_all(export)
        export.close()

    def _export_all(self, export: OtelExport) -> None:
        failed = 0
        while (taken := self._next()) is not None:
            work, count, _ = taken
            try:
                work(export)
            except Exception:  # noqa: BLE001 - told in the log: telemetry fails no run
                failed += 1
                if failed == 1:  # each would say the same
                    _log.warning("telemetry: what a run did could not be exported", exc_info=True)
                with self._changed:
                    self.dropped += count

    def _next(self) -> tuple[Work, int, int] | None:
        with self._changed:
            while not self._queue and not self._is_closing:
                self._changed.wait()
            if not self._queue:
                return None
            taken = self._queue.popleft()
            self._waiting -= taken[1]
            self._waiting_bytes -= taken[2]
            return taken
