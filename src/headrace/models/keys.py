"""Where a service's key comes from: the environment, a `.env` file in the current directory, or a function.

A key is held here and sent in one header; nothing else keeps it, and models.redaction takes it out of what services
say. Does not cover: refusing keys that are written into a model (survey.secrecy).
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from headrace.errors import ListError, ModelUnusable, Spelled
from headrace.models.redaction import SENT
from headrace.survey.model import MissingFunction

_MOST_ENV_FILE_BYTES = 1 << 20


class Key:
    """`origin` says in words where it comes from. A function is asked once, and again when its key is refused. So is
    the environment for `variable`: a program that runs for months may be given another key.
    """

    def __init__(
        self, origin: str, value: str | None, source: Callable[[], Any] | None = None, variable: str | None = None
    ) -> None:
        self.origin = origin
        self._value = value
        self._source = source
        self._variable = variable
        self._asking = asyncio.Lock()  # many calls may need the key at once; the function is asked by one of them

    @property
    def known(self) -> str | None:
        """The key, where it is known without asking a function."""
        return self._value

    def look_again(self) -> str | None:
        """The key as it is known now, after another look at its variable."""
        if self._variable is not None:
            value, place = looked_up(self._variable)
            if value and value.strip() != self._value:
                self.origin = f"{self._variable} in {place}"
                self._value = _checked(value, self.origin)
        return self._value

    async def value(self) -> str | None:
        if self._value is None and self._source is not None:
            async with self._asking:
                self._value = self._value or await _given_by(self._source)
        if self._value is not None:
            SENT.add(self._value)  # again and again: what was not sent for a long time may be forgotten there
        return self._value

    async def renew(self, refused: str | None) -> bool:
        """Asks the function or looks the variable up again; tells whether there is another key than the refused one."""
        if self._source is None:
            return self.look_again() != refused
        async with self._asking:
            if self._value == refused:  # else another call has renewed it already
                self._value = await _given_by(self._source)
        return self._value != refused


def key_for(model: str, parameters: dict[str, Any], usual_env: str | None) -> Key:
    """The key that a model's parameters name; `usual_env` is its service's own variable, None where none is needed."""
    source = parameters.get("api_key")
    if isinstance(source, MissingFunction):
        source()
    if source is not None:
        return Key("the function api_key", None, source)
    name = parameters.get("api_key_env") or usual_env
    if name is None:
        return Key("no key was sent: name its variable with api_key_env if the service needs one", None)
    value, place = looked_up(name)
    if not value:
        raise ListError(
            f"Model {model!r} needs a key: {name} is neither in the environment nor in {Path('.env').resolve()}.",
            fix=Spelled(
                f"Set {name}, name another variable with api_key_env, or give a function as api_key.",
                # `resume` takes no model: only the command that names it can name another variable.
                command=f"Set {name}, or run the whole command (run or map) again with another variable:"
                f" --model {model},api_key_env=NAME.",
            ),
        )
    return Key(f"{name} in {place}", _checked(value, f"{name} in {place}"), variable=name)


def looked_up(name: str) -> tuple[str | None, str]:
    """A variable's value, and where it was found."""
    value = os.environ.get(name)
    return (value, "the environment") if value else (read_env_file(Path(".env"), name), ".env")


def read_env_file(path: Path, name: str) -> str | None:
    """One variable of a `.env` file: NAME=value lines, quotes, `export`, comments. Nothing in it is expanded."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_ENV_FILE_BYTES:
            return None
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None  # as if it were not there: the error that follows says where was looked
    for line in reversed(lines):  # as a shell would: the last one counts
        before, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and before.strip() == name:
            return _unquoted(value.strip())
    return None


def _unquoted(value: str) -> str:
    if value[:1] in {'"', "'"} and value.find(value[0], 1) > 0:
        return value[1 : value.find(value[0], 1)]
    return value.partition(" #")[0].strip()


async def _given_by(source: Callable[[], str | Awaitable[str]]) -> str:
    try:
        given = source()
        value = await given if inspect.isawaitable(given) else given
    except Exception as error:  # noqa: BLE001 - only its class is shown: its message may hold the key
        raise _unusable(f"The function api_key raised {type(error).__name__}.", "Mend it.") from None
    return _checked(value, "the function api_key")


def _checked(value: object, origin: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _unusable(f"{origin} gave no key.", "It must be a text.")
    value = value.strip()
    SENT.add(value)
    if not value.isascii() or not value.isprintable():
        raise _unusable(f"The key from {origin} has characters that no header can hold.", "Copy it again.")
    return value


def _unusable(message: str, fix: str) -> ModelUnusable:
    return ModelUnusable(message, fix=fix, key_advice=f"{message} {fix}")
