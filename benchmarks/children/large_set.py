"""Holds what is finished of a plan of 10^9: `large_set PATTERN`. It prints memory and the cost of each call."""

import random
import sys
import time
from collections.abc import Callable

from benchmarks.processes import loop_ms, print_figures
from headrace.memory.measure.process import own_resident_bytes
from headrace.memory.reclaiming import return_free_heap
from headrace.plan.bitmap import BLOCK_BYTES, Bitmap
from headrace.plan.portion import Portion

_PLAN = 10**9
_DONE = 10**8
_CALLS = 1_000_000


def in_order() -> Bitmap:
    made = Bitmap(_PLAN)
    made.fill(_DONE)
    return made


def every_second() -> Bitmap:
    """Those of one of two models, over 2 * 10^8 ordinals."""
    made = Bitmap(_PLAN)
    for number in made.blocks[: 2 * _DONE // (8 * BLOCK_BYTES)]:
        made.put_block(number, b"\x55" * BLOCK_BYTES)
    return made


def at_random() -> Bitmap:
    """One in a hundred, as a sample of 10^7 leaves them."""
    return Portion(_PLAN, limit=None, sample=_PLAN // 100, seed=1).passed_over(Bitmap(_PLAN)).inverted()


PATTERNS: dict[str, Callable[[], Bitmap]] = {
    "in_order": in_order,
    "every_second": every_second,
    "at_random": at_random,
}


def main(pattern: str) -> None:
    before_bytes, began_s = own_resident_bytes(), time.process_time()
    made = PATTERNS[pattern]()
    make_s = time.process_time() - began_s
    return_free_heap()  # what making it has left behind is no part of the set
    resident_bytes = own_resident_bytes() - before_bytes
    first = random.Random(1).randrange(_DONE)
    print_figures(
        count=made.count,
        held_bytes=made.held_bytes,
        resident_bytes=resident_bytes,
        make_s=make_s,
        contains_us=_contains_us(made, first),
        next_us=_next_us(made, first),
        add_us=_add_us(made.copy(), first),
        loop_ms=loop_ms(),
    )


def _contains_us(made: Bitmap, first: int) -> float:
    began_s, found = time.process_time(), 0
    for ordinal in range(first, first + _CALLS):
        found += ordinal in made
    return (time.process_time() - began_s) / _CALLS * 1e6


def _next_us(made: Bitmap, first: int) -> float:
    began_s, at = time.process_time(), first
    for _ in range(_CALLS):
        at = made.next_gap(at) + 1
    return (time.process_time() - began_s) / _CALLS * 1e6


def _add_us(made: Bitmap, first: int) -> float:
    began_s = time.process_time()
    for start in range(first, first + _CALLS, 64):
        made.update(range(start, start + 64))
    return (time.process_time() - began_s) / _CALLS * 1e6


if __name__ == "__main__":
    main(sys.argv[1])
