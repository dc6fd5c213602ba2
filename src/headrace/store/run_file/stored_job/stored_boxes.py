"""The plan in a run file, read from its boxes, and how many interviews it has.

Does not cover: comparing it with that of a job (stored_plan).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.plan.product import Box, Coordinates, Plan
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.store.run_file.stored_job.stored_where import count_left_out

_MOST_BOXES = 10_000
_MOST_INTERVIEWS = 2**62
_AXES = len(Coordinates._fields)


def read_plan(connection: apsw.Connection, path: Path) -> Plan:
    with decoding(path, "its plan"):
        corners = typed_rows(
            connection, tuple[str, str], "SELECT low, high FROM boxes ORDER BY number LIMIT ?", (_MOST_BOXES + 1,)
        )
        boxes = tuple(Box(_coordinates(low), _coordinates(high)) for low, high in corners)
        plan = Plan.from_boxes(boxes)
    if len(boxes) > _MOST_BOXES or not _has_grown(boxes) or not 0 < plan.size <= _MOST_INTERVIEWS:
        raise damaged(path, "its plan is none that Headrace makes")
    return plan


def count_planned(connection: apsw.Connection, path: Path, plan: Plan) -> int:
    """How many interviews the plan in a run file has, without those that it leaves out."""
    return plan.size - (count_left_out(connection, path) or 0)


def _coordinates(text: str) -> Coordinates:
    return Coordinates(*map(int, text.split(",")))


def _has_grown(boxes: tuple[Box, ...]) -> bool:
    """Whether these are boxes that a plan can have: the first one at zero, each later one what one longer axis adds."""
    first = boxes[0]
    if first.low != Coordinates(0, 0, 0, 0) or min(first.high) < 1:
        return False
    covered = list(first.high)
    for box in boxes[1:]:
        longer = [axis for axis in range(_AXES) if box.low[axis]]
        if len(longer) != 1:
            return False
        (axis,) = longer
        expected_low = [covered[axis] if each == axis else 0 for each in range(_AXES)]
        if list(box.low) != expected_low or box.high[axis] <= covered[axis]:
            return False
        covered[axis] = box.high[axis]
        if list(box.high) != covered:
            return False
    return True
