"""How much of the budget each busy worker may use right now. Covers: the shares. Does not cover: setting limits.

Ceilings are lent, not reserved: each worker has what it uses and what its run was promised, and what is left is shared
by how much each uses, up to its ceiling. In all it is never more than there is, as long as that holds what is in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_SLACK_BYTES = 8 << 20  # to go on with until more is lent
_WEIGHT_BYTES = 16 << 20  # those that use nothing yet get a share too


class Borrower(NamedTuple):
    """`reserved_bytes` is what admission charged for its run; `ceiling_bytes` the most it may have."""

    used_bytes: int
    reserved_bytes: int
    ceiling_bytes: int


def limits_within(room_bytes: int, borrowers: Sequence[Borrower]) -> list[int]:
    """Return a limit for each borrower, in order, and none below what the borrower uses."""
    wants = [_at_least(borrower, borrower.used_bytes + _SLACK_BYTES) for borrower in borrowers]
    spare_bytes = room_bytes - sum(wants)
    if spare_bytes >= 0:
        return _share_out(spare_bytes, borrowers, wants)
    floors = [_at_least(borrower, borrower.used_bytes) for borrower in borrowers]
    if sum(floors) > room_bytes:  # more was promised than there is by now
        floors = [borrower.used_bytes for borrower in borrowers]
    return _cut(floors, wants, max(0, room_bytes - sum(floors)))


def _at_least(borrower: Borrower, size_bytes: int) -> int:
    wanted = min(max(size_bytes, borrower.reserved_bytes), borrower.ceiling_bytes)
    return max(wanted, borrower.used_bytes)


def _cut(floors: list[int], wants: list[int], spare_bytes: int) -> list[int]:
    """There is not enough for all: each gets the same part of what it wants above its use."""
    wanted = sum(wants) - sum(floors)
    return [floor + spare_bytes * (want - floor) // max(1, wanted) for floor, want in zip(floors, wants, strict=True)]


def _share_out(spare_bytes: int, borrowers: Sequence[Borrower], limits: list[int]) -> list[int]:
    """Until nothing is left, or all are at their ceilings: at most one round for each."""
    for _ in borrowers:
        open_ones = [index for index, each in enumerate(borrowers) if limits[index] < each.ceiling_bytes]
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
    return limits
