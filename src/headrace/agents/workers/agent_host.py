"""`AgentHost`: a host whose workers hold agent runs: its pool, and the memory that is lent to the slots there.

    slots ── nearly full, begin or end a wait, leave ──► settle ──► Lender: limits move
                                                           └──► NearlyFull, where there is nothing left to lend

This host is one, and so is each node of a cluster. Does not cover: the runs in slots (agents.workers.agent_executor),
or how memory is divided (workers.lender).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.contract import LoopStuck, MemoryUsed, NearlyFull
from headrace.agents.workers.agent_slots import AgentSlot
from headrace.workers.lender import Lender
from headrace.workers.lending import is_nearly_full
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import Stuck

_WANTS_MEMORY_EVERY_S = 0.02
_SHARE_OUT_AFTER_S = 0.1


class AgentHost:
    """`spools` is the directory of `ctx.spool()` there, None for the host's usual one. The executor that it has joined
    gives it the `outbox`.
    """

    def __init__(self, name: str, pool: WorkerPool, lender: Lender, spools: Path | None) -> None:
        self.name = name
        self.pool = pool
        self.lender = lender
        self.spools = b"" if spools is None else os.fsencode(spools)
        self.outbox: AgentOutbox | None = None
        self.on_unusable: Callable[[str], None] | None = None  # gets why no run can begin here, though elsewhere it may
        self.is_lost = False  # nothing is said any more of the attempts there
        self.slots: dict[int, AgentSlot] = {}  # by number
        self.keepers: set[asyncio.Task[None]] = set()
        self.leaving: set[asyncio.Task[None]] = set()  # of those, the ones whose runs have all ended
        self._settling: asyncio.Task[None] | None = None
        self._raising: set[asyncio.Task[None]] = set()
        self._returned: asyncio.TimerHandle | None = None

    def read(self, worker: int) -> None:
        """There is a reading of the warden's; one that is nearly full gets more, where there is more."""
        slot = self._slot_of(worker)
        if slot is not None and slot.worker is not None:
            counted_bytes = slot.worker.counted_bytes
            self.report_use(slot, counted_bytes)
            if slot.runs and is_nearly_full(counted_bytes, slot.worker.limit_bytes):
                self.settle_soon()

    def stuck(self, report: Stuck) -> None:
        """Report it for the newest run in the slot: a parent is mostly waiting for its child."""
        slot = self._slot_of(report.worker)
        if slot is not None and slot.runs and self.outbox is not None:
            run = next(reversed(slot.runs.values()))
            seconds, stack = report.seconds, report.stack
            self.outbox.add(LoopStuck(id=run.id, epoch=run.epoch, seq=0, seconds=seconds, stack=stack))

    def report_use(self, slot: AgentSlot, memory_bytes: int) -> None:
        if slot.runs and self.outbox is not None:
            run = next(iter(slot.runs.values()))  # stands for all in the slot
            self.outbox.add(MemoryUsed(id=run.id, epoch=run.epoch, seq=0, memory_bytes=memory_bytes))

    def raise_limit(self, slot: AgentSlot) -> None:
        """Send what waits for the limit of a slot that has waited, once that is raised again."""
        raising = asyncio.get_running_loop().create_task(self._raise_limit(slot))
        self._raising.add(raising)
        raising.add_done_callback(self._raising.discard)

    def settle_soon(self) -> None:
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    def settle_later(self) -> None:
        """What came back is shared out, unless the next worker takes it before, or one is short of it."""
        if self._is_any_short():
            self.settle_soon()
        elif self._returned is None:
            self._returned = asyncio.get_running_loop().call_later(_SHARE_OUT_AFTER_S, self._share_out)

    async def keepers_ended(self) -> None:
        """Wait until each worker here that held runs has ended, as all of a lost host do at once."""
        while self.keepers:
            await asyncio.wait(self.keepers)

    async def close(self) -> None:
        """End all workers that hold runs, and say nothing of it."""
        for slot in self.slots.values():
            slot.runs.clear()
            if slot.worker is not None:
                slot.worker.kill()
        keepers = list(self.keepers)
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        if self._returned is not None:  # by keepers that have just ended
            self._returned.cancel()
        for settling in (self._settling, *self._raising):
            if settling is not None:
                settling.cancel()

    def _slot_of(self, worker: int) -> AgentSlot | None:
        for slot in self.slots.values():
            if slot.worker is not None and slot.worker.id == worker:
                return slot
        return None

    async def _raise_limit(self, slot: AgentSlot) -> None:
        try:
            await self.lender.settle()
        finally:
            messages, slot.until_raised = slot.until_raised, None
            for message in messages or ():
                slot.send(message)

    def _is_any_short(self) -> bool:
        return any(slot.loan is not None and slot.loan.is_short for slot in self.slots.values())

    def _share_out(self) -> None:
        self._returned = None
        self.settle_soon()

    async def _settle(self) -> None:
        await self.lender.settle()
        if self._is_any_short():  # it may have grown while limits moved: what others do not use comes first
            await self.lender.settle()
        now_s = asyncio.get_running_loop().time()
        for slot in self.slots.values():
            is_due = now_s - slot.wanted_memory_s >= _WANTS_MEMORY_EVERY_S
            if is_due and slot.runs and slot.loan is not None and self.lender.has_none_for(slot.loan):
                slot.wanted_memory_s = now_s
                self._report_short(slot, is_urgent=slot.loan.is_urgent)

    def _report_short(self, slot: AgentSlot, *, is_urgent: bool) -> None:
        if self.outbox is not None:
            run = next(iter(slot.runs.values()))  # stands for all in the slot
            self.outbox.add(NearlyFull(id=run.id, epoch=run.epoch, seq=0, is_urgent=is_urgent))
