"""`AgentCalls`: how agent runs call models, through the same providers, limiters, response cache and prices as surveys.

Covers: one reply to one prompt, with retries as the service asks. Does not cover: journaling (`context`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import TypeAlias

from headrace.errors import InvalidAnswer, ModelUnusable, ProviderTimeout, ProviderUnavailable
from headrace.limits import RetryLimits
from headrace.models.calls import ModelCalls, PlainCalls, ServiceCalls
from headrace.models.endpoint.retry import wait_before_retry_s
from headrace.models.limiter import CallNotMade
from headrace.models.provider import Finish, FinishedCall, Provider, Reply, Request
from headrace.models.response_cache import ResponseCache
from headrace.models.services import load_service, provider_for
from headrace.models.shared_limiters import SharedLimiters, endpoint_key
from headrace.plan.prices import Price, price_of
from headrace.priority import Priority
from headrace.survey.model import Model
from headrace.survey.record import AnswerRecord, AnswerState, Usage

CallListener: TypeAlias = Callable[[FinishedCall], None]

_TEXT = {"type": "string"}
_LONGEST_S = 1e8  # an event loop's clock takes no more


class ReplyTimeout:
    """How long a caller waits for a reply. Another caller may take its place, and then waits anew."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self._limit: asyncio.Timeout | None = None

    @property
    def is_over(self) -> bool:
        return self._limit is not None and self._limit.expired()

    def begin(self) -> asyncio.Timeout:
        self._limit = asyncio.timeout(None if self.timeout_s is None else min(self.timeout_s, _LONGEST_S))
        return self._limit

    def end(self) -> None:
        self._limit = None

    def restart(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        if self._limit is not None and not self._limit.expired():
            now_s = asyncio.get_running_loop().time()
            self._limit.reschedule(None if timeout_s is None else now_s + min(timeout_s, _LONGEST_S))


class AgentCalls:
    """`cache` is asked for when a real model is first called; `count` hears what each reply took."""

    def __init__(
        self, endpoints: SharedLimiters, cache: Callable[[], ResponseCache | None], count: Callable[[Usage], None]
    ) -> None:
        self._endpoints = endpoints
        self._cache = cache
        self._count = count
        self._retry = RetryLimits()
        self._calls: dict[bytes, tuple[Provider, ModelCalls]] = {}  # as many as there are models
        self._met: dict[bytes, Model] = {}  # of those, the ones with functions
        self._looking_up = asyncio.Lock()

    def meet(self, model: Model) -> None:
        """One that is about to be asked: a row does not hold its functions."""
        if model.functions:
            self._met[model.to_row()] = model

    async def ask(
        self,
        row: bytes,
        prompt: str,
        system: str,
        is_stopping: Callable[[], bool],
        priority: Priority,
        patience: ReplyTimeout,
        heard: CallListener | None = None,
    ) -> str:
        """The model's reply; raises ProviderTimeout when `patience` ends, and what stays unsent then is never sent.
        `heard` gets the call when it has ended.
        """
        model = self._met.get(row) or Model.from_row(row)
        request = Request("ask", system, prompt, _TEXT, {}, {}, 0, 1, priority=priority)
        try:
            async with patience.begin():
                if heard is None:
                    return await self._ask(model, request, is_stopping, Usage())
                return await self._ask_heard(model, request, is_stopping, heard)
        except TimeoutError:
            if patience.timeout_s is None or not patience.is_over:
                raise
            raise self._took_too_long(model, patience.timeout_s) from None
        except ModelUnusable as error:
            again = f"{error.fix} It is asked again when its key has changed, after engine.reopen({model.name!r}),"
            again = f"{again} or after a while.".lstrip()
            raise ModelUnusable(error.message, fix=again, key_advice=error.key_advice) from error
        finally:
            patience.end()

    def _took_too_long(self, model: Model, timeout_s: float) -> ProviderTimeout:
        endpoint = "".join(f" {endpoint}." for endpoint in self._endpoints.shown(model))
        return ProviderTimeout(
            f"{model.name} gave no reply within timeout_s={timeout_s:g}, and is not asked any more.{endpoint}"
        )

    async def _ask_heard(
        self, model: Model, request: Request, is_stopping: Callable[[], bool], heard: CallListener
    ) -> str:
        started_at, started_s, usage = time.time(), time.monotonic(), Usage()
        reply, error = "", ""
        try:
            reply = await self._ask(model, request, is_stopping, usage)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            if error != CallNotMade.__name__:
                heard(
                    FinishedCall(
                        model=model,
                        prompt=request.user_prompt,
                        system=request.system_prompt,
                        usage=usage,
                        started_at=started_at,
                        took_s=time.monotonic() - started_s,
                        reply=reply,
                        error=error,
                    )
                )
        return reply

    async def _ask(self, model: Model, request: Request, is_stopping: Callable[[], bool], usage: Usage) -> str:
        """The model's reply, whatever it says; `usage` gets what it took. One that is of no use has been paid for all
        the same.
        """
        calls = await self._of(model)
        record = AnswerRecord(0, AnswerState.ANSWERED)
        reply = await self._patiently(calls, request, record, is_stopping)
        record.attempts = 1
        record.input_tokens, record.output_tokens = reply.input_tokens, reply.output_tokens
        usage.add(record)
        self._count(usage)
        if reply.finish is not Finish.STOP:
            fault = "was cut off" if reply.finish is Finish.LENGTH else "is a refusal"
            raise InvalidAnswer(f"The reply of {model.name} {fault}: {reply.text[:200]}")
        calls.accepted(reply)
        return reply.text

    async def _patiently(
        self, calls: ModelCalls, request: Request, record: AnswerRecord, is_stopping: Callable[[], bool]
    ) -> Reply:
        failed = 0
        while True:
            try:
                return await calls.ask(request, record, is_stopping)
            except ProviderUnavailable as error:
                failed += 1
                wait_s = wait_before_retry_s(failed, error.retry_after_s, self._retry, random.random())
                if wait_s is None or is_stopping():
                    raise
            await asyncio.sleep(wait_s)

    def release_stopped(self) -> None:
        self._endpoints.release_stopped()

    async def close(self) -> None:
        for provider, _ in self._calls.values():
            await provider.close()
        self._calls.clear()

    async def _of(self, model: Model) -> ModelCalls:
        key = model.identity_row() + endpoint_key(model)  # address files of one name may be in two folders
        if key not in self._calls:
            async with self._looking_up:  # once: the list of prices takes memory, and a second provider would stay open
                if key not in self._calls:
                    await load_service(model)
                    self._calls[key] = self._made(model, await _price(model))
        return self._calls[key][1]

    def _made(self, model: Model, price: Price | None) -> tuple[Provider, ModelCalls]:
        provider = provider_for(model, self._endpoints.addresses(model))
        if model.service_name == "test":
            return provider, PlainCalls(provider, price)
        limiter = self._endpoints.limiter(model)
        return provider, ServiceCalls(model, provider, limiter, price, self._cache())


async def _price(model: Model) -> Price | None:
    if model.service_name == "test" and "price" not in model.parameters:
        return None
    return await asyncio.to_thread(price_of, model)  # may have to be looked up
