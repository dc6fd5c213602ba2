"""Whether the runs of one slot compute or wait: known only beside them, in a worker or in the engine's own process.

A run waits where it has asked for a model's reply, a program or a child, and no step's function of it runs. The slot
waits where all of its runs do: not while a child in it computes.

    a request goes out, a step ends, an answer comes, a run ends ──► look at the slot, a moment later
    all of its runs wait                                         ──► SlotWaits: the slot may be given to others
    a step is about to start in a slot that waits                ──► SlotWanted: the step starts when that is answered
    an answer comes, or a run starts here                        ──► the slot computes again

Covers: one slot. Does not cover: holding answers until the slot has its turn (agents.engine.held_answers), or who gets
the slot meanwhile (agents.scheduler).
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import AgentEvent, AskWanted, ChildWanted, CommandWanted, SlotWaits, SlotWanted

step_key: ContextVar[str | None] = ContextVar("headrace_step_key", default=None)

# Replies from a cache take less than this: a slot given away for them would be missed more than it is used.
_WORTH_GIVING_AWAY_S = 0.02


class RunActivity:
    """What one attempt is doing, in counts. `answers` is how many it was given so far."""

    def __init__(self, id: int, epoch: int, slot: SlotTurns) -> None:
        self.id = id
        self.epoch = epoch
        self.slot = slot
        self.answers = 0
        self.requests = 0  # out, for models, programs and children
        self._inside: dict[str, int] = {}  # step's functions that run: how many requests and steps each waits for

    @property
    def is_inside_a_step(self) -> bool:
        return bool(self._inside)

    def waits(self) -> bool:
        return self.requests > 0 and all(self._inside.values())

    def answered(self) -> None:
        self.answers += 1
        self.slot.computes()

    def step_began(self, key: str, outer: str | None) -> None:
        """The function of a step is called, from the function of step `outer` where that is not None."""
        self._inside[key] = 0
        self._count_inside(outer, 1)

    def step_ended(self, key: str, outer: str | None) -> None:
        self._inside.pop(key, None)
        self._count_inside(outer, -1)
        self.slot.look_soon()

    def request_out(self, event: AgentEvent) -> None:
        self._count(event, 1)

    def request_over(self, event: AgentEvent) -> None:
        """The request was answered, or the run no longer waits for it."""
        self._count(event, -1)

    def _count(self, event: AgentEvent, by: int) -> None:
        if isinstance(event, (AskWanted, CommandWanted, ChildWanted)):
            self.requests += by
            self._count_inside(step_key.get(), by)
            self.slot.look_soon()

    def _count_inside(self, step: str | None, by: int) -> None:
        if step is not None and step in self._inside:
            self._inside[step] += by


class SlotTurns:
    """`is_waiting` from the moment that SlotWaits is sent until the next answer, or the next start."""

    def __init__(self, number: int, outbox: AgentOutbox) -> None:
        self.number = number
        self.is_waiting = False
        self._outbox = outbox
        self._runs: dict[int, RunActivity] = {}  # a run and its children
        self._is_turn_wanted = False
        self._look: asyncio.TimerHandle | None = None

    def enter(self, id: int, epoch: int) -> RunActivity:
        run = self._runs[id] = RunActivity(id, epoch, self)
        self.computes()
        return run

    def leave(self, run: RunActivity) -> bool:
        """The attempt has ended; return whether it was the slot's last."""
        if self._runs.get(run.id) is run:
            del self._runs[run.id]
        self.look_soon()
        return not self._runs

    def computes(self) -> None:
        self.is_waiting = self._is_turn_wanted = False
        self.look_soon()

    def look_soon(self) -> None:
        if self._look is None and (self.is_waiting or self._has_requests()):
            self._look = asyncio.get_running_loop().call_later(_WORTH_GIVING_AWAY_S, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        if not self._runs:
            return
        waits = all(run.waits() for run in self._runs.values())
        first = next(iter(self._runs.values()))
        if waits and not self.is_waiting:
            self.is_waiting = True
            answers = {run.id: run.answers for run in self._runs.values()}
            self._outbox.add(SlotWaits(id=first.id, epoch=first.epoch, seq=0, answers=answers))
        elif self.is_waiting and not waits and not self._is_turn_wanted:
            # A run went on without an answer, after a timeout of its own for instance.
            self._is_turn_wanted = True
            self._outbox.add(SlotWanted(id=first.id, epoch=first.epoch, seq=0, step=""))

    def _has_requests(self) -> bool:
        return any(run.requests for run in self._runs.values())
