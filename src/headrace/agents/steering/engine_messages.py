"""The requests and replies that steer an engine from another process, and how large they may be.

Does not cover: the socket (store.holder_socket), answering (engine_server), or asking (engine_client).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from headrace.agents.engine.status import EngineStatus
from headrace.store.engine_file.engine_values import Id

MOST_MESSAGE_LETTERS = 60_000
MOST_REQUEST_BYTES = 4 * MOST_MESSAGE_LETTERS + 10_000
MOST_REPLY_BYTES = 1_000_000
_MOST_SHOWN = 100  # heartbeats, endpoints, kinds
_MOST_LETTERS = 500
_MOST_STACK_LETTERS = 4_000

_Json: TypeAlias = Annotated[str, msgspec.Meta(max_length=MOST_MESSAGE_LETTERS)]
_StepName: TypeAlias = Annotated[str, msgspec.Meta(max_length=10_000)]


class EngineStateRequest(msgspec.Struct, frozen=True, tag="state"):
    """Changes nothing."""


class EmittedRequest(msgspec.Struct, frozen=True, tag="emitted"):
    """The latest events that a run emitted."""

    run: Id


class CancelRunRequest(msgspec.Struct, frozen=True, tag="cancel"):
    """End a run for good, with its children."""

    run: Id


class RetryRunRequest(msgspec.Struct, frozen=True, tag="retry"):
    """Let a failed run go on behind its last step."""

    run: Id


class SendRequest(msgspec.Struct, frozen=True, tag="send"):
    """Send a run a message, which is JSON."""

    run: Id
    message: _Json


class ResolveRequest(msgspec.Struct, frozen=True, tag="resolve"):
    """Decide about a side effect that was cut short: it happened, with this result in JSON, or did not (None)."""

    run: Id
    step: _StepName
    result: _Json | None


RunRequest: TypeAlias = CancelRunRequest | RetryRunRequest | SendRequest | ResolveRequest
EngineRequest: TypeAlias = EngineStateRequest | EmittedRequest | RunRequest


class EngineReply(msgspec.Struct, frozen=True, tag="engine"):
    """How the engine stands. `levels` are the shares of the budget from which it shrinks, preempts and kills."""

    pid: int
    levels: tuple[float, float, float]
    status: EngineStatus


class AgentRunReply(msgspec.Struct, frozen=True, tag="agent run"):
    """How a run stands after a request."""

    run: int
    state: str


class EmittedEvent(msgspec.Struct, frozen=True):
    """An event of `ctx.emit` as JSON, cut where it is long."""

    at: float
    text: str


class EmittedReply(msgspec.Struct, frozen=True, tag="emitted"):
    """Oldest first."""

    events: tuple[EmittedEvent, ...]


EngineAnswer: TypeAlias = EngineReply | AgentRunReply | EmittedReply


def path_of(kind: type, value: Any) -> Any:
    """Makes a path of the text that travels for it; a decoder's hook."""
    if kind is Path:
        return Path(value)
    raise NotImplementedError(f"no message holds a {kind.__name__}")


def bounded_status(status: EngineStatus) -> EngineStatus:
    """The status with its lists and texts cut to what a reply has room for."""
    return replace(
        status,
        heartbeats=tuple(
            replace(each, last_error=_cut(each.last_error), last_skip_reason=_cut(each.last_skip_reason))
            for each in status.heartbeats[:_MOST_SHOWN]
        ),
        endpoints=tuple(
            msgspec.structs.replace(
                each,
                model=_cut(each.model),
                service=_cut(each.service),
                reason=_cut(each.reason),
                key_advice=_cut(each.key_advice),
            )
            for each in status.endpoints[:_MOST_SHOWN]
        ),
        surveys=tuple(replace(each, error=_cut(each.error)) for each in status.surveys),
        in_slots=tuple(replace(each, name=_cut(each.name)) for each in status.in_slots),
        unknown=dict(islice(status.unknown.items(), _MOST_SHOWN)),
        stuck=None if status.stuck is None else status.stuck[:_MOST_STACK_LETTERS],
    )


def _cut(text: str) -> str:
    return text[:_MOST_LETTERS]
