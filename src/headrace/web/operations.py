"""What an operation of the page is: one thing that can be asked, with the types of its parameters and its reply.

Does not cover: the operations themselves (web.api), or HTTP (web.page_server).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeGuard, TypeVar, get_args, get_type_hints

import msgspec

from headrace.errors import (
    HeadraceError,
    InvalidInput,
    MissingExtra,
    NotRunning,
    NotSteerable,
    QueryTimeout,
    QueryTooLarge,
    RunFileError,
)
from headrace.web.shown_files import NotShown, ShownFiles

Parameters = TypeVar("Parameters", bound=msgspec.Struct)
Reply = TypeVar("Reply", bound=msgspec.Struct)

READ_TIMEOUT_S = 1.0


class Method(Enum):
    GET = "GET"
    POST = "POST"  # steering: it needs the token as well as the cookie


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOperation(Generic[Parameters, Reply]):
    """`path` is below /api/v1; names in braces in it are fields of `parameters`. `call` blocks: it runs in a thread."""

    name: str
    summary: str
    path: str
    parameters: type[Parameters]
    reply: type[Reply]
    call: Callable[[ShownFiles, Parameters], Reply]
    method: Method = Method.GET

    def parsed(self, given: Mapping[str, Any]) -> Parameters:
        """The parameters as a URL or a form has them, texts, of which each becomes what its field holds; or as JSON."""
        try:
            return msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise unreadable(f"The request to {self.path}", self.parameters, error) from None


def unreadable(what: str, parameters: type[msgspec.Struct], error: msgspec.ValidationError) -> InvalidInput:
    """The error of parameters that cannot be read; it lists the values that a field takes where they are few words."""
    named = re.search(r"`\$\.(\w+)`", str(error))
    held = get_type_hints(parameters).get(named.group(1)) if named else None
    choices = [str(each.value) for kind in (held, *get_args(held)) if _is_choice(kind) for each in kind]
    return InvalidInput(f"{what} cannot be read: {error}.", fix=f"One of: {', '.join(choices)}." if choices else "")


def _is_choice(kind: Any) -> TypeGuard[type[Enum]]:
    return isinstance(kind, type) and issubclass(kind, Enum)


class ErrorBody(msgspec.Struct, frozen=True):
    message: str
    fix: str


class ErrorReply(msgspec.Struct, frozen=True):
    """What every operation gives where it fails."""

    error: ErrorBody


def error_reply(error: HeadraceError) -> ErrorReply:
    return ErrorReply(ErrorBody(error.message, error.fix))


def http_status(error: HeadraceError) -> int:
    match error:
        case NotShown():
            return 404
        case InvalidInput():
            return 400
        case MissingExtra():
            return 501
        case NotRunning() | NotSteerable():
            return 409
        case QueryTimeout() | QueryTooLarge():
            return 503
        case RunFileError():
            return 422
        case _:
            return 500


AnyOperation = PageOperation[Any, Any]
