"""Kinds of agent runs: a function under a name that lasts. Covers: `@task`, and which functions can be one.

A name found in a file is looked up here and never imported: only what this program has registered or submitted runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from headrace.errors import OptionError, TaskError
from headrace.execute.function_names import SCRIPT_NAME
from headrace.units import parse_bytes

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is known of a kind. `memory_bytes` is what a run of it may need, None where that has to be seen."""

    name: str
    function: Callable[..., Any]
    max_attempts: int = 1
    timeout_s: float | None = None
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or self.max_attempts < 1:
            raise OptionError(f"max_attempts={self.max_attempts!r} must be at least 1.")
        if self.timeout_s is not None and not 0 < self.timeout_s < float("inf"):
            raise OptionError(f"timeout_s={self.timeout_s!r} must be a number of seconds above 0.")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise OptionError(f"memory={self.memory_bytes!r} leaves a run no room.")


_registered: dict[str, Kind] = {}  # as many as the program has decorated


@overload
def task(function: Function) -> Function: ...
@overload
def task(
    *, name: str | None = None, max_attempts: int = 1, timeout_s: float | None = None, memory: str | int | None = None
) -> Callable[[Function], Function]: ...
def task(
    function: Function | None = None,
    *,
    name: str | None = None,
    max_attempts: int = 1,
    timeout_s: float | None = None,
    memory: str | int | None = None,
) -> Function | Callable[[Function], Function]:
    """Register an async function as a kind of agent run; unfinished runs of it go on whenever an engine opens."""

    def register(decorated: Function) -> Function:
        kind = Kind(
            name=name or durable_name(decorated),
            function=_checked(decorated),
            max_attempts=max_attempts,
            timeout_s=timeout_s,
            memory_bytes=None if memory is None else parse_bytes(memory),
        )
        known = _registered.get(kind.name)
        if known is not None and _place(known.function) != _place(decorated):
            raise TaskError(f"Two functions are registered as {kind.name!r}.", fix="Give each a name of its own.")
        _registered[kind.name] = kind
        decorated.__headrace_kind__ = kind  # pyright: ignore[reportFunctionMemberAccess]
        return decorated

    return register if function is None else register(function)


def registered_kinds() -> dict[str, Kind]:
    return dict(_registered)


def kind_of(function: Callable[..., Any]) -> Kind:
    """The kind a function was registered as, or the plain function under its own name."""
    kind = getattr(function, "__headrace_kind__", None)
    return kind if isinstance(kind, Kind) else Kind(name=durable_name(function), function=_checked(function))


def durable_name(function: Callable[..., Any]) -> str:
    if not callable(function):
        raise TaskError(f"{function!r} is not a function.", fix="Submit an async function whose first argument is ctx.")
    name = getattr(function, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise TaskError(
            "A lambda, a functools.partial or an object has no name by which a later program could find it.",
            fix="Use a function defined with `async def`, or register it with @headrace.task(name=...).",
        )
    # A worker imports the script under another name, and the kind is the same.
    module = "__main__" if function.__module__ == SCRIPT_NAME else function.__module__
    return f"{module}:{name}"


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):
        raise TaskError(
            f"{getattr(function, '__qualname__', function)!r} is not async.",
            fix="Define it with `async def`, and call sync code in steps: await ctx.step(name, function, ...).",
        )
    if not inspect.signature(function).parameters:
        raise TaskError(f"{function.__qualname__!r} takes no argument.", fix="Its first argument is ctx.")
    return function


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__
