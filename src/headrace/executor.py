"""The executor contract, in the part that interviews and agent runs share. For one host or many.

A controller decides and writes the store; an executor does the work. Everything between them can be sent as bytes: no
paths, no descriptors, no shared disk.

    controller                                executor
      start(work) -----------------------------> returns when the work is accepted
      signal(id, epoch, what, deadline_s) -----> preempt, cancel, kill
      <------------------------- events() ------ batches, in order of seq
      ack(upto) -------------------------------> these are on disk: forget them

Delivery is at least once. `seq` counts all events of an executor, so the controller recognises a repeated event.
`epoch` counts how often the same work has been given out, so that a late event of a replaced attempt is refused. An
event is acknowledged after its COMMIT, and not reading events is backpressure.

Covers: signals and events as such. Does not cover: what is started and which events follow
(interviews.contract, agents.contract), how work may end (exit_causes), or keeping events
until they are acknowledged (outbox).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec


class Signal(Enum):
    PREEMPT = "preempt"  # stop at the next step; what is journaled stays
    CANCEL = "cancel"  # start nothing more of it; what is running ends
    KILL = "kill"  # stop now, with as much time to clean up as the deadline gives


class ExecutorEvent(msgspec.Struct, tag=True, kw_only=True):
    """`id` and `epoch` are the work's, `seq` counts up by one over all events of an executor."""

    id: int
    epoch: int
    seq: int


SomeEvent = TypeVar("SomeEvent", bound=ExecutorEvent)
SomeEventOut = TypeVar("SomeEventOut", bound=ExecutorEvent, covariant=True)


class Batch(msgspec.Struct, Generic[SomeEventOut]):
    """Events in order; `upto` is the last one's seq."""

    upto: int
    events: list[SomeEventOut]


class Executor(Protocol[SomeEventOut]):
    """The calls that every executor answers. How work is started is for each vocabulary to say."""

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        """Stop work. After `deadline_s` it is cancelled where it is; with `math.inf`, its next step is waited for."""
        ...

    def events(self) -> AsyncIterator[Batch[SomeEventOut]]: ...

    def ack(self, upto: int) -> None: ...

    async def close(self) -> None: ...
