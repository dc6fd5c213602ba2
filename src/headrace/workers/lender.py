"""Memory limits that move between busy workers. Covers: lending, taking back, and doing the second before the first.

The sum of all limits stays below `room_bytes`, what the budget leaves to workers: before one limit rises, others have
come down, as far as the warden confirms. Does not cover: how much each should have (workers.lending).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from headrace.priority import Priority
from headrace.workers.lending import Borrower, enough_to_go_on, limits_within
from headrace.workers.limited_process import LimitedProcess

# The smallest limit of a worker. One that runs a step, or a chunk with the test model, needs 2 MB above what it was
# forked with; the rest is for what its work imports.
LEAST_WORKER_BYTES = 16_000_000
_WORTH_MOVING_BYTES = 4 << 20
_MAY_PASS_BYTES = 8 << 20  # how far a worker was seen above its limit, before it was killed: kept back for each


Start: TypeAlias = Callable[[int], Awaitable[LimitedProcess]]


class Loan:
    """What one busy worker or program may use. `holder` is None until it has been started. While it `is_waiting`, for a
    model or a program, its limit is what it uses and a little more; `Lender.settle` moves limits after a change.
    """

    def __init__(self, reserved_bytes: int, ceiling_bytes: int, priority: Priority) -> None:
        self.reserved_bytes = reserved_bytes
        self.ceiling_bytes = ceiling_bytes
        self.priority = priority
        self.is_waiting = False
        self.limit_bytes = 0
        self.holder: LimitedProcess | None = None

    def borrower(self) -> Borrower:
        used = self.holder.used_bytes if self.holder is not None else 0
        if self.is_waiting:
            return Borrower(used, 0, min(enough_to_go_on(used), self.ceiling_bytes), self.priority)
        return Borrower(used, self.reserved_bytes, self.ceiling_bytes, self.priority)


class Lender:
    """`ceiling_bytes` is the most that one worker may have, unless its run was promised more. `abandoned_bytes` tells
    what workers that have ended still hold of the room, as of now.
    """

    def __init__(self, room_bytes: int, ceiling_bytes: int, abandoned_bytes: Callable[[], int] = lambda: 0) -> None:
        self.room_bytes = room_bytes
        self._ceiling_bytes = ceiling_bytes
        self._abandoned_bytes = abandoned_bytes
        self._loans: list[Loan] = []  # as many as there are slots, and programs that they run
        self._lock = asyncio.Lock()

    async def lend(
        self, reserved_bytes: int, start: Start, most_bytes: int | None = None, *, priority: Priority = Priority.HIGH
    ) -> Loan:
        """Start a process with the limit that there is for it; give it back with `returned`. Nothing else moves until
        it is there: from then on its limit can come down again.
        """
        loan = Loan(reserved_bytes, most_bytes or max(self._ceiling_bytes, reserved_bytes), priority)
        async with self._lock:
            self._loans.append(loan)
            try:
                await self._move()
                limit_bytes = min(max(loan.limit_bytes, LEAST_WORKER_BYTES), loan.ceiling_bytes)
                loan.holder = await start(limit_bytes)
                loan.limit_bytes = loan.holder.limit_bytes
            except BaseException:
                self._loans.remove(loan)
                raise
        return loan

    async def settle(self) -> None:
        """Divide the room again: a worker is nearly full, has ended, or begins or ends a wait."""
        async with self._lock:
            await self._move()

    def returned(self, loan: Loan) -> None:
        self._loans.remove(loan)

    async def _move(self) -> None:
        loans = list(self._loans)
        room_bytes = max(0, self.room_bytes - self._abandoned_bytes() - _MAY_PASS_BYTES * len(loans))
        targets = limits_within(room_bytes, [loan.borrower() for loan in loans])
        for loan, target in zip(loans, targets, strict=True):
            if target <= loan.limit_bytes - _WORTH_MOVING_BYTES:
                await self._set(loan, target)
        for loan, target in zip(loans, targets, strict=True):
            free = room_bytes - sum(each.limit_bytes for each in self._loans)
            limit = min(target, loan.limit_bytes + max(0, free))
            if limit >= loan.limit_bytes + _WORTH_MOVING_BYTES:
                await self._set(loan, limit)

    async def _set(self, loan: Loan, limit_bytes: int) -> None:
        loan.limit_bytes = limit_bytes if loan.holder is None else await loan.holder.set_limit(limit_bytes)
