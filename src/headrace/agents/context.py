"""`AgentContext`, the `ctx` of an agent function: steps, checkpoints, sleeping, messages, models, programs, children.

A step's result is durable before it is returned, and the returned value is the journal's copy, decoded: types are the
same on the first execution and after any restart. Every step and checkpoint is a place where a run may be stopped.
Does not cover: how events reach the journal (`link`), what runs the function (`inline_agents`).
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import inspect
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

import msgspec

from headrace.agents.contract import AgentRun, ProgramCall
from headrace.agents.emits import Emits
from headrace.agents.kept_values import encode_arguments, encode_kept
from headrace.agents.link import AgentLink
from headrace.agents.replay import Replay
from headrace.agents.slot_turns import step_key
from headrace.agents.step_marks import mark_of, mark_of_encoded, mark_of_program
from headrace.agents.stopping import RunStopped
from headrace.agents.task import TaskKind, kind_of
from headrace.errors import InvalidInput, StepRepeated
from headrace.exit_causes import ExitCause
from headrace.models.contacts import check_allowed
from headrace.steady_clock import SteadyClock
from headrace.survey.model import Model
from headrace.survey.values import decode_value
from headrace.units import parse_bytes
from headrace.workers.command_result import CommandEnd

_LONGEST_NAME = 200
_WAITED = "$waited-"  # journaled where a run that has emitted waits for a message: those emits are not repeated


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor provides to the runs in it: the directory of spools, and two callbacks that get a child's kind
    and a model as objects, before the controller gets their names.
    """

    spools: Path
    register: Callable[[TaskKind], None]
    meet: Callable[[Model], None]


class AgentContext:
    """Handed to an agent function as its first argument; made anew for each attempt."""

    def __init__(self, work: AgentRun, link: AgentLink, surroundings: Surroundings) -> None:
        self._work = work
        self._link = link
        self._surroundings = surroundings
        self._spools: list[IO[bytes]] = []
        self._replay = Replay(work)
        self._emits = Emits(link.emit, self._replay.steps)
        self._began_behind = 0
        self._seen: set[str] = set()
        self._checkpoints = 0
        self._counted: dict[str, int] = {}
        self._state = work.state
        self._clock = SteadyClock.since(work.now_s)

    @property
    def state(self) -> Any:
        """The last checkpoint's, None before the first. A copy each time."""
        if not self._checkpoints and self._work.checkpoints:
            # Only a function that reads the state goes on from it; another starts over, and reaches its steps again.
            self._checkpoints = self._began_behind = self._work.checkpoints
            self._counted.clear()
        return None if self._state is None else decode_value(self._state)

    @property
    def attempt(self) -> int:
        """Counts up with every start of this run, from 1."""
        return self._work.epoch

    @property
    def step_key(self) -> str | None:
        """Inside a step: a key that is the same each time this step of this run is tried; None elsewhere."""
        return step_key.get()

    async def step(
        self, name: str, function: Callable[..., Any], *args: Any, side_effect: bool = False, **keywords: Any
    ) -> Any:
        """Run a function once, whatever happens; a sync one runs in a thread. Its journaled result, now and later."""
        mark = mark_of(self._checkpoints, function, args, keywords)
        if name in self._seen or self._replay.knows(name):
            kept = await self._earlier(name, mark)
            if kept is not None:
                return decode_value(kept)
        self._begin(name)
        if side_effect:
            self._note(name, self._replay.renamed(name, mark))
        await self._link.turn(name)
        key, outer = self._key_of(name), step_key.get()
        token = step_key.set(key)
        self._link.activity.step_began(key, outer)
        started_s = time.monotonic()
        try:
            call = self._call(function, args, keywords)
            result = await (self._link.side_effect(name, call, mark) if side_effect else call)
        finally:
            step_key.reset(token)
            self._link.step_ended(key, outer)
        return await self._journal(name, result, mark, time.monotonic() - started_s)

    async def checkpoint(self, state: Any) -> None:
        """Make `state` durable: an attempt that comes later finds it in `ctx.state`."""
        self._link.stopping.pass_or_stop()
        encoded = encode_kept(state, "The state of a checkpoint")
        self._checkpoints += 1
        self._counted.clear()
        if self._checkpoints > self._work.checkpoints:
            self._emits.passed_journal()
        else:
            self._emits.passed_journaled()
        await self._link.checkpoint(self._checkpoints, encoded)
        self._state = encoded
        self._emits.is_unjournaled = False
        self._link.stopping.pass_or_stop()

    async def ask(
        self,
        model: Model | str,
        prompt: str,
        *,
        system: str = "",
        timeout_s: float | None = None,
        name: str | None = None,
    ) -> str:
        """A model's reply, journaled like a step. Limits, breaker, cache and prices are those of surveys.

        Without `timeout_s` it waits for as long as a service is busy, away or slow. After `timeout_s` it raises
        ProviderTimeout, which says how the model's endpoint is; the call is not made any more, or is given up. The run
        gets that error, like a reply, at its next turn to compute: where others have its slot, once one is free.
        """
        asked = model if isinstance(model, Model) else Model(model)
        check_allowed(asked)
        _check_text(prompt, "A prompt")
        _check_text(system, "A system prompt")
        _checked_seconds(timeout_s)
        encoded = encode_kept([asked.identity_row().decode(), prompt, system], "What a model is asked")
        step = name or self._numbered(f"ask-{hashlib.sha256(encoded).hexdigest()[:16]}")
        mark = mark_of_encoded(self._checkpoints, "ask", encoded)
        kept = await self._earlier(step, mark)
        if kept is not None:
            return decode_value(kept)
        self._begin(step)
        self._surroundings.meet(asked)
        return decode_value(await self._link.ask(step, asked.to_row(), prompt, system, mark, timeout_s))

    async def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        name: str | None = None,
        isolated: bool = False,
        **keywords: Any,
    ) -> Any:
        """The result of another agent run, journaled like a step: a child, in this run's slot, with its priority. One
        that is `isolated` has a slot of its own, and a worker: if that dies, this run does not die with it.

        Raises RunFailed where the child ended without one.
        """
        kind = kind_of(function)
        arguments = encode_arguments(kind.name, args, keywords)
        step = name or self._numbered(f"run-{hashlib.sha256(kind.name.encode() + arguments).hexdigest()[:16]}")
        mark = mark_of_encoded(self._checkpoints, f"run {kind.name}", arguments)
        kept = await self._earlier(step, mark)
        if kept is None:
            self._begin(step)
            self._surroundings.register(kind)
            kept = await self._link.run_child(step, kind.name, arguments, mark, is_isolated=isolated)
        return decode_value(kept or b"null")

    async def command(
        self,
        argv: Sequence[str],
        *,
        input: str | bytes = b"",
        memory: str | int | None = None,
        timeout_s: float | None = None,
        output: str | int = "16MB",
        directory: str | Path = ".",
        environment: Mapping[str, str] | None = None,
        side_effect: bool = False,
        name: str | None = None,
    ) -> CommandEnd:
        """Run a program to its end, journaled like a step, under a memory limit of its own.

        A program that exits with an error, or is killed by a signal, is a result. One that meets its limit raises
        CommandFailed. `memory` is the most it may use, and less where others hold the budget. One that was cut short
        runs again, unless it has a `side_effect`: that is for `run.resolve` to decide.
        """
        command = ProgramCall(
            argv=_checked_argv(argv),
            input=_checked_input(input),
            directory=_absolute(directory),
            environment=None if environment is None else _checked_environment(environment),
            memory_bytes=None if memory is None else parse_bytes(memory),
            timeout_s=_checked_seconds(timeout_s),
            output_bytes=parse_bytes(output),
        )
        given = encode_kept([command.argv, command.input.hex()], "A command and its input")
        digest = hashlib.sha256(given).hexdigest()[:16]
        step = name or self._numbered(f"command-{digest}")
        mark = mark_of_program(self._checkpoints, given, directory, command.environment)
        kept = await self._earlier(step, mark)
        if kept is None:
            self._begin(step)
            if side_effect:
                self._note(step, self._replay.renamed(step, mark))
            end = self._link.run_command(step, command, mark)
            kept = await (self._link.side_effect(step, end, mark, runs_program=True) if side_effect else end)
        return CommandEnd.from_value(decode_value(kept))

    async def sleep(self, seconds: float, *, name: str | None = None) -> None:
        """Wait on disk: the run ends here and is started again when the time has come."""
        step = name or self._numbered("sleep")
        kept = await self._earlier(step)
        if kept is None:
            self._begin(step)
            until = await self._journal(step, self._clock.now() + max(0.0, seconds))
        else:
            until = decode_value(kept)
        if self._clock.now() < until:
            raise await self._stop(ExitCause.PARKED, resume_at=until)

    async def receive(self, *, name: str | None = None) -> Any:
        """The next message that was sent to this run; where there is none, wait for it on disk."""
        step = name or self._numbered("receive")
        waited = _WAITED + step
        kept = await self._earlier(step)
        if self._replay.steps.pop(waited, None) is not None:
            self._emits.passed_journaled()
        if kept is None:
            self._begin(step)
            kept = await self._link.receive(step)
        if kept is None:
            if self._emits.is_unjournaled:
                await self._journal(waited, result=True)
            raise await self._stop(ExitCause.PARKED)
        return decode_value(kept)

    def emit(self, event: Any) -> None:
        """Send an event to those who read `run.events()`. Never waits; dropped where they do not keep up.

        Not repeated when the run is called from its beginning again, if a step behind it is journaled.
        """
        payload = encode_kept(event, "An emitted event")
        if self.step_key is None:
            self._emits.add(payload)
        else:  # a step that is run, not read from the journal
            self._link.emit(payload)

    def spool(self) -> IO[bytes]:
        """A file to hold large output outside RAM: read and written like any other, gone when the attempt ends."""
        file = cast("IO[bytes]", TemporaryFile(dir=self._surroundings.spools))  # noqa: SIM115 - closed with the attempt
        self._spools.append(file)
        return file

    def function_returned(self) -> None:
        """The function has returned: report the journaled side effects that it did not reach."""
        self._emits.send_held()
        for name, difference in self._replay.unreached(self._began_behind):
            self._note(name, difference)

    def function_raised(self) -> None:
        """The function has raised an error of its own: send what it emitted last."""
        self._emits.send_held()

    def close(self) -> None:
        for file in self._spools:
            file.close()
        self._spools.clear()

    async def _earlier(self, name: str, mark: bytes = b"") -> bytes | None:
        """The journaled result of this step; None where it has to be run."""
        if name in self._seen:
            raise StepRepeated(name)
        if not self._replay.knows(name):
            return None
        self._note(name, self._replay.changed(name, mark))
        if name in self._replay.steps:
            self._link.stopping.pass_or_stop()
            self._seen.add(name)
            kept = self._replay.steps.pop(name)
            self._emits.passed_journaled()
            return kept if kept is not None else await self._link.fetch(name)
        if name in self._replay.started:
            raise await self._stop(ExitCause.UNDECIDED, step=name)
        return None

    def _note(self, name: str, difference: str) -> None:
        if difference:
            self._link.differs(name, difference)

    async def _stop(self, cause: ExitCause, *, resume_at: float | None = None, step: str = "") -> RunStopped:
        """The error that ends the attempt here, once the side effects in flight beside it are over."""
        if self.step_key is None:  # inside a step it could be waiting for itself
            await self._link.stopping.effects_over()
        return self._link.stopping.stop(cause, resume_at=resume_at, step=step)

    def _begin(self, name: str) -> None:
        self._link.stopping.pass_or_stop()
        _check_text(name, "A step's name")
        if not name or len(name) > _LONGEST_NAME:
            raise InvalidInput(f"{name[:50]!r} cannot be a step's name.", fix="Use 1 to 200 characters.")
        self._seen.add(name)
        self._emits.passed_journal()
        self._link.entering(name)

    async def _journal(self, name: str, result: object, mark: bytes = b"", took_s: float | None = None) -> Any:
        encoded = encode_kept(result, f"The result of step {name!r}")
        await self._link.step_done(name, encoded, mark, took_s)
        self._emits.is_unjournaled = False
        return decode_value(encoded)

    async def _call(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*args, **keywords)
        if not callable(function):
            raise InvalidInput(f"A step needs a function, not {type(function).__name__}.")
        inside = contextvars.copy_context()
        call = partial(inside.run, partial(function, *args, **keywords))
        result = await asyncio.get_running_loop().run_in_executor(self._link.threads, without_stop_iteration, call)
        return await result if inspect.isawaitable(result) else result

    def _key_of(self, name: str) -> str:
        named = f"{self._work.token} {self._work.id} {name}"
        return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:32]

    def _numbered(self, what: str) -> str:
        """A step name that the same code gets again, whether it goes on from the last checkpoint or starts over."""
        count = self._counted[what] = self._counted.get(what, 0) + 1
        return f"${what}-{self._checkpoints}-{count}"


def step_that_raised(error: BaseException) -> str:
    """The innermost step that the error passed; empty where it was none."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    steps = [frame.f_locals["name"] for frame in frames if frame.f_code is AgentContext.step.__code__]
    return steps[-1] if steps else ""


def without_stop_iteration(call: Callable[[], Any]) -> Any:
    """A future cannot hold a StopIteration: who awaits it would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("it raised StopIteration") from error


def _checked_argv(argv: Sequence[str]) -> list[str]:
    if isinstance(argv, (str, bytes)) or not argv or not all(isinstance(part, str) for part in list[object](argv)):
        raise InvalidInput(
            f"{argv!r} is not a command.", fix='Give the program and its arguments as a list: ["node", "agent.js"].'
        )
    return list(argv)


def _checked_input(given: str | bytes) -> bytes:
    if not isinstance(given, (str, bytes)):  # pyright: ignore[reportUnnecessaryIsInstance] - agents are not all typed
        raise InvalidInput(f"input= of a command is text or bytes, not {type(given).__name__}.")
    return given.encode() if isinstance(given, str) else given


def _checked_environment(given: Mapping[str, str]) -> dict[str, str]:
    for name, value in given.items():
        _check_text(name, "A name in environment=")
        _check_text(value, f"{name!r} in environment=")
    return dict(given)


def _checked_seconds(given: float | None) -> float | None:
    if given is not None and not given > 0:
        raise InvalidInput(f"timeout_s={given!r} must be a number of seconds above 0.")
    return given


def _check_text(given: object, what: str) -> None:
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is text, not {type(given).__name__}: {given!r:.50}.")


def _absolute(directory: str | Path) -> str:
    return str(Path(directory).absolute())
