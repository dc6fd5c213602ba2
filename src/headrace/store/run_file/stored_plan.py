"""The plan in a run file: reading it, and refusing one that cannot have grown or cannot be run here.

Does not cover: writing it (creation), or growing it (growth).
"""

from __future__ import annotations

from pathlib import Path

import apsw

from headrace.display import counted
from headrace.errors import RunFileError, spelled
from headrace.plan.product import Box, Cell, Plan
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.units import format_bytes

_MOST_BOXES = 10_000
_MOST_INTERVIEWS = 2**62
_AXES = len(Cell._fields)
# What is finished, what has a row, and copies of both while a run begins.
_BITS_EACH = 6


def read_plan(connection: apsw.Connection, path: Path) -> Plan:
    with decoding(path, "its plan"):
        corners = typed_rows(
            connection, tuple[str, str], "SELECT low, high FROM boxes ORDER BY number LIMIT ?", (_MOST_BOXES + 1,)
        )
        boxes = tuple(Box(_cell(low), _cell(high)) for low, high in corners)
        plan = Plan.from_boxes(boxes)
    if len(boxes) > _MOST_BOXES or not _has_grown(boxes) or not 0 < plan.size <= _MOST_INTERVIEWS:
        raise damaged(path, "its plan is none that Headrace makes")
    return plan


def check_lists(connection: apsw.Connection, path: Path, plan: Plan) -> None:
    """Refuse a file whose lists are not as long as its plan says. Counting takes 30 ms for a million rows."""
    for table, length in (
        ("agents", plan.shape.agent),
        ("scenarios", plan.shape.scenario),
        ("models", plan.shape.model),
    ):
        held = connection.execute(f"SELECT count(*) FROM {table} WHERE position >= 0 AND position < ?", (length,)).get
        if held != length:
            raise damaged(path, f"it has {held:,} of the {length:,} {table} in its plan")


def check_fits(plan: Plan, path: Path, budget_bytes: int) -> None:
    """Refuse a plan where keeping track of its interviews would take most of the memory budget."""
    needed_bytes = plan.size * _BITS_EACH // 8
    if needed_bytes > budget_bytes // 2:
        raise RunFileError(
            f"{path} has a plan of {counted(plan.size, 'interview')}, and to keep track of them takes"
            f" {format_bytes(needed_bytes)} of a memory budget of {format_bytes(budget_bytes)}.",
            path=path,
            fix=spelled("Raise the budget ({memory}), or split the job into several run files.", memory=None),
        )


def _cell(text: str) -> Cell:
    return Cell(*map(int, text.split(",")))


def _has_grown(boxes: tuple[Box, ...]) -> bool:
    """Whether these are boxes that a plan can have: the first one at zero, each later one what one longer axis adds."""
    first = boxes[0]
    if first.low != Cell(0, 0, 0, 0) or min(first.high) < 1:
        return False
    covered = list(first.high)
    for box in boxes[1:]:
        longer = [axis for axis in range(_AXES) if box.low[axis]]
        if len(longer) != 1 or longer[0] == Cell._fields.index("model"):
            return False
        (axis,) = longer
        expected_low = [covered[axis] if each == axis else 0 for each in range(_AXES)]
        if list(box.low) != expected_low or box.high[axis] <= covered[axis]:
            return False
        covered[axis] = box.high[axis]
        if list(box.high) != covered:
            return False
    return True
