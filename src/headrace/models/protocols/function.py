"""A model that is a function of the user's own: `Model.from_function(my_async_function)`.

It gets the Request and returns a text, a JSON value, `{"answer": ..., "comment": ...}`, or a Reply. What it raises is
taken as a service that is unavailable for now, unless it raises a kind of ProviderError itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from headrace.errors import ListError, ProviderError, ProviderRefused, ProviderTimeout, ProviderUnavailable
from headrace.models.provider import Reply, Request, check_parameters
from headrace.survey.model import MissingFunction, Model
from headrace.survey.values import repair_text

_PARAMETERS = frozenset({"function"})


class FunctionProvider:
    def __init__(self, model: Model) -> None:
        check_parameters("function", model.parameters, _PARAMETERS)
        function: Any = model.parameters.get("function")
        if isinstance(function, MissingFunction):
            function()
        if not _is_async(function):
            # A plain function that waits would hold up every other call, and the cause would be hard to see.
            raise ListError(
                f"Model {model.name!r} is no async function.",
                fix="Write `async def`, with `await asyncio.to_thread(...)` around what blocks;"
                ' a plain function that is quick may be a Model("test", canned_response=...).',
            )
        self._name = model.name
        self._function: Callable[[Request], Awaitable[Any]] = function

    @property
    def is_instant(self) -> bool:
        return False

    async def ask(self, request: Request) -> Reply:
        try:
            given = await self._function(request)
        except (ProviderError, MemoryError):
            raise
        except TimeoutError as error:
            raise ProviderTimeout(f"{self._name} raised {type(error).__name__}: {error}") from error
        except Exception as error:
            raise ProviderUnavailable(f"{self._name} raised {type(error).__name__}: {error}") from error
        return given if isinstance(given, Reply) else self._as_reply(given)

    def is_changed(self) -> bool:
        return False  # it has no key

    async def close(self) -> None:
        pass  # nothing is held open

    def _as_reply(self, given: Any) -> Reply:
        try:
            text, repaired = repair_text(_as_text(given))
        except (TypeError, UnicodeEncodeError, RecursionError) as error:
            kind = type(given).__name__
            raise ProviderRefused(f"{self._name} returned a {kind} that is no JSON value: {error}") from error
        return Reply(text, text.encode(), repaired=repaired)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _as_text(given: Any) -> str:
    """A text as it is, a dict as JSON, any other JSON value as the answer."""
    if given is None or isinstance(given, str):
        return given or ""
    return msgspec.json.encode(given if isinstance(given, dict) else {"answer": given}).decode()
