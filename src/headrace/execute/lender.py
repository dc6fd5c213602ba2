"""Memory limits that move between busy workers. Covers: lending, taking back, and doing the second before the first.

The sum of all limits stays within `room_bytes`, what the budget leaves to workers: before one limit rises, others have
come down, as far as the warden says that they hold. Does not cover: how much each should have (schedule.lending).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from headrace.execute.worker_handle import Worker
from headrace.schedule.lending import Borrower, limits_within

Start: TypeAlias = Callable[[int], Awaitable[Worker]]

LEAST_WORKER_BYTES = 24 << 20  # below this a worker could not even import what it runs
_WORTH_MOVING_BYTES = 4 << 20


class Loan:
    """What one busy worker or program may use. `worker` is None for a program."""

    def __init__(self, reserved_bytes: int, ceiling_bytes: int) -> None:
        self.reserved_bytes = reserved_bytes
        self.ceiling_bytes = ceiling_bytes
        self.limit_bytes = 0
        self.worker: Worker | None = None

    def borrower(self) -> Borrower:
        used = self.worker.used_bytes if self.worker is not None else 0
        return Borrower(used, self.reserved_bytes, self.ceiling_bytes)


class Lender:
    """`ceiling_bytes` is the most that one worker may have, unless its run was promised more."""

    def __init__(self, room_bytes: int, ceiling_bytes: int) -> None:
        self.room_bytes = room_bytes
        self._ceiling_bytes = ceiling_bytes
        self._loans: list[Loan] = []  # as many as there are slots
        self._lock = asyncio.Lock()

    async def lend(self, reserved_bytes: int, start: Start | None = None) -> Loan:
        """For a worker, which `start` is asked for; give it back with `returned`. Nobody else is lent anything until
        the worker is there: from then on its limit can come down again.
        """
        loan = Loan(reserved_bytes, max(self._ceiling_bytes, reserved_bytes))
        async with self._lock:
            self._loans.append(loan)
            try:
                await self._move()
                loan.limit_bytes = max(loan.limit_bytes, LEAST_WORKER_BYTES)
                if start is not None:
                    loan.worker = await start(loan.limit_bytes)
                    loan.limit_bytes = loan.worker.limit_bytes
            except BaseException:
                self._loans.remove(loan)
                raise
        return loan

    async def settle(self) -> None:
        """Share out anew: somebody is nearly full, or has gone."""
        async with self._lock:
            await self._move()

    def returned(self, loan: Loan) -> None:
        self._loans.remove(loan)

    @asynccontextmanager
    async def for_program(self, asked_bytes: int | None) -> AsyncGenerator[int]:
        """A limit for a program that ends before its run goes on."""
        most = asked_bytes or self._ceiling_bytes
        loan = await self.lend(most)
        loan.ceiling_bytes = most
        try:
            yield min(loan.limit_bytes, most)
        finally:
            self.returned(loan)
            await self.settle()

    async def _move(self) -> None:
        loans = list(self._loans)
        targets = limits_within(self.room_bytes, [loan.borrower() for loan in loans])
        for loan, target in zip(loans, targets, strict=True):
            if target <= loan.limit_bytes - _WORTH_MOVING_BYTES:
                await self._set(loan, target)
        for loan, target in zip(loans, targets, strict=True):
            free = self.room_bytes - sum(each.limit_bytes for each in self._loans)
            limit = min(target, loan.limit_bytes + max(0, free))
            if limit >= loan.limit_bytes + _WORTH_MOVING_BYTES:
                await self._set(loan, limit)

    async def _set(self, loan: Loan, limit_bytes: int) -> None:
        worker = loan.worker
        if worker is None:
            loan.limit_bytes = max(limit_bytes, loan.limit_bytes)  # what a program has been given stays
            return
        loan.limit_bytes = await worker.set_limit(limit_bytes)
