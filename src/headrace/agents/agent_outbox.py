"""The events of agent runs on their way to the journal.

Bounded by the runs: each has one step, checkpoint or end on its way, and emitted events are dropped beyond a number and
beyond a size. Covers: that bound, and the notices that must reach the controller before a step begins. Does not cover:
numbers and acknowledgements (outbox).
"""

from __future__ import annotations

from headrace.agents.contract import AgentEvent, Emitted
from headrace.outbox import Outbox

_MOST_EMITTED = 1000
_MOST_EMITTED_BYTES = 16 << 20  # beside the first, which may be larger


class AgentOutbox(Outbox[AgentEvent]):
    def __init__(self) -> None:
        super().__init__()
        self._emitted = 0
        self._emitted_bytes = 0

    def add_or_drop(self, event: Emitted) -> None:
        size_bytes = len(event.payload)
        if not self._emitted or (
            self._emitted < _MOST_EMITTED and self._emitted_bytes + size_bytes <= _MOST_EMITTED_BYTES
        ):
            self._emitted += 1
            self._emitted_bytes += size_bytes
            self.add(event)

    def entering(self, id: int, epoch: int, step: str) -> None:
        """Do nothing: a worker overrides this to report the step that a run enters, should the worker die in it."""

    def effect_raised(self, id: int, epoch: int, step: str) -> None:
        """A side effect is over. An event follows, but only when the loop turns, which this function may prevent."""

    def _collect(self) -> None:
        self._emitted = self._emitted_bytes = 0
