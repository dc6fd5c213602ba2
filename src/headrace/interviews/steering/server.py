"""Carries out steering requests to a run: pause, resume, tune, stop, retry.

Does not cover: the messages (interviews.steering.messages), the socket (store.holder_socket), or asking
(interviews.steering.client).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import structs

from headrace.cluster.node_states import NodeState
from headrace.errors import NotSteerable
from headrace.interviews.run import SurveyRun
from headrace.interviews.steering.messages import (
    MOST_REQUEST_BYTES,
    PauseRequest,
    ResumeRequest,
    RetryCauseRequest,
    RetryRequest,
    StateReply,
    StateRequest,
    SteeringRequest,
    StopGentlyRequest,
    StopNowRequest,
    StopRequest,
    TuneRequest,
    request_in_words,
)
from headrace.models.model_endpoints import ModelEndpoint
from headrace.store.holder_socket.request_server import answering
from headrace.store.holder_socket.socket_address import RefusalReply

# So many letters of up to four bytes leave room in a reply.
_MOST_ENDPOINTS, _MOST_LETTERS = 18, 200
_MOST_NODES, _MOST_NODE_LETTERS = 30, 60

_log = logging.getLogger("headrace")
_requests: msgspec.msgpack.Decoder[SteeringRequest] = msgspec.msgpack.Decoder(SteeringRequest)


def steerable(
    run_path: Path,
    run: SurveyRun,
    endpoints: Callable[[], list[ModelEndpoint]],
    nodes: Callable[[], list[NodeState]],
) -> AbstractAsyncContextManager[None]:
    """While the block runs, the run can be steered. `endpoints` gives those of its models, `nodes` those of a cluster.
    The caller holds the file's lock.
    """

    async def answer(request: SteeringRequest) -> StateReply | RefusalReply:
        if not isinstance(request, StateRequest):
            _log.info("%s: told from another process to %s", run_path.name, request_in_words(request))
        try:
            retried = _carry_out(request, run)
        except NotSteerable as error:
            return RefusalReply(error.message)
        return state_reply(run, endpoints(), nodes(), retried)

    return answering(run_path, _requests, answer, MOST_REQUEST_BYTES)


def _carry_out(request: SteeringRequest, run: SurveyRun) -> int:
    """Do what is asked; how many failed interviews are asked again."""
    match request:
        case StateRequest():
            pass
        case PauseRequest():
            run.pause()
        case ResumeRequest():
            run.resume()
        case TuneRequest(concurrency):
            run.keep_concurrency(concurrency)
        case StopRequest():
            run.stop()
        case StopGentlyRequest():
            run.stop_gently()
        case StopNowRequest():
            run.stop_now()
        case RetryRequest():
            return run.retry_failed()
        case RetryCauseRequest(cause):
            return run.retry_failed([cause])
        case _:
            assert_never(request)
    return 0


def state_reply(run: SurveyRun, endpoints: list[ModelEndpoint], nodes: list[NodeState], retried: int = 0) -> StateReply:
    """How a run of this process stands, in a reply that is not too long."""
    # Those that keep a run waiting first: where there are too many, the others are left out.
    shown = sorted(endpoints, key=lambda each: each.state == "open")[:_MOST_ENDPOINTS]
    progress = run.progress()
    return StateReply(
        pid=os.getpid(),
        concurrency=run.concurrency,
        is_stopping=run.was_stopped,
        progress=replace(progress, notice=progress.notice[:_MOST_LETTERS]),
        retried=retried,
        endpoints=tuple(structs.replace(each, **_cut_texts(each)) for each in shown),
        left_out=len(endpoints) - len(shown),
        nodes=tuple(structs.replace(each, name=each.name[:_MOST_NODE_LETTERS]) for each in nodes[:_MOST_NODES]),
        nodes_left_out=len(nodes[_MOST_NODES:]),
        to_ask_again=run.to_ask_again,
    )


def _cut_texts(endpoint: ModelEndpoint) -> dict[str, str]:
    return {name: getattr(endpoint, name)[:_MOST_LETTERS] for name in ("model", "service", "reason", "key_advice")}
