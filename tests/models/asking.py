"""How the tests ask a provider: one request, one provider that is closed afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from headrace import Model
from headrace.errors import ProviderError
from headrace.models.provider import Provider, Reply, Request
from headrace.models.services import provider_for

TEXT = {"type": "string", "minLength": 1}
CHOICE = {"enum": ["Good", "Bad"]}


def a_request(prompt: str = "How are you?", schema: dict[str, Any] = TEXT, system: str = "You are 30.") -> Request:
    return Request("mood", system, prompt, schema, {}, {}, 0, 1)


@asynccontextmanager
async def opened(model: Model) -> AsyncIterator[Provider]:
    provider = provider_for(model)
    try:
        yield provider
    finally:
        await provider.close()


async def outcome(provider: Provider, request: Request) -> Reply | ProviderError:
    """What a provider may do: reply, or raise a kind of ProviderError. Anything else fails the test."""
    try:
        return await provider.ask(request)
    except ProviderError as error:
        return error


def ask(model: Model, *requests: Request) -> list[Reply | ProviderError]:
    async def all_in_turn() -> list[Reply | ProviderError]:
        async with opened(model) as provider:
            return [await outcome(provider, request) for request in requests or (a_request(),)]

    return asyncio.run(all_in_turn())
