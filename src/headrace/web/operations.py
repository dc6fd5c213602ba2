"""What an operation of the page is: one thing that can be asked, with the types of its parameters and its reply.

Does not cover: the operations themselves (web.api), or HTTP (web.page_server).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

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

    def parsed(self, given: dict[str, str]) -> Parameters:
        """The parameters as a URL or a form has them: texts, of which each becomes what its field holds."""
        try:
            return msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"The request to {self.path} cannot be read: {error}.") from None


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
