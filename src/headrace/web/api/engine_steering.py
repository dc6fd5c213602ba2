"""Steers the runs of an engine that has its file open: cancel, retry, send a message, decide about a side effect.

The engine's own process does it (agents.steering), and each is one of its events. Does not cover: the forms
(web.pages.steering_pages).
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Annotated

import msgspec

from headrace.agents.steering.engine_client import steer_run
from headrace.agents.steering.engine_messages import (
    MOST_MESSAGE_LETTERS,
    CancelRunRequest,
    ResolveRequest,
    RetryRunRequest,
    RunRequest,
    SendRequest,
)
from headrace.errors import HeadraceError, InvalidInput
from headrace.store.engine_file.engine_queries import agent_run
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.store.engine_file.engine_schema import RunState
from headrace.web.api.agent_runs import NoSuchRun, RunNumber
from headrace.web.api.engine_summary import engine_file
from headrace.web.operations import READ_TIMEOUT_S, AnyOperation, Method, PageOperation
from headrace.web.shown_files import ShownFiles

_log = logging.getLogger("headrace")
_Json = Annotated[str, msgspec.Meta(max_length=MOST_MESSAGE_LETTERS)]
_PATH = "/engines/{engine}/runs/{number}"


class EngineAction(Enum):
    CANCEL = "cancel"
    RETRY = "retry"
    SEND = "send"
    RESOLVE = "resolve"


class SteeredRun(msgspec.Struct, frozen=True):
    engine: str
    number: RunNumber


class Sending(msgspec.Struct, frozen=True):
    """A message to an agent run, which gets what `message` holds as JSON."""

    engine: str
    number: RunNumber
    message: _Json


class Resolving(msgspec.Struct, frozen=True):
    """Whether the side effect of a step happened; where it did, `result` is the step's, in JSON."""

    engine: str
    number: RunNumber
    step: Annotated[str, msgspec.Meta(max_length=10_000)]
    happened: bool
    result: _Json = ""


class RunSteered(msgspec.Struct, frozen=True):
    """What came of it, in words, and the run's state then."""

    did: str
    state: str


def _cancel(files: ShownFiles, asked: SteeredRun) -> RunSteered:
    return _steered(files, asked.engine, CancelRunRequest(asked.number), "It is cancelled, with its children.")


def _retry(files: ShownFiles, asked: SteeredRun) -> RunSteered:
    return _steered(files, asked.engine, RetryRunRequest(asked.number), "It is tried again, behind its last step.")


def _send(files: ShownFiles, asked: Sending) -> RunSteered:
    request = SendRequest(asked.number, asked.message)
    return _steered(files, asked.engine, request, "The message is saved; the run takes messages in order.")


def _resolve(files: ShownFiles, asked: Resolving) -> RunSteered:
    if not asked.happened:
        request = ResolveRequest(asked.number, asked.step, None)
        return _steered(files, asked.engine, request, "It did not happen: the step runs again.")
    if not asked.result.strip():
        raise InvalidInput("What happened has a result.", fix="Give it in JSON; null where the step returns nothing.")
    request = ResolveRequest(asked.number, asked.step, asked.result)
    return _steered(files, asked.engine, request, "It happened: the run goes on with this result.")


def _steered(files: ShownFiles, engine: str, request: RunRequest, did: str) -> RunSteered:
    path = engine_file(files, engine).path
    what = type(request).__name__.removesuffix("Request")  # without its texts, which are not for a log
    try:
        reply = steer_run(path, request)
    except HeadraceError as error:
        _log.info("%s: run %d, %s through the page: %s", path.name, request.run, what, error.message)
        with reading_engine(path, READ_TIMEOUT_S) as reader:
            is_known = agent_run(reader, request.run) is not None
        if not is_known:
            raise NoSuchRun(request.run) from None
        raise
    state = RunState(reply.state).word
    _log.info("%s: run %d, %s through the page: it is %s", path.name, request.run, what, state)
    if isinstance(request, CancelRunRequest) and not RunState(reply.state).is_final:
        did = "It was told to stop, and is cancelled as soon as it has."
    return RunSteered(did, state)


ENGINE_STEERING: dict[EngineAction, AnyOperation] = {
    EngineAction.CANCEL: PageOperation(
        name="cancel_agent_run",
        summary="End an agent run for good, with its children.",
        path=f"{_PATH}/cancel",
        parameters=SteeredRun,
        reply=RunSteered,
        call=_cancel,
        method=Method.POST,
    ),
    EngineAction.RETRY: PageOperation(
        name="retry_agent_run",
        summary="Let a failed agent run go on behind its last step.",
        path=f"{_PATH}/retry",
        parameters=SteeredRun,
        reply=RunSteered,
        call=_retry,
        method=Method.POST,
    ),
    EngineAction.SEND: PageOperation(
        name="send_message",
        summary="Send an agent run a message.",
        path=f"{_PATH}/send",
        parameters=Sending,
        reply=RunSteered,
        call=_send,
        method=Method.POST,
    ),
    EngineAction.RESOLVE: PageOperation(
        name="resolve_side_effect",
        summary="Decide about a side effect that was cut short.",
        path=f"{_PATH}/resolve",
        parameters=Resolving,
        reply=RunSteered,
        call=_resolve,
        method=Method.POST,
    ),
}
