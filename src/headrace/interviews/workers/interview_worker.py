"""A worker that conducts interviews: the inline executor behind a wire, in a process with hard memory limits.

Covers: the worker's side. It owns nothing: turns at a model's endpoint and replies of the response cache are asked for
from the controller, so that any number of workers keep to what one process would. Does not cover: those turns
(interviews.workers.remote_limiter), the controller's side (interviews.workers.interview_executor), or conducting an
interview (interviews.interview).
"""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from itertools import count

from headrace.cluster.node_file_source import NodeFileSource
from headrace.interviews.contract import InterviewEvent, Rows
from headrace.interviews.inline import InlineExecutor, InterviewOutOfMemory
from headrace.interviews.interview_outbox import InterviewOutbox
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
    TurnGranted,
    TurnRefused,
    TurnsRecalled,
    WorkerOpened,
    decode_opening,
    decode_to_worker,
)
from headrace.interviews.workers.remote_limiter import RemoteLimiters
from headrace.memory.measure.os_limits import return_large_blocks
from headrace.models.provider import Reply
from headrace.survey.files.file_contents import add_source
from headrace.survey.model import Model
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
    models = [Model.from_row(row) for row in opening.spec.models]
    outbox = InterviewOutbox()
    limiters = RemoteLimiters(link, models, outbox.is_journaled)
    executor = InlineExecutor(functions, limiters, cache, outbox, is_expendable=True, on_charged=link.charged)
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
        case TurnGranted() | TurnRefused() | TurnsRecalled():
            limiters.take(message)
        case CacheAnswer():
            link.answered(message)
        case Ping():
            link.post(Pong())
        case SignalWork() | AckEvents():
            pass  # `host_executor` obeys these
    return False


class CallLink(HostLink[FromSurveyWorker]):
    """The link of a worker that asks its controller for turns and cached replies."""

    def __init__(self, port: Port) -> None:
        # Replies are for the response cache, which can do without them; all else is small.
        super().__init__(port, is_expendable=lambda message: isinstance(message, CacheReply))
        self._begun = CallsBegun([])  # sent together, once for each turn of the loop
        self._lookups: dict[int, asyncio.Future[Reply | None]] = {}
        self._numbers = count(1)

    def charged(self, ordinal: int, question: int, usage: Usage) -> None:
        """Leaves with the CallEnded that was posted just before: the controller hears of both or of neither."""
        self.post(Charged(ordinal, question, usage))

    def too_large(self, event: InterviewEvent, size_bytes: int) -> None:
        if isinstance(event, Rows):
            for ordinal in event.rows.ordinals:  # one: the outbox puts nothing beside so large a row
                self.post(RowTooLarge(event.id, event.epoch, event.seq, ordinal, size_bytes))

    def number(self) -> int:
        """A number to ask under."""
        return next(self._numbers)

    async def cached(self, key: bytes) -> Reply | None:
        call = self.number()
        answer = self._lookups[call] = self._loop.create_future()
        self.post(CacheLookup(call, key))
        try:
            return await answer
        finally:
            self._lookups.pop(call, None)

    def answered(self, message: CacheAnswer) -> None:
        answer = self._lookups.get(message.call)
        if answer is not None and not answer.done():
            answer.set_result(message.reply)

    def note_begun(self, call: int) -> None:
        if not self._posted or self._posted[-1] is not self._begun:
            self._begun = CallsBegun([])
            self.post(self._begun)
        self._begun.calls.append(call)


class RemoteCache:
    """The response cache, which the controller has open."""

    def __init__(self, link: CallLink) -> None:
        self._link = link

    async def get(self, key: bytes) -> Reply | None:
        return await self._link.cached(key)

    def put(self, key: bytes, reply: Reply) -> None:
        self._link.post(CacheReply(key, reply))
