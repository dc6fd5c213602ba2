"""The contract of providers: a request goes in, a reply or a ProviderError comes out.

Covers: the shapes. Does not cover: when to call (models.limiter), or what to do after an error (interviews.interview).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol

import msgspec

from headrace.errors import ListError, NetworkAway, nearest
from headrace.priority import Priority
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.marks import NO_FILES, PromptFiles
from headrace.survey.model import Model
from headrace.survey.questions.base import Schema
from headrace.survey.record import Usage
from headrace.survey.values import Fields

_COMMENT: Schema = {"type": "string", "maxLength": 300}  # a small model would not end by itself
# Read by models.calls and plan.prices, whatever the service.
_OF_EVERY_MODEL = frozenset({"price", "requests_per_minute", "tokens_per_minute"})


class Request(msgspec.Struct, gc=False):
    """One call. `attempt` counts from 1 for each question of an interview; `has_comment`: one is wanted too. `priority`
    is its place before others that wait for the same model. `files` stand in `user_prompt` in words, each at its place.
    `ordinal` is the interview's, -1 where the call belongs to none.
    """

    question_name: str
    system_prompt: str
    user_prompt: str
    schema: Schema
    agent: Fields
    scenario: Fields
    iteration: int
    attempt: int
    has_comment: bool = False
    priority: Priority = Priority.NORMAL
    files: PromptFiles = NO_FILES
    ordinal: int = -1

    def parts(self, in_words: str) -> list[str | FileStore]:
        """The prompt and `in_words` behind it, in pieces: texts, and the files between them."""
        pieces: list[str | FileStore] = []  # two for each file that a text names
        at = 0
        for start, end, file in self.files:
            pieces += [self.user_prompt[at:start], file]
            at = end
        return [*pieces, self.user_prompt[at:] + in_words]


class Finish(IntEnum):
    """Why a model stopped writing. Only a text that ended by itself is an answer."""

    STOP = 0
    LENGTH = 1  # cut off
    REFUSED = 2  # by the model or a content filter, in place of an answer


class RateHint(msgspec.Struct, gc=False):
    """A service's limits as its headers state them; None where they do not."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    requests_left: float | None = None
    tokens_left: float | None = None
    requests_reset_s: float | None = None
    tokens_reset_s: float | None = None


class AddressChange(msgspec.Struct, frozen=True, gc=False):
    """One of a model's several addresses cannot be reached (`error` says why), or can again (`error` is empty)."""

    address: str
    error: str = ""


class AllAddressesAway(NetworkAway):
    """None of a model's several addresses was reached; `changes` are those that the limiter does not know yet."""

    def __init__(self, message: str, changes: list[AddressChange]) -> None:
        super().__init__(message)
        self.changes = changes


class Reply(msgspec.Struct, gc=False):
    """A reply. `raw` is the body as received, kept for the record.

    `cached_tokens` are among the input's, `reasoning_tokens` among the output's. `cache_key` says where
    the response cache keeps it, `changes` which addresses went away or came back meanwhile.
    """

    text: str
    raw: bytes
    input_tokens: int = 0
    output_tokens: int = 0
    repaired: bool = False
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    finish: Finish = Finish.STOP
    rates: RateHint | None = None
    cache_key: bytes | None = None
    changes: list[AddressChange] | None = None


class FinishedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has ended, for those who watch calls. `error` is the class of what it raised, empty where there is a
    reply; `started_at` is in seconds since 1970.
    """

    model: Model
    prompt: str
    system: str
    usage: Usage
    started_at: float
    took_s: float
    reply: str = ""
    error: str = ""

    def without_texts(self) -> FinishedCall:
        return msgspec.structs.replace(self, prompt="", system="", reply="")


class Provider(Protocol):
    """A model, ready to be asked. It raises a kind of ProviderError, and no other error of its own."""

    @property
    def is_instant(self) -> bool:
        """True where a call never waits, so that calls gain nothing from overlapping."""
        ...

    async def ask(self, request: Request) -> Reply: ...

    def is_changed(self) -> bool:
        """Whether a call would now be sent otherwise than the last one was: with another key, or for the first time."""
        ...

    async def close(self) -> None: ...


def check_parameters(service: str, given: dict[str, Any], known: frozenset[str]) -> None:
    """Refuses a parameter that the service would silently ignore."""
    for name in given:
        if name not in known | _OF_EVERY_MODEL:
            raise ListError(
                f"A model of {service!r} has no parameter {name!r}.", fix=nearest(name, known | _OF_EVERY_MODEL)
            )


def answer_envelope(schema: Schema, *, has_comment: bool = False) -> Schema | None:
    """The JSON schema to ask a service for, which wants an object; None where plain text is the answer.

    An object is asked for as it is; any other answer stands under "answer", where survey.replies looks for it.
    """
    if schema.get("type") == "object":
        return schema
    if schema.get("type") == "string" and "enum" not in schema:
        return None
    properties: Schema = {"answer": schema, "comment": _COMMENT} if has_comment else {"answer": schema}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
