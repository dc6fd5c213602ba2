"""A worker that conducts interviews: the inline executor behind a wire, in a process with hard memory limits.

Covers: the worker's side. It owns nothing: turns at a model's endpoint and replies of the response cache are asked for
from the controller, so that any number of workers keep to what one process would. Does not cover: the controller's side
(interviews.workers.interview_executor), or conducting an interview (interviews.interview).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from headrace.cluster.node_file_source import NodeFileSource
from headrace.errors import ModelUnusable
from headrace.interviews.contract import InterviewEvent, Rows
from headrace.interviews.inline import InlineExecutor, InterviewOutOfMemory
from headrace.interviews.workers.interview_wire import (
    CacheAnswer,
    CacheLookup,
    CacheReply,
    CallsBegun,
    Charged,
    ChunkTaken,
    FromSurveyWorker,
    InterviewSuspected,
    Opening,
    Ping,
    Pong,
    RowTooLarge,
    SetAddresses,
    SetLease,
    StartChunk,
    ToSurveyWorker,
    TurnGivenUp,
    TurnGranted,
    TurnRefused,
    TurnWanted,
    WorkerOpened,
    call_ended,
    decode_opening,
    decode_to_worker,
)
from headrace.memory.measure.os_limits import return_large_blocks
from headrace.models.address_list import AddressList
from headrace.models.endpoint.call_results import CallResult
from headrace.models.limiter import CallNotMade, EndpointState, ask_in_turn
from headrace.models.provider import Provider, Reply, Request
from headrace.models.shared_limiters import endpoint_key
from headrace.priority import Priority
from headrace.survey.files.file_contents import add_source
from headrace.survey.model import Model, address_file_of
from headrace.survey.record import Usage
from headrace.threads.loop_thread import network_loop
from headrace.workers.functions import find_function
from headrace.workers.hosting.executor_host import HostLink, host_executor
from headrace.workers.hosting.executor_wire import AckEvents, SignalWork
from headrace.workers.worker import Port, lend_last_words

_YOUNG_OBJECTS = 20_000  # memory.collector says why


def conduct_surveys(port: Port, payload: bytes) -> None:
    """Until the controller closes the channel."""
    opening = decode_opening(payload)
    return_large_blocks()
    if (files := NodeFileSource.find()) is not None:
        add_source(files)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=network_loop() if opening.has_network else None) as runner:
        runner.run(_conduct(port, opening))


async def _conduct(port: Port, opening: Opening) -> None:
    link = CallLink(port)
    functions = [{name: find_function(f) for name, f in each.items()} for each in opening.functions]
    cache = RemoteCache(link) if opening.has_cache else None
    limiters = RemoteLimiters(link, [Model.from_row(row) for row in opening.spec.models])
    executor = InlineExecutor(functions, limiters, cache, is_expendable=True, on_charged=link.charged)
    await executor.open(opening.spec)
    link.post(WorkerOpened(executor.is_instant))
    try:
        await host_executor(
            port, link, executor, decode_to_worker, partial(_obey, link, executor, limiters), link.too_large
        )
    except Exception as error:
        if isinstance(error, MemoryError):
            lend_last_words()
        # Calls that the worker's end cancels were made: nothing more is sent of them.
        link.send_last([InterviewSuspected(error.ordinal)] if isinstance(error, InterviewOutOfMemory) else [])
        raise


async def _obey(link: CallLink, executor: InlineExecutor, limiters: RemoteLimiters, message: ToSurveyWorker) -> bool:
    match message:
        case StartChunk():
            # Leaves before the chunk's first interview may hold up the loop.
            link.post(ChunkTaken(message.chunk.id, message.chunk.epoch))
            await executor.start(message.chunk)
        case SetLease():
            executor.lease(message.lease)
        case SetAddresses():
            limiters.set_addresses(message.model, message.urls)
        case TurnGranted() | TurnRefused() | CacheAnswer():
            link.answered(message)
        case Ping():
            link.post(Pong())
        case SignalWork() | AckEvents():
            pass  # `host_executor` obeys these
    return False


class CallLink(HostLink[FromSurveyWorker]):
    """The link of a worker that asks its controller for turns and cached replies, and waits for the answers."""

    def __init__(self, port: Port) -> None:
        # Replies are for the response cache, which can do without them; all else is small.
        super().__init__(port, is_expendable=lambda message: isinstance(message, CacheReply))
        self._begun = CallsBegun([])  # sent together, once for each turn of the loop
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)

    def charged(self, ordinal: int, question: int, usage: Usage) -> None:
        """Leaves with the CallEnded that was posted just before: the controller hears of both or of neither."""
        self.post(Charged(ordinal, question, usage))

    def too_large(self, event: InterviewEvent, size_bytes: int) -> None:
        if isinstance(event, Rows):
            for ordinal in event.rows.ordinals:  # one: the outbox puts nothing beside so large a row
                self.post(RowTooLarge(event.id, event.epoch, event.seq, ordinal, size_bytes))

    def expect(self) -> tuple[int, asyncio.Future[Any]]:
        """A number to ask under, and where the answer will be."""
        call = next(self._numbers)
        answer = self._waiting[call] = self._loop.create_future()
        return call, answer

    def answered(self, message: TurnGranted | TurnRefused | CacheAnswer) -> None:
        answer = self.forget(message.call)
        if answer is None or answer.done():
            return  # given up meanwhile; a TurnGivenUp is on its way
        match message:
            case TurnGranted():
                self._note_begun(message.call)
                answer.set_result(message.call)
            case TurnRefused():
                answer.set_exception(ModelUnusable(message.reason))
            case CacheAnswer():
                answer.set_result(message.reply)

    def _note_begun(self, call: int) -> None:
        if not self._posted or self._posted[-1] is not self._begun:
            self._begun = CallsBegun([])
            self.post(self._begun)
        self._begun.calls.append(call)

    def forget(self, call: int) -> asyncio.Future[Any] | None:
        return self._waiting.pop(call, None)


class RemoteLimiter:
    """A model's limiter, which the controller keeps: each call asks for its turn there."""

    def __init__(self, link: CallLink, model: int) -> None:
        self._link = link
        self._model = model
        self._line: dict[int, Callable[[], bool]] = {}  # bounded by the window

    async def ask(self, provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Reply:
        return await ask_in_turn(self, provider, request, tokens, is_stopping)

    async def turn(self, tokens: float, is_stopping: Callable[[], bool], priority: Priority) -> int:
        if self._link.is_behind:  # replies that have not left take memory here: no call before they have
            await self._link.caught_up()
        if is_stopping():
            raise CallNotMade("the run is stopping")
        call, answer = self._link.expect()
        self._link.post(TurnWanted(call, self._model, tokens, priority))
        self._line[call] = is_stopping
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(call)
            raise
        finally:
            self._line.pop(call, None)

    def ended(self, go: int, outcome: CallResult) -> None:
        self._link.post(call_ended(go, outcome))

    def release_stopped(self) -> None:
        for call in [call for call, is_stopping in self._line.items() if is_stopping()]:
            answer = self._give_up(call)
            if answer is not None and not answer.done():
                answer.set_exception(CallNotMade("the run is stopping"))

    def notice_change(self, provider: Provider) -> None:
        pass  # a run with workers has limiters of its own: what they refuse was refused in this run

    def listen(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass  # the controller listens to its own limiter

    def unlisten(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass

    def _give_up(self, call: int) -> asyncio.Future[Any] | None:
        self._link.post(TurnGivenUp(call))
        return self._link.forget(call)


class RemoteLimiters:
    """One for each endpoint, which the controller knows by the position of one of its models in the spec."""

    def __init__(self, link: CallLink, models: list[Model]) -> None:
        self._keys = [endpoint_key(model) for model in models]
        self._limiters = {key: RemoteLimiter(link, position) for position, key in enumerate(self._keys)}
        with_file = (model for model in models if address_file_of(model.parameters) is not None)
        self._addresses = {endpoint_key(model): AddressList() for model in with_file}

    def limiter(self, model: Model) -> RemoteLimiter:
        return self._limiters[endpoint_key(model)]

    def addresses(self, model: Model) -> AddressList | None:
        """Those that the controller has told; none before the first chunk."""
        return self._addresses.get(endpoint_key(model))

    def set_addresses(self, model: int, urls: list[str]) -> None:
        self._addresses[self._keys[model]].replace(urls)

    def allow(self, interviews: int) -> None:
        pass  # the controller's limiters know

    def release_stopped(self) -> None:
        for limiter in self._limiters.values():
            limiter.release_stopped()

    def close(self) -> None:
        pass


class RemoteCache:
    """The response cache, which the controller has open."""

    def __init__(self, link: CallLink) -> None:
        self._link = link

    async def get(self, key: bytes) -> Reply | None:
        call, answer = self._link.expect()
        self._link.post(CacheLookup(call, key))
        try:
            return await answer
        finally:
            self._link.forget(call)

    def put(self, key: bytes, reply: Reply) -> None:
        self._link.post(CacheReply(key, reply))
