"""`TaskKind`: an agent function under a name that lasts. Covers: `@task`, and which functions can be one.

A name stands for one function of a program. A name found in a file is looked up here and never imported: only functions
that this program has registered or submitted are run.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, NoneType
from typing import Any, TypeVar, overload

from headrace.errors import OptionError, TaskError
from headrace.limits import BreakerLimits, KindBreaker, whole_number
from headrace.units import parse_bytes
from headrace.workers.functions import SCRIPT_NAME

Function = TypeVar("Function", bound=Callable[..., Any])

_PLAIN = (str, bytes, int, float, NoneType)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """A function with its options. `memory_bytes` is what a run of it may need, None where that is to be measured."""

    name: str
    function: Callable[..., Any]
    max_attempts: int = 1
    timeout_s: float | None = None
    memory_bytes: int | None = None
    breaker: KindBreaker = "engine"
    oom_retry: bool = True

    def __post_init__(self) -> None:
        whole_number("max_attempts", self.max_attempts)
        is_time = isinstance(self.timeout_s, (int, float, NoneType))  # pyright: ignore[reportUnnecessaryIsInstance] - not all are typed
        if not is_time or (self.timeout_s is not None and not 0 < self.timeout_s < float("inf")):
            raise OptionError(f"timeout_s={self.timeout_s!r} must be a number of seconds above 0.")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise OptionError(f"memory={self.memory_bytes!r} leaves a run no room.")
        if not (self.breaker is None or self.breaker == "engine" or isinstance(self.breaker, BreakerLimits)):  # pyright: ignore[reportUnnecessaryIsInstance] - not all are typed
            raise OptionError(
                f"breaker={self.breaker!r} is not BreakerLimits(...).",
                fix="Leave it out for the engine's, or give None: then failures of this function refuse nothing.",
            )
        if not isinstance(self.oom_retry, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - not all are typed
            raise OptionError(
                f"oom_retry={self.oom_retry!r} is neither True nor False.",
                fix="Engine(oom_retry_memory=...) says how much memory a second try has.",
            )


_registered: dict[str, TaskKind] = {}  # as many as the program has decorated


@overload
def task(function: Function) -> Function: ...
@overload
def task(
    *,
    name: str | None = None,
    max_attempts: int = 1,
    timeout_s: float | None = None,
    memory: str | int | None = None,
    breaker: KindBreaker = "engine",
    oom_retry: bool = True,
) -> Callable[[Function], Function]: ...
def task(
    function: Function | None = None,
    *,
    name: str | None = None,
    max_attempts: int = 1,
    timeout_s: float | None = None,
    memory: str | int | None = None,
    breaker: KindBreaker = "engine",
    oom_retry: bool = True,
) -> Function | Callable[[Function], Function]:
    """Register an async function as a kind of agent run; unfinished runs of it go on whenever an engine opens.

    `breaker` is when failures of its runs refuse new ones: `headrace.limits.BreakerLimits(...)`, None for never.
    `oom_retry=False` says that more memory never helps: a run that runs out of it is not tried again.
    """

    def register(decorated: Function) -> Function:
        kind = TaskKind(
            name=name or durable_name(decorated),
            function=_checked(decorated),
            max_attempts=max_attempts,
            timeout_s=timeout_s,
            memory_bytes=None if memory is None else parse_bytes(memory),
            breaker=breaker,
            oom_retry=oom_retry,
        )
        known = _registered.get(kind.name)
        if known is not None and _place(known.function) != _place(decorated):
            raise TaskError(f"Two functions are registered as {kind.name!r}.", fix="Give each a name of its own.")
        _registered[kind.name] = kind
        decorated.__headrace_kind__ = kind  # pyright: ignore[reportFunctionMemberAccess]
        return decorated

    return register if function is None else register(function)


def registered_kinds() -> dict[str, TaskKind]:
    return dict(_registered)


def kind_of(function: Callable[..., Any]) -> TaskKind:
    """The kind a function was registered as, or the plain function under its own name."""
    kind = getattr(function, "__headrace_kind__", None)
    return kind if isinstance(kind, TaskKind) else TaskKind(name=durable_name(function), function=_checked(function))


def check_succession(known: TaskKind | None, met: TaskKind) -> None:
    """Allow a function that was defined anew to replace the old one. Refuse one that differs only in what it has
    captured: a run finds its function by name, and would find the wrong one.
    """
    if known is None or known.function is met.function or _code(known.function) is not _code(met.function):
        return
    if not all(map(_are_alike, _captured(known.function), _captured(met.function))):
        raise TaskError(
            f"Two functions are submitted as {met.name!r}, which differ only in what they have captured.",
            fix="A run finds its function by name: hand over what differs as arguments,"
            " or give each a name with @headrace.task(name=...).",
        )


def _code(function: Callable[..., Any]) -> object:
    return getattr(function, "__code__", None)


def _captured(function: Callable[..., Any]) -> list[object]:
    """The object of a method, defaults, and variables of the functions around it."""
    defaults = getattr(function, "__defaults__", None) or ()
    closure = inspect.unwrap(function).__closure__ or () if inspect.isroutine(function) else ()
    return [getattr(function, "__self__", None), *defaults, *(_inside(cell) for cell in closure)]


def _inside(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None


def _are_alike(one: object, other: object) -> bool:
    """Plain values by what they are; functions by their code, since each call around them defines them anew."""
    if one is other or isinstance(one, _PLAIN):
        return type(one) is type(other) and one == other
    return inspect.isfunction(one) and inspect.isfunction(other) and one.__code__ is other.__code__


def durable_name(function: Callable[..., Any]) -> str:
    if not callable(function):
        raise TaskError(f"{function!r} is not a function.", fix="Submit an async function whose first argument is ctx.")
    name = getattr(function, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise TaskError(
            "A lambda, a functools.partial or an object has no name by which a later program could find it.",
            fix="Use a function defined with `async def`, or register it with @headrace.task(name=...).",
        )
    return f"{_module_of(function)}:{name}"


def _module_of(function: Callable[..., Any]) -> str:
    """A worker imports a script, or what `python -m` has started, under another name: the kind is the same."""
    name = function.__module__
    if name not in ("__main__", SCRIPT_NAME):
        return name
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec.name if spec is not None else "__main__"


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function):
        raise TaskError(
            f"{function.__qualname__!r} has a `yield`: it is a generator, and has no result.",
            fix="Tell what comes on the way with ctx.emit(event), and return the result.",
        )
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
