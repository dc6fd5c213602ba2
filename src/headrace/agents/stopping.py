"""How one attempt at an agent run is stopped from inside: at its next step, but never in the middle of a side effect.

    signal (preempt, cancel, kill) ──► AttemptStop.signal
    the function's next step, checkpoint or request ──► pass_or_stop() raises RunStopped ──► the attempt ends

Does not cover: cancelling a function that reaches no step (agents.inline_agents), ending a worker (agents.workers).
"""

from __future__ import annotations

import asyncio

from headrace.executor import Signal
from headrace.exit_causes import ExitCause


class RunStopped(BaseException):
    """Ends an attempt from inside. Not an Exception: an agent's own `except Exception` must not keep it. Where it is
    kept all the same, by `gather(..., return_exceptions=True)` for one, the attempt has still ended so
    (AttemptStop.stopped).
    """

    def __init__(self, cause: ExitCause, *, resume_at: float | None = None, step: str = "") -> None:
        super().__init__(cause.value)
        self.cause = cause
        self.resume_at = resume_at
        self.step = step

    def again(self) -> RunStopped:
        return RunStopped(self.cause, resume_at=self.resume_at, step=self.step)


class AttemptStop:
    """`signal` is what the controller has sent. `stopped` is how the attempt ends, from the moment that its function
    was made to stop: what the function makes of that is neither a result nor a failure. `is_closed` once it has ended.
    """

    def __init__(self) -> None:
        self.signal: Signal | None = None
        self.stopped: RunStopped | None = None
        self.is_closed = False
        self._effects: set[str] = set()  # steps whose side effects are in flight; `gather` has several at once
        self._no_effects = asyncio.Event()

    @property
    def in_side_effect(self) -> bool:
        return bool(self._effects)

    def is_stopping(self) -> bool:
        return self.signal is not None or self.is_closed

    def pass_or_stop(self) -> None:
        """Raise RunStopped where the attempt is to stop. Called where that loses nothing, but for a side effect that is
        in flight beside it: a preemption waits for those.
        """
        self.check_is_open()
        if self.stopped is not None:
            raise self.stopped.again()
        if self.signal is not None and not self.waits_for_effects():
            raise self.stop()

    def check_is_open(self) -> None:
        if self.is_closed:
            raise RunStopped(ExitCause.LOST)

    def stop(self, cause: ExitCause | None = None, *, resume_at: float | None = None, step: str = "") -> RunStopped:
        """The error to raise where the function stops now; by default with the cause that the signal asks for."""
        by_signal = ExitCause.PREEMPTED if self.signal is Signal.PREEMPT else ExitCause.LOST
        stopped = RunStopped(cause or by_signal, resume_at=resume_at, step=step)
        self.stopped = self.stopped or stopped.again()
        return stopped

    def waits_for_effects(self) -> bool:
        return self.signal is Signal.PREEMPT and self.in_side_effect

    def effect_started(self, step: str) -> None:
        self._effects.add(step)
        self._no_effects.clear()

    def effect_ended(self, step: str) -> None:
        self._effects.discard(step)
        if not self._effects:
            self._no_effects.set()

    async def effects_over(self) -> None:
        """Wait for side effects in flight: an attempt that ended before would leave open whether they happened."""
        if self._effects:
            await self._no_effects.wait()
