"""What a model service is to the rest: a request in, a reply or a typed error out.

Covers: the shapes. Does not cover: when to call, how often, or what to do after an error (schedule, execute).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from headrace.errors import ListError, nearest
from headrace.survey.questions.base import Schema
from headrace.survey.values import Fields


class Request(msgspec.Struct, gc=False):
    """One call. `attempt` counts from 1 for each question of an interview."""

    question_name: str
    system_prompt: str
    user_prompt: str
    schema: Schema
    agent: Fields
    scenario: Fields
    iteration: int
    attempt: int


class Reply(msgspec.Struct, gc=False):
    """What came back. `raw` is the body as received, kept for the record."""

    text: str
    raw: bytes
    input_tokens: int = 0
    output_tokens: int = 0
    repaired: bool = False


class Provider(Protocol):
    """A model, ready to be asked. It raises ProviderUnavailable or ProviderRefused, and no other error of its own."""

    @property
    def is_instant(self) -> bool:
        """True where a call never waits, so that calls gain nothing from overlapping."""
        ...

    async def ask(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


def check_parameters(service: str, given: dict[str, Any], known: frozenset[str]) -> None:
    """Refuse a parameter that the service would silently ignore."""
    for name in given:
        if name not in known:
            raise ListError(f"A {service!r} model has no parameter {name!r}.", fix=nearest(name, known))
