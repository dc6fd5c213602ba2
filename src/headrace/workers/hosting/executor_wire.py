"""The messages between a controller and an executor inside a worker, in the part that every vocabulary shares.

    controller (hosted_executor)                     worker (executor_host)
      SignalWork, AckEvents ---------------------------> the executor contract, as messages
      <---------------------------------- EventsSent ---  a batch of the executor's events

A payload is a list of messages: those of one turn of an event loop travel together. Interviews and agent runs
add their own messages to these (interviews.workers.interview_wire, agents.workers.agent_wire). Does not cover: how a
payload travels (workers.wire), or what the events mean.
"""

from __future__ import annotations

from typing import Generic

import msgspec

from headrace.encoding import encode_with
from headrace.executor import Batch, Signal, SomeEventOut


class SignalWork(msgspec.Struct, tag=True, array_like=True):
    id: int
    epoch: int
    what: Signal
    deadline_s: float


class AckEvents(msgspec.Struct, tag=True, array_like=True):
    """The worker's events up to this number are on disk."""

    upto: int


class EventsSent(msgspec.Struct, Generic[SomeEventOut], tag=True, array_like=True):
    batch: Batch[SomeEventOut]


encode = encode_with(msgspec.msgpack.Encoder())
