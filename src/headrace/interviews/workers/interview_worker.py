"""A worker that conducts interviews: the inline executor behind a wire, in a process with hard memory limits.

Covers: the worker's side. It owns nothing: turns at a model's endpoint and replies of the response cache are asked for
from the controller, so that any number of workers keep to what one process would. Does not cover: the controller's side
(interviews.workers.interview_executor), or conducting an interview (interviews.interview).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from itertools import count
from typing import Any

from headrace.errors import ModelUnusable
from headrace.executor import Batch
from headrace.framing import LARGEST_MESSAGE_BYTES
from headrace.interviews.contract import InterviewEvent, Rows
from headrace.interviews.inline import InlineExecutor, InterviewOutOfMemory
from headrace.interviews.workers.interview_wire import (
    Acked,
    Barred,
    CallsBegun,
    Charged,
    EventsSent,
    Found,
    FromSurveyWorker,
    Given,
    Granted,
    Leased,
    LookedUp,
    Opening,
    Paid,
    Ping,
    Pong,
    RowTooLarge,
    Signalled,
    Suspected,
    Taken,
    TurnGivenUp,
    TurnWanted,
    WorkerOpened,
    call_ended,
    decode_opening,
    decode_to_worker,
    encode,
)
from headrace.memory.measure.os_limits import return_large_blocks
from headrace.models.endpoint.call_results import CallResult
from headrace.models.limiter import CallNotMade, EndpointState, ask_in_turn
from headrace.models.provider import Provider, Reply, Request
from headrace.models.shared_limiters import endpoint_key
from headrace.survey.model import Model
from headrace.survey.record import Usage
from headrace.threads.loop_thread import network_loop
from headrace.workers.functions import find_function
from headrace.workers.worker import Port, lend_last_words

_YOUNG_OBJECTS = 20_000  # memory.collector says why
_ENOUGH_BYTES = 8 << 20  # in one message
_MOST_BYTES = LARGEST_MESSAGE_BYTES - (1 << 10)


def conduct_surveys(port: Port, payload: bytes) -> None:
    """Until the controller closes the channel."""
    opening = decode_opening(payload)
    return_large_blocks()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=network_loop() if opening.has_network else None) as runner:
        runner.run(_conduct(port, opening))


async def _conduct(port: Port, opening: Opening) -> None:
    link = Link(port)
    functions = [{name: find_function(f) for name, f in each.items()} for each in opening.functions]
    cache = RemoteCache(link) if opening.has_cache else None
    limiters = RemoteLimiters(link, [Model.from_row(row) for row in opening.spec.models])
    executor = InlineExecutor(functions, limiters, cache, is_expendable=True, on_charged=link.charged)
    await executor.open(opening.spec)
    link.post(WorkerOpened(executor.is_instant))
    tasks = {asyncio.create_task(_obey(port, link, executor)), asyncio.create_task(_tell(link, executor))}
    ended, _ = await asyncio.wait({*tasks, link.out_of_memory}, return_when=asyncio.FIRST_COMPLETED)
    for error in filter(None, (task.exception() for task in ended)):
        if isinstance(error, MemoryError):
            lend_last_words()
        link.say_last([Suspected(error.ordinal)] if isinstance(error, InterviewOutOfMemory) else [])
        raise error


async def _obey(port: Port, link: Link, executor: InlineExecutor) -> None:
    signals: set[asyncio.Task[None]] = set()  # the loop itself would not keep them alive
    while True:
        for message in decode_to_worker(await port.receive_async()):
            match message:
                case Given():
                    link.post(Taken(message.chunk.id))  # leaves before its first interview may hold up the loop
                    await executor.start(message.chunk)
                case Signalled():
                    signal = executor.signal(message.id, message.epoch, message.what, message.deadline_s)
                    signalling = asyncio.create_task(signal)
                    signals.add(signalling)
                    signalling.add_done_callback(lambda task: (signals.discard(task), task.exception()))
                case Leased():
                    executor.lease(message.lease)
                case Acked():
                    executor.ack(message.upto)
                case Granted() | Barred() | Found():
                    link.answered(message)
                case Ping():
                    link.post(Pong())


async def _tell(link: Link, executor: InlineExecutor) -> None:
    async for batch in executor.events():
        told = encode([EventsSent(batch)])
        if len(told) <= _ENOUGH_BYTES:
            await link.send(told)
            continue
        del told  # sending waits for the controller, and this is large
        for event in batch.events:
            await _tell_alone(link, event)


async def _tell_alone(link: Link, event: InterviewEvent) -> None:
    told = encode([EventsSent(Batch(event.seq, [event]))])
    if len(told) <= _MOST_BYTES:
        await link.send(told)
    elif isinstance(event, Rows):
        for ordinal in event.rows.ordinals:  # one: the outbox puts nothing beside so large a row
            link.post(RowTooLarge(event.id, event.seq, ordinal, len(told)))


class Link:
    """The worker's words to the controller, those of one turn of the loop together; and the answers to them.

    `out_of_memory` fails where there was no memory to say them: each of them is waited for, so the worker must end.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._posted: list[FromSurveyWorker] = []
        self._begun = CallsBegun([])  # said together, once for each turn of the loop
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._is_over = False
        self.out_of_memory: asyncio.Future[None] = self._loop.create_future()

    def post(self, message: FromSurveyWorker) -> None:
        if self._is_over:
            return
        if not self._posted:
            self._loop.call_soon(self._flush_soon)
        self._posted.append(message)

    def charged(self, ordinal: int, question: int, usage: Usage) -> None:
        """Leaves with the CallEnded that was posted just before: the controller hears of both or of neither."""
        self.post(Charged(ordinal, question, usage))

    async def send(self, encoded: bytes) -> None:
        """After what was posted before. Waits while the controller does not read: it reads what it can write."""
        self.flush()
        await self._port.send_async(encoded)

    def flush(self) -> None:
        posted, self._posted = self._posted, []
        if not posted:
            return
        try:
            self._port.post(encode(posted))
        except MemoryError:
            self._posted = _without_replies(posted)  # what cannot be said now is among the last words
            if self._posted:
                self._port.post(encode(self._posted))
                self._posted = []

    def _flush_soon(self) -> None:
        try:
            self.flush()
        except MemoryError as error:
            if not self.out_of_memory.done():
                self.out_of_memory.set_exception(error)

    def say_last(self, messages: list[Suspected]) -> None:
        """For a worker that is about to end: returns when everything has left. Calls that its end cancels are not given
        up, but were made: nothing more is said of them.
        """
        posted, self._posted = self._posted, []
        self._is_over = True
        self._port.send(encode([*_without_replies(posted), *messages]))

    @property
    def is_behind(self) -> bool:
        return self._port.is_behind

    async def caught_up(self) -> None:
        await self._port.caught_up()

    def expect(self) -> tuple[int, asyncio.Future[Any]]:
        """A number to ask under, and where the answer will be."""
        call = next(self._numbers)
        answer = self._waiting[call] = self._loop.create_future()
        return call, answer

    def answered(self, message: Granted | Barred | Found) -> None:
        answer = self.forget(message.call)
        if answer is None or answer.done():
            return  # given up meanwhile; the controller has been told, or is about to be
        match message:
            case Granted():
                self._note_begun(message.call)
                answer.set_result(message.call)
            case Barred():
                answer.set_exception(ModelUnusable(message.reason))
            case Found():
                answer.set_result(message.reply)

    def _note_begun(self, call: int) -> None:
        if not self._posted or self._posted[-1] is not self._begun:
            self._begun = CallsBegun([])
            self.post(self._begun)
        self._begun.calls.append(call)

    def forget(self, call: int) -> asyncio.Future[Any] | None:
        return self._waiting.pop(call, None)


def _without_replies(posted: list[FromSurveyWorker]) -> list[FromSurveyWorker]:
    """Replies are for the response cache, which can do without them; all else is small."""
    return [message for message in posted if not isinstance(message, Paid)]


class RemoteLimiter:
    """A model's limiter, which the controller keeps: each call asks for its turn there."""

    def __init__(self, link: Link, model: int) -> None:
        self._link = link
        self._model = model
        self._line: dict[int, Callable[[], bool]] = {}  # bounded by the window

    async def ask(self, provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]) -> Reply:
        return await ask_in_turn(self, provider, request, tokens, is_stopping)

    async def turn(self, tokens: float, is_stopping: Callable[[], bool]) -> int:
        if self._link.is_behind:  # replies that have not left take memory here: no call before they have
            await self._link.caught_up()
        if is_stopping():
            raise CallNotMade("the run is stopping")
        call, answer = self._link.expect()
        self._link.post(TurnWanted(call, self._model, tokens))
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

    def listen(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass  # the controller's limiter tells the controller

    def unlisten(self, listener: Callable[[EndpointState, str], None]) -> None:
        pass

    def _give_up(self, call: int) -> asyncio.Future[Any] | None:
        self._link.post(TurnGivenUp(call))
        return self._link.forget(call)


class RemoteLimiters:
    """One for each endpoint, which the controller knows by the place of one of its models in the spec."""

    def __init__(self, link: Link, models: list[Model]) -> None:
        self._limiters = {endpoint_key(model): RemoteLimiter(link, place) for place, model in enumerate(models)}

    def limiter(self, model: Model) -> RemoteLimiter:
        return self._limiters[endpoint_key(model)]

    def allow(self, interviews: int) -> None:
        pass  # the controller's limiters know

    def release_stopped(self) -> None:
        for limiter in self._limiters.values():
            limiter.release_stopped()

    def close(self) -> None:
        pass


class RemoteCache:
    """The response cache, which the controller has open."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, key: bytes) -> Reply | None:
        call, answer = self._link.expect()
        self._link.post(LookedUp(call, key))
        try:
            return await answer
        finally:
            self._link.forget(call)

    def put(self, key: bytes, reply: Reply) -> None:
        self._link.post(Paid(key, reply))
