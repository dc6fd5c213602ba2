"""Steers a run that goes on: pause, resume, concurrency, stop, asking failed interviews again.

The run's own process does it (interviews.steering): the page starts no run and reads no key. Does not cover: the forms
(web.pages.steering_pages), or what the user can type instead (web.api.typed_commands).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec

from headrace.display import counted
from headrace.errors import HeadraceError, NotRunning, QueryTimeout
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import (
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
from headrace.interviews.steering.run_file_status import live_activity, live_state
from headrace.limits import Keep
from headrace.store.queries.query_clock import QueryClock
from headrace.store.run_file.details import count_failed_for
from headrace.store.run_file.keeping.stored_keep import read_keeping
from headrace.store.run_file.reader import Reader
from headrace.survey.record import Cause
from headrace.web.api.run_summary import OneRun
from headrace.web.api.typed_commands import SteeringAction, at_terminal
from headrace.web.operations import AnyOperation, Method, PageOperation
from headrace.web.shown_files import ShownFiles

_log = logging.getLogger("headrace")
_COUNT_WITHIN_S = 0.3
Concurrency = Annotated[int, msgspec.Meta(ge=1, le=10**6)]


class Tuning(msgspec.Struct, frozen=True):
    run: str
    concurrency: Concurrency


class Stopping(msgspec.Struct, frozen=True):
    """`now` gives up what is in flight, of a run that is stopping already too."""

    run: str
    now: bool = False


class Retrying(msgspec.Struct, frozen=True):
    """`cause` is that of a group of failures; without it, whatever has failed is asked again."""

    run: str
    cause: Cause | None = None


class Steered(msgspec.Struct, frozen=True):
    """What came of it, in words, and how the run stands then. `retried` failed interviews are asked again because of
    it; `to_ask_again` have not ended yet.
    """

    did: str
    state: str
    pid: int
    concurrency: int
    in_flight: int
    done: int
    total: int
    retried: int
    to_ask_again: int


def _pause(files: ShownFiles, asked: OneRun) -> Steered:
    return _asked_of(files, asked.run, PauseRequest(), "Paused: nothing more is started, what is in flight ends.")


def _resume(files: ShownFiles, asked: OneRun) -> Steered:
    return _asked_of(files, asked.run, ResumeRequest(), "It goes on.")


def _tune(files: ShownFiles, asked: Tuning) -> Steered:
    words = f"Up to {counted(asked.concurrency, 'interview')} may be in flight from now on, and in later runs."
    return _asked_of(files, asked.run, TuneRequest(asked.concurrency), words)


def _stop(files: ShownFiles, asked: Stopping) -> Steered:
    if not asked.now:
        return _asked_of(files, asked.run, StopGentlyRequest(), "It stops as soon as what is in flight has ended.")
    # A second request to stop means the same, and an older run knows no other.
    is_stopping = _answer(files.one(asked.run).path, StateRequest()).is_stopping
    return _asked_of(files, asked.run, StopRequest() if is_stopping else StopNowRequest(), "It stops now.")


def _retry(files: ShownFiles, asked: Retrying) -> Steered:
    return _asked_of(files, asked.run, RetryCauseRequest(asked.cause) if asked.cause else RetryRequest(), "")


def _answer(path: Path, request: SteeringRequest) -> StateReply:
    """What the run answers; where no process runs it, the error says how to go on with this very file."""
    try:
        return ask(path, request)
    except NotRunning as error:
        typed = at_terminal(SteeringAction.RESUME, path)
        if typed.functions:
            fix = f"Run the program again that made it, which has {', '.join(typed.functions)}."
        else:
            fix = f"To go on with it: {typed.command}" if typed.command else "It is complete."
        raise NotRunning(error.message, path=path, fix=fix) from None


def failed_for(path: Path, cause: Cause) -> int | None:
    """How many interviews have failed for this cause; None where that is not known at once."""
    reader = Reader(path)
    try:
        with reader.snapshot(QueryClock(_COUNT_WITHIN_S)) as connection:
            keep = read_keeping(connection, path).keep
            return None if keep is Keep.NOTHING else count_failed_for(connection, cause)
    except QueryTimeout:
        return None
    finally:
        reader.close()


def _asked_of(files: ShownFiles, run: str, request: SteeringRequest, did: str) -> Steered:
    path = files.one(run).path
    try:
        state = _answer(path, request)
    except HeadraceError as error:
        _log.info("%s: asked through the page to %s: %s", path.name, request_in_words(request), error.message)
        raise
    told = request_in_words(request)
    _log.info("%s: asked through the page to %s: process %d is %s", path.name, told, state.pid, live_activity(state))
    return _steered(state, did or _retried(state.retried))


def _retried(count: int) -> str:
    if not count:
        return "No such interview has failed."
    return f"{counted(count, 'failed interview')} will be asked again, behind the rest of the plan."


def _steered(state: StateReply, did: str) -> Steered:
    return Steered(
        did=did,
        state=live_state(state),
        pid=state.pid,
        concurrency=state.concurrency,
        in_flight=state.progress.in_flight or 0,
        done=state.progress.done,
        total=state.progress.total,
        retried=state.retried,
        to_ask_again=state.to_ask_again,
    )


PAUSE = PageOperation(
    name="pause",
    summary="Have a run start nothing more and wait; what is in flight ends.",
    path="/runs/{run}/pause",
    parameters=OneRun,
    reply=Steered,
    call=_pause,
    method=Method.POST,
)
RESUME = PageOperation(
    name="resume",
    summary="Let a paused run go on.",
    path="/runs/{run}/resume",
    parameters=OneRun,
    reply=Steered,
    call=_resume,
    method=Method.POST,
)
CONCURRENCY = PageOperation(
    name="concurrency",
    summary="Change how many interviews may be in flight.",
    path="/runs/{run}/concurrency",
    parameters=Tuning,
    reply=Steered,
    call=_tune,
    method=Method.POST,
)
STOP = PageOperation(
    name="stop",
    summary="Stop a run once what is in flight has ended, or now; it can be resumed.",
    path="/runs/{run}/stop",
    parameters=Stopping,
    reply=Steered,
    call=_stop,
    method=Method.POST,
)
RETRY = PageOperation(
    name="retry",
    summary="Have a run ask its failed interviews again, all or those of one cause.",
    path="/runs/{run}/retry",
    parameters=Retrying,
    reply=Steered,
    call=_retry,
    method=Method.POST,
)
STEERING: dict[SteeringAction, AnyOperation] = {
    SteeringAction.PAUSE: PAUSE,
    SteeringAction.RESUME: RESUME,
    SteeringAction.CONCURRENCY: CONCURRENCY,
    SteeringAction.STOP: STOP,
    SteeringAction.RETRY: RETRY,
}
