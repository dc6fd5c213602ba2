"""Model calls that agent runs wait for: each is made for a step of a run, and outlives the attempt that asked for it.

    an attempt asks                          ──► a new call, or the one that an earlier attempt has left in flight
    its attempt ends, the run goes on later  ──► the call stays: its reply is for the next attempt
    the run ends                             ──► the call is forgotten: its reply is counted as usage, and for nobody

Covers: which calls there are, and whose they are: as many as runs have asked for at once. Does not cover: making them
(agents.model_calls), journaling and giving their replies (agents.engine.agent_requests).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from headrace.agents.contract import AskWanted
from headrace.agents.model_calls import ReplyTimeout


@dataclass(slots=True, eq=False)
class CallInFlight:
    """A call for one step of a run. `epoch` is the attempt that asked for it last, or that has ended since.

    `asked` is the model, the prompt and the system prompt. `reply` waits for the attempt to come to the step.
    """

    run: int
    epoch: int
    step: str
    asked: tuple[bytes, str, str]
    mark: bytes
    timeout: ReplyTimeout
    reply: bytes | None = None
    task: asyncio.Task[None] | None = None

    def attempt_ended(self, epoch: int) -> None:
        """Nobody waits for it now: its time does not run out."""
        self.epoch = epoch
        self.timeout.restart(None)


class CallsInFlight:
    def __init__(self) -> None:
        self._by_run: dict[int, dict[str, CallInFlight]] = {}  # and by step

    def __bool__(self) -> bool:
        return bool(self._by_run)

    def __contains__(self, call: CallInFlight) -> bool:
        return self._by_run.get(call.run, {}).get(call.step) is call

    def of(self, run: int) -> list[CallInFlight]:
        """A run's calls: as many as it asks for at once."""
        return list(self._by_run.get(run, {}).values())

    def join(self, event: AskWanted) -> CallInFlight | None:
        """The call that was made for an earlier attempt at this step, now for this one; None where it asks for
        something else.
        """
        call = self._by_run.get(event.id, {}).get(event.step)
        if call is None or call.asked != _asked(event) or call.timeout.is_over:
            return None
        call.epoch, call.mark = event.epoch, event.mark
        call.timeout.restart(event.timeout_s)
        return call

    def add(self, event: AskWanted) -> CallInFlight:
        """A new call. One that was made for the same step, and asks for something else, is forgotten."""
        timeout = ReplyTimeout(event.timeout_s)
        call = CallInFlight(event.id, event.epoch, event.step, _asked(event), event.mark, timeout)
        self._by_run.setdefault(event.id, {})[event.step] = call
        return call

    def remove(self, call: CallInFlight) -> None:
        if call in self:
            calls = self._by_run[call.run]
            del calls[call.step]
            if not calls:
                del self._by_run[call.run]

    def forget(self, run: int) -> None:
        self._by_run.pop(run, None)


def _asked(event: AskWanted) -> tuple[bytes, str, str]:
    return event.model, event.prompt, event.system
