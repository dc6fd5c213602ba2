"""Memory limits that move between busy workers. Covers: lending, taking back, and doing the second before the first.

The sum of all limits stays below `room_bytes`, what the budget leaves to workers: before one limit rises, others have
come down, as far as the warden confirms. A worker that was promised memory starts with no less, or not yet. Does not
cover: how much each should have (workers.lending).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from headrace.priority import Priority
from headrace.workers.lending import (
    Borrower,
    ceiling_while_waiting,
    enough_to_go_on,
    is_nearly_full,
    limits_within,
)
from headrace.workers.limited_process import LimitedProcess

# The smallest limit of a worker. One that runs a step, or a chunk with the test model, needs 2 MB above what it was
# forked with; the rest is for what its work imports.
LEAST_WORKER_BYTES = 16_000_000
_WORTH_MOVING_BYTES = 4 << 20
# For each that computes: how far a worker was seen above its limit, before it was killed. One that waits does not grow.
KEPT_BACK_BYTES = 8 << 20
_MOVES_BYTES = 8 << 20
_STARTS_WITHIN_S = 1.0
_URGENT = 0.9  # of its limit
_LOOKS_AGAIN_S = 0.05
_LATELY_S = 0.1
_MOST_ROUNDS = 3


Start: TypeAlias = Callable[[int], Awaitable[LimitedProcess]]


class NoRoomError(Exception):
    """The memory that a worker was promised is not there: others have grown since it was admitted."""


class Loan:
    """What one busy worker or program may use. `holder` is None until it has been started. While it `is_waiting`, for a
    model or a program, its limit is what it uses and some more, and only a little more where others need the rest;
    `Lender.settle` moves limits after a change. Where it `is_promised`, it starts with no less than what is reserved.
    """

    def __init__(self, reserved_bytes: int, ceiling_bytes: int, priority: Priority, *, is_promised: bool) -> None:
        self.reserved_bytes = reserved_bytes
        self.ceiling_bytes = ceiling_bytes
        self.priority = priority
        self.is_promised = is_promised
        self.is_waiting = False
        self.limit_bytes = 0
        self._ordered_bytes = 0
        self.holder: LimitedProcess | None = None
        self._raises: deque[tuple[float, int]] = deque()  # of the last moments: when, and from which limit

    @property
    def used_bytes(self) -> int:
        """What counts against its limit."""
        return self.holder.counted_bytes if self.holder is not None else 0

    @property
    def is_urgent(self) -> bool:
        """Whether its worker is about to meet its limit."""
        return self.used_bytes >= self.limit_bytes * _URGENT

    @property
    def is_short(self) -> bool:
        """Whether its worker is nearly full, and could have more if there was more."""
        could_have_more = self.holder is not None and not self.is_waiting and self.limit_bytes < self.ceiling_bytes
        return could_have_more and is_nearly_full(self.used_bytes, self.limit_bytes)

    @property
    def sure_bytes(self) -> int:
        """The lower of the limit that was confirmed and the one last asked for: its worker has at least this."""
        return min(self.limit_bytes, self._ordered_bytes)

    def limit_lately(self, now_s: float) -> int:
        """The lowest limit of the last moments. A worker that has just ended may have met the one before it rose."""
        self._forget_raises(now_s)
        return min([self.limit_bytes, *(before_bytes for _, before_bytes in self._raises)])

    def begin(self, limit_bytes: int) -> None:
        self.limit_bytes = self._ordered_bytes = limit_bytes
        self._raises.clear()  # no worker has met what it was before

    def note_order(self, limit_bytes: int) -> None:
        """The warden is about to be asked for this limit."""
        self._ordered_bytes = limit_bytes

    def now_has(self, limit_bytes: int, now_s: float) -> None:
        self._forget_raises(now_s)
        if limit_bytes > self.limit_bytes:
            self._raises.append((now_s, self.limit_bytes))
        self.limit_bytes = self._ordered_bytes = limit_bytes

    def _forget_raises(self, now_s: float) -> None:
        while self._raises and now_s - self._raises[0][0] >= _LATELY_S:
            self._raises.popleft()

    def borrower(self) -> Borrower:
        used = self.used_bytes
        if self.is_waiting:
            ceiling_bytes = min(ceiling_while_waiting(used), self.ceiling_bytes)
            return Borrower(used, 0, ceiling_bytes, self.priority, is_waiting=True)
        is_starting = self.is_promised and self.holder is None
        return Borrower(used, self.reserved_bytes, self.ceiling_bytes, self.priority, is_starting)


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
        self,
        reserved_bytes: int,
        start: Start,
        most_bytes: int | None = None,
        *,
        priority: Priority = Priority.HIGH,
        is_promised: bool = False,
    ) -> Loan:
        """Start a process with the limit that there is for it; give it back with `returned`. Where it was promised what
        is reserved and that is not there within a second, raise NoRoomError.
        """
        ceiling_bytes = most_bytes or max(self._ceiling_bytes, reserved_bytes)
        loan = Loan(reserved_bytes, ceiling_bytes, priority, is_promised=is_promised)
        self._loans.append(loan)
        try:
            give_up_s = _now_s() + _STARTS_WITHIN_S
            while not await self._started(loan, start):
                if _now_s() >= give_up_s:
                    raise NoRoomError
                await asyncio.sleep(_LOOKS_AGAIN_S)
        except BaseException:
            self._loans.remove(loan)
            raise
        return loan

    async def _started(self, loan: Loan, start: Start) -> bool:
        """Start the process, if there is what it was promised. Nothing else moves until it is there: from then on its
        limit can come down again.
        """
        async with self._lock:
            await self._move()
            if loan.is_promised and loan.limit_bytes < loan.reserved_bytes:
                return False
            limit_bytes = min(max(loan.limit_bytes, LEAST_WORKER_BYTES), loan.ceiling_bytes)
            loan.holder = await start(limit_bytes)
            loan.begin(loan.holder.limit_bytes)
            return True

    def lendable_bytes(self) -> int:
        """What workers can be promised together: the room without what programs hold, and without a little, by which
        the controller may grow before they start.
        """
        programs = [loan for loan in self._loans if not loan.is_promised]
        held = sum(max(enough_to_go_on(loan.used_bytes), loan.reserved_bytes) for loan in programs)
        return self.room_bytes - self._abandoned_bytes() - held - KEPT_BACK_BYTES * len(programs) - _MOVES_BYTES

    async def settle(self) -> None:
        """Divide the room again: a worker is nearly full, has ended, or begins or ends a wait."""
        async with self._lock:
            await self._move()

    def returned(self, loan: Loan) -> None:
        self._loans.remove(loan)

    def has_none_for(self, loan: Loan) -> bool:
        """Whether the loan is short, and dividing the room by what all use now would leave it so. One that has grown
        while limits moved is short too, but there may be more for it.
        """
        if not loan.is_short:
            return False
        _, targets = self._divided(self._loans)
        return is_nearly_full(loan.used_bytes, targets[self._loans.index(loan)])

    def _divided(self, loans: Sequence[Loan]) -> tuple[int, list[int]]:
        """The room, and the limit of each within it."""
        computing = sum(not loan.is_waiting for loan in loans)
        room_bytes = max(0, self.room_bytes - self._abandoned_bytes() - KEPT_BACK_BYTES * computing)
        return room_bytes, limits_within(room_bytes, [loan.borrower() for loan in loans])

    async def _move(self) -> None:
        """Divide the room, and again where a wait has ended meanwhile."""
        for _ in range(_MOST_ROUNDS):
            if not await self._move_once():
                return

    async def _move_once(self) -> bool:
        """Divide the room by what all use now; return whether a wait ended meanwhile, so that this has become wrong."""
        loans = list(self._loans)
        room_bytes, targets = self._divided(loans)
        # A worker that starts gets all that it was promised: what is not worth moving adds up with many that wait.
        is_starting = any(loan.is_promised and loan.holder is None for loan in loans)
        worth_moving_bytes = 1 if is_starting else _WORTH_MOVING_BYTES
        waited = [loan.is_waiting for loan in loans]
        is_any_back = False
        for loan, target, has_waited in zip(loans, targets, waited, strict=True):
            if target <= loan.limit_bytes - worth_moving_bytes:
                if has_waited and not loan.is_waiting:
                    is_any_back = True  # what a waiting one is left with is too little for it
                else:
                    await self._set(loan, target)
        for loan, target in zip(loans, targets, strict=True):
            free = room_bytes - sum(each.limit_bytes for each in self._loans)
            limit = min(target, loan.limit_bytes + max(0, free))
            if limit >= loan.limit_bytes + _WORTH_MOVING_BYTES:
                await self._set(loan, limit)
        return is_any_back

    async def _set(self, loan: Loan, limit_bytes: int) -> None:
        """Change a limit, and know what it is when this ends, also where the caller is cancelled meanwhile."""
        if loan.holder is None:
            loan.now_has(limit_bytes, _now_s())
            return
        loan.note_order(limit_bytes)
        setting = asyncio.ensure_future(_set_by(loan.holder, loan, limit_bytes))
        try:
            await asyncio.shield(setting)
        except asyncio.CancelledError:
            while not setting.done():
                with suppress(asyncio.CancelledError):  # once more
                    await asyncio.wait([setting])
            raise


async def _set_by(holder: LimitedProcess, loan: Loan, limit_bytes: int) -> None:
    loan.now_has(await holder.set_limit(limit_bytes), _now_s())


def _now_s() -> float:
    return asyncio.get_running_loop().time()
