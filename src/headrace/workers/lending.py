"""How much of the budget each busy worker may use right now. Covers: the limits. Does not cover: setting them.

Ceilings are lent, not reserved, and in the order of priority:

    1. every worker has what it uses
    2. level by level, from the highest down: a little to go on with, what its run was promised, and what keeps it from
       being nearly full; where there is not enough, in proportion to what each worker of the level lacks
    3. the rest, from the highest level down: by how much each worker uses, up to the ceilings

So no worker is short while a lower one has memory that it does not use, but for the little that the warden leaves to a
worker whose limit comes down. In all it is never more than there is, as long as that holds what is in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.priority import Priority

NEARLY_FULL = 0.8  # of its limit: a worker above this gets more, where there is more
_LITTLE_BYTES = 8 << 20  # as the warden leaves it to a worker whose limit it lowers, and so is the share
LITTLE_SHARE = 8
_WEIGHT_BYTES = 16 << 20  # those that use nothing yet get a share too


class Borrower(NamedTuple):
    """`reserved_bytes` is what its run was promised; `ceiling_bytes` the most it may have. One that `is_starting`
    counts as using what it was promised. One that `is_waiting` needs a little to go on with, and gets more only of what
    nobody else was promised.
    """

    used_bytes: int
    reserved_bytes: int
    ceiling_bytes: int
    priority: Priority = Priority.HIGH
    is_starting: bool = False
    is_waiting: bool = False

    @property
    def firm_bytes(self) -> int:
        return self.reserved_bytes if self.is_starting else self.used_bytes


def enough_to_go_on(used_bytes: int) -> int:
    """The lowest limit under which a worker can go on; that of one that waits, where others want the rest."""
    return used_bytes + max(_LITTLE_BYTES, used_bytes // LITTLE_SHARE)


def ceiling_while_waiting(used_bytes: int) -> int:
    """The most that a worker that waits may have: far enough above what it uses that the warden need not read it every
    millisecond. Eight that waited just below their limits, with 80 MB each, took 13 % of a core.
    """
    return used_bytes + max(2 * _LITTLE_BYTES, used_bytes // 2)


def is_nearly_full(used_bytes: int, limit_bytes: int) -> bool:
    return used_bytes >= limit_bytes * NEARLY_FULL


def limits_within(room_bytes: int, borrowers: Sequence[Borrower]) -> list[int]:
    """Return a limit for each borrower, in order, and none below what the borrower uses."""
    limits = [borrower.firm_bytes for borrower in borrowers]
    spare_bytes = max(0, room_bytes - sum(limits))
    levels = _levels(borrowers)
    for level in levels:
        for wanted in (_to_go_on, _promised, _comfortable):
            spare_bytes = _fill(spare_bytes, limits, {index: wanted(borrowers[index]) for index in level})
    for level in levels:
        spare_bytes = _share_out(spare_bytes, borrowers, limits, level)
    return limits


def _levels(borrowers: Sequence[Borrower]) -> list[list[int]]:
    """The borrowers of each priority, by index, from the highest down."""
    found: dict[Priority, list[int]] = {}
    for index, borrower in enumerate(borrowers):
        found.setdefault(borrower.priority, []).append(index)
    return [found[priority] for priority in sorted(found, reverse=True)]


def _to_go_on(borrower: Borrower) -> int:
    return min(enough_to_go_on(borrower.used_bytes), borrower.ceiling_bytes)


def _promised(borrower: Borrower) -> int:
    return min(borrower.reserved_bytes, borrower.ceiling_bytes)


def _comfortable(borrower: Borrower) -> int:
    """Just enough not to be nearly full, after it has grown by a little."""
    if borrower.is_waiting:
        return _to_go_on(borrower)
    return min(int((borrower.used_bytes + _LITTLE_BYTES) / NEARLY_FULL), borrower.ceiling_bytes)


def _fill(spare_bytes: int, limits: list[int], wanted: Mapping[int, int]) -> int:
    """Raise limits to what is wanted, or where there is not enough each by the same part of it; return what is left."""
    lacking = {index: max(0, want_bytes - limits[index]) for index, want_bytes in wanted.items()}
    total = sum(lacking.values())
    given = min(spare_bytes, total)
    for index, lack_bytes in lacking.items():
        limits[index] += lack_bytes * given // max(1, total)
    return spare_bytes - given  # rounding leaves some bytes to nobody


def _share_out(spare_bytes: int, borrowers: Sequence[Borrower], limits: list[int], level: list[int]) -> int:
    """Until nothing is left, or all are at their ceilings, at most one round for each; return what is left."""
    for _ in level:
        open_ones = [index for index in level if limits[index] < borrowers[index].ceiling_bytes]
        weight = sum(borrowers[index].used_bytes + _WEIGHT_BYTES for index in open_ones)
        given = 0
        for index in open_ones:
            borrower = borrowers[index]
            share = spare_bytes * (borrower.used_bytes + _WEIGHT_BYTES) // weight
            share = min(share, borrower.ceiling_bytes - limits[index])
            limits[index] += share
            given += share
        spare_bytes -= given
        if not given:
            break
    return spare_bytes
