"""The requests and replies that steer a run from another process.

Does not cover: the socket they travel through (store.holder_socket), answering (interviews.steering.server), or asking
(interviews.steering.client).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, assert_never

import msgspec

from headrace.cluster.node_states import NodeState
from headrace.display import counted
from headrace.models.model_endpoints import ModelEndpoint
from headrace.progress.pace import Progress
from headrace.survey.record import Cause

MOST_REQUEST_BYTES = 1_000
MOST_REPLY_BYTES = 80_000


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


class StopGentlyRequest(msgspec.Struct, frozen=True, tag="stop gently"):
    """Let what is in flight end, and stop; refused where the run is stopping already, so that one request that comes
    twice is none to stop now. A run of an older version refuses it.
    """


class StopNowRequest(msgspec.Struct, frozen=True, tag="stop now"):
    """Give up what is in flight at once, as Ctrl-C twice does. A run of an older version refuses it."""


class RetryRequest(msgspec.Struct, frozen=True, tag="retry"):
    """Ask those that have failed again, whatever the cause."""


class RetryCauseRequest(msgspec.Struct, frozen=True, tag="retry cause"):
    """Ask those again that have failed for this cause. Not a field of `RetryRequest`: a run of an older version would
    pass over it and ask all again.
    """

    cause: Cause


SteeringRequest: TypeAlias = (
    StateRequest
    | PauseRequest
    | ResumeRequest
    | TuneRequest
    | StopRequest
    | StopGentlyRequest
    | StopNowRequest
    | RetryRequest
    | RetryCauseRequest
)


def request_in_words(request: SteeringRequest) -> str:
    """What is asked of the run, as a log says it behind "asked to"."""
    match request:
        case StateRequest():
            return "say how it stands"
        case PauseRequest():
            return "pause"
        case ResumeRequest():
            return "go on"
        case TuneRequest(concurrency):
            return f"have at most {counted(concurrency, 'interview')} in flight"
        case StopRequest() | StopGentlyRequest():
            return "stop"
        case StopNowRequest():
            return "stop now"
        case RetryRequest():
            return "ask its failed interviews again"
        case RetryCauseRequest(cause):
            return f"ask the interviews again that failed because of: {cause.value}"
        case _:
            assert_never(request)


class StateReply(msgspec.Struct, frozen=True, tag="run"):
    """How the run stands after a request: its process, and the endpoints of its models, of which `left_out` did not
    fit; likewise the `nodes` of a cluster. `retried` is how many failed interviews it asks again because of the
    request, `to_ask_again` how many of those have not ended yet, whichever request it was.
    """

    pid: int
    concurrency: int
    is_stopping: bool
    progress: Progress
    retried: int = 0
    endpoints: tuple[ModelEndpoint, ...] = ()
    left_out: int = 0
    nodes: tuple[NodeState, ...] = ()
    nodes_left_out: int = 0
    to_ask_again: int = 0
