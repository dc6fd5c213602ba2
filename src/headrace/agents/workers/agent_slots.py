"""What the executor of agent runs in workers knows of one slot: its worker, and the attempts in it.

Does not cover: what happens to them (agents.workers.agent_executor), or lending memory (agents.workers.agent_host).
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.agents.workers.agent_wire import BeginRun, FromAgentWorker, ToAgentWorker
from headrace.executor import Signal
from headrace.priority import Priority
from headrace.workers.handle import Worker
from headrace.workers.hosting.executor_wire import SignalWork
from headrace.workers.hosting.hosted_executor import HostedExecutor
from headrace.workers.lender import Loan

if TYPE_CHECKING:
    from headrace.agents.workers.agent_host import AgentHost


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt in a worker; `step` is the last it was about to take."""

    id: int
    epoch: int
    kind: str
    step: str = ""
    peak_bytes: int = 0
    answers: int = 0  # sent to it
    signal: Signal | None = None
    effects: set[str] = field(default_factory=set[str])  # steps whose side effects are under way


@dataclass(slots=True, eq=False)
class AgentSlot:
    """A slot of the engine, its worker and the runs in it. Messages wait in `unsent` until the worker is there."""

    number: int
    host: AgentHost
    reserved_bytes: int
    priority: Priority
    runs: dict[int, Attempt] = field(default_factory=dict[int, Attempt])
    hosted: HostedExecutor[FromAgentWorker] | None = None
    loan: Loan | None = None
    keeper: asyncio.Task[None] | None = None
    wanted_memory_s: float = -math.inf  # when it was last told that there is none for it
    unsent: list[ToAgentWorker] = field(default_factory=list["ToAgentWorker"])
    limit_before_bytes: int = 0  # it waited
    until_raised: list[ToAgentWorker] | None = None  # what waits for the limit of a slot that has waited

    @property
    def worker(self) -> Worker | None:
        return self.hosted.worker if self.hosted is not None else None

    def send(self, message: ToAgentWorker) -> None:
        if self.hosted is None:
            self.unsent.append(message)
        else:
            self.hosted.send([message])

    def send_in_turn(self, message: ToAgentWorker) -> None:
        """Send it behind what waits for the slot's limit, if anything does."""
        if self.until_raised is not None:
            self.until_raised.append(message)
        else:
            self.send(message)

    def send_signal(self, signal: SignalWork) -> None:
        """Send a signal at once, unless its run has yet to begin: a worker ignores one for a run it does not know."""
        waiting = self.until_raised or ()
        if any(isinstance(each, BeginRun) and each.work.id == signal.id for each in waiting):
            self.send_in_turn(signal)
        else:
            self.send(signal)

    def limit_lately(self) -> int:
        return self.loan.limit_lately(asyncio.get_running_loop().time()) if self.loan is not None else 0

    def attempt(self, id: int, epoch: int) -> Attempt | None:
        """The attempt at a run that is in the worker, unless another has replaced it."""
        run = self.runs.get(id)
        return run if run is not None and run.epoch == epoch else None
