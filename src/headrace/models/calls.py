"""How one model is called: from the response cache where it has the answer, else by its provider, through its limiter.

Covers: what a call is expected to take and what it took. Does not cover: what to do with a reply, or after an error
(interviews.interview).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from headrace.limits import EndpointLimits
from headrace.models.limiter import EndpointState
from headrace.models.provider import Provider, Reply, Request
from headrace.models.response_cache import ResponseCache, cache_key
from headrace.models.token_counts import prompt_tokens
from headrace.plan.prices import Price
from headrace.survey.files.file_contents import bring, is_elsewhere
from headrace.survey.files.file_store import FileStore
from headrace.survey.model import Model
from headrace.survey.record import AnswerRecord, ServiceUsage, Usage

_FIRST_OUTPUT_TOKENS = 100.0
_FORGET = 0.95


class ModelCalls(Protocol):
    """A model as an interview uses it."""

    @property
    def is_instant(self) -> bool: ...

    async def ask(self, request: Request, record: AnswerRecord, is_stopping: Callable[[], bool]) -> Reply: ...

    def accepted(self, reply: Reply) -> None:
        """Keeps a reply for other runs, now that it proved to hold an answer."""
        ...

    def charged(self, ordinal: int, record: AnswerRecord) -> None:
        """Reports what the calls for this record of this interview have used so far."""
        ...


class CallLimiter(Protocol):
    """A limiter as calls use it: the endpoint's own, or a worker's stand-in that asks the controller for turns."""

    async def ask(
        self, provider: Provider, request: Request, tokens: float, is_stopping: Callable[[], bool]
    ) -> Reply: ...

    def notice_change(self, provider: Provider) -> None: ...

    def listen(self, listener: Callable[[EndpointState, str], None]) -> None: ...

    def unlisten(self, listener: Callable[[EndpointState, str], None]) -> None: ...


class ReplyCache(Protocol):
    """Replies that earlier runs paid for: the response cache, or a worker's stand-in that asks the controller."""

    async def get(self, key: bytes) -> Reply | None: ...

    def put(self, key: bytes, reply: Reply) -> None: ...


class _CacheHere:
    """The response cache, open in this process."""

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache

    async def get(self, key: bytes) -> Reply | None:
        return self._cache.get(key)

    def put(self, key: bytes, reply: Reply) -> None:
        self._cache.put(key, reply)


class PlainCalls:
    """Calls of the test model: nothing is limited or cached. With a `price`, tokens are paid for, as a rehearsal."""

    def __init__(self, provider: Provider, price: Price | None) -> None:
        self._ask = provider.ask
        self._price = price
        self.is_instant = provider.is_instant

    async def ask(self, request: Request, record: AnswerRecord, is_stopping: Callable[[], bool]) -> Reply:
        reply = await self._ask(request)
        if self._price is not None:
            service = record.service = record.service or ServiceUsage()
            service.cost += self._price.of(reply.input_tokens, reply.output_tokens)
        return reply

    def accepted(self, reply: Reply) -> None:
        pass

    def charged(self, ordinal: int, record: AnswerRecord) -> None:
        pass


OnCharged: TypeAlias = Callable[[int, int, Usage], None]


class ServiceCalls:
    """Calls of a real model. `on_charged` gets an interview's ordinal, a question, and what its calls took so far."""

    def __init__(
        self,
        model: Model,
        provider: Provider,
        limiter: CallLimiter,
        price: Price | None,
        cache: ResponseCache | ReplyCache | None,
        on_charged: OnCharged | None = None,
    ) -> None:
        self._row = model.identity_row()
        self._model = model
        self._on_charged = on_charged
        self._provider = provider
        self._limiter = limiter
        self._price = price
        self._cache = _CacheHere(cache) if isinstance(cache, ResponseCache) else cache
        self._output_tokens = _FIRST_OUTPUT_TOKENS
        self.is_instant = False

    async def ask(self, request: Request, record: AnswerRecord, is_stopping: Callable[[], bool]) -> Reply:
        service = record.service = record.service or ServiceUsage()
        # Only a first attempt: what was asked again was asked because the cached kind of answer did not do.
        key = None
        if self._cache is not None and request.attempt == 1:
            key = self._key(request)
            found = await self._cache.get(key)
            if found is not None:
                service.cache_hits += 1
                found.input_tokens = found.output_tokens = 0  # paid for by another run
                return found
        if request.files and is_elsewhere():
            for each in request.files:  # before its turn comes, which a call that waits for a file would hold
                await asyncio.to_thread(bring, each.file)
        reply = await self._limiter.ask(self._provider, request, self._expected_tokens(request), is_stopping)
        self._account(service, reply)
        reply.cache_key = key
        return reply

    def accepted(self, reply: Reply) -> None:
        if self._cache is not None and reply.cache_key is not None:  # else it came from there, or was asked for again
            self._cache.put(reply.cache_key, reply)

    def charged(self, ordinal: int, record: AnswerRecord) -> None:
        if self._on_charged is not None:
            usage = Usage()
            usage.add(record)
            if usage.calls:
                self._on_charged(ordinal, record.question, usage)

    def _key(self, request: Request) -> bytes:
        # The envelope that is sent has room for a comment, or has none.
        schema = {"answer": request.schema, "comment": True} if request.has_comment else request.schema
        prompt = request.user_prompt if not request.files else _with_digests(request)
        return cache_key(self._row, request.system_prompt, prompt, schema, request.iteration)

    def _expected_tokens(self, request: Request) -> float:
        return prompt_tokens(self._model, request) + self._output_tokens

    def _account(self, service: ServiceUsage, reply: Reply) -> None:
        self._output_tokens = self._output_tokens * _FORGET + reply.output_tokens * (1 - _FORGET)
        service.cached_tokens += reply.cached_tokens
        service.reasoning_tokens += reply.reasoning_tokens
        if self._price is None:
            service.unpriced += 1
        else:
            service.cost += self._price.of(reply.input_tokens, reply.output_tokens, reply.cached_tokens)


def _with_digests(request: Request) -> str:
    """A prompt with files for the cache's key: each by its digest and type, wherever it lies and whatever its name.

    As JSON, so that no text can be taken for a file.
    """
    parts = ([part.digest, part.mime_type] if isinstance(part, FileStore) else part for part in request.parts(""))
    return msgspec.json.encode(["files", *parts]).decode()


def endpoint_limits(model: Model) -> EndpointLimits:
    given = model.parameters
    return EndpointLimits(
        requests_per_minute=given.get("requests_per_minute"), tokens_per_minute=given.get("tokens_per_minute")
    )
