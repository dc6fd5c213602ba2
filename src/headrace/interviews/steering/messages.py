"""The requests and replies that steer a run from another process.

Does not cover: the socket they travel through (store.holder_socket), answering (interviews.steering.server), or asking
(interviews.steering.client).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from headrace.models.model_endpoints import ModelEndpoint
from headrace.progress.pace import Progress
from headrace.survey.record import Cause

MOST_REQUEST_BYTES = 1_000
MOST_REPLY_BYTES = 64_000


class StateRequest(msgspec.Struct, frozen=True, tag="state"):
    """Changes nothing."""


class PauseRequest(msgspec.Struct, frozen=True, tag="pause"):
    """Admit nothing more, let interviews in flight end, and wait."""


class ResumeRequest(msgspec.Struct, frozen=True, tag="resume"):
    """Admit again."""


class TuneRequest(msgspec.Struct, frozen=True, tag="tune"):
    """Let so many interviews be in flight."""

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=10**9)]


class StopRequest(msgspec.Struct, frozen=True, tag="stop"):
    """Stop as Ctrl-C does: once, interviews in flight end; twice, stop now."""


class RetryRequest(msgspec.Struct, frozen=True, tag="retry"):
    """Ask those that have failed again, whatever the cause."""


class RetryCauseRequest(msgspec.Struct, frozen=True, tag="retry cause"):
    """Ask those again that have failed for this cause. Not a field of `RetryRequest`: a run of an older version would
    pass over it and ask all again.
    """

    cause: Cause


SteeringRequest: TypeAlias = (
    StateRequest | PauseRequest | ResumeRequest | TuneRequest | StopRequest | RetryRequest | RetryCauseRequest
)


class StateReply(msgspec.Struct, frozen=True, tag="run"):
    """How the run stands after a request: its process, and the endpoints of its models, of which `left_out` did not
    fit. `retried` is how many failed interviews it asks again because of the request.
    """

    pid: int
    concurrency: int
    is_stopping: bool
    progress: Progress
    retried: int = 0
    endpoints: tuple[ModelEndpoint, ...] = ()
    left_out: int = 0
