"""Turns a written memory budget into bytes on this host. Covers: `memory="512MB"`, `"60%"`, `"+512MB"` and the default.

Does not cover: how the tree is read afterwards (memory.gauge), or the words (units.parse_budget).
"""

from __future__ import annotations

from headrace.errors import BudgetTooSmall, spelled
from headrace.limits import MemoryLimits
from headrace.memory.measure.host_memory import available_bytes, total_bytes
from headrace.memory.measure.own_tree import tree_bytes
from headrace.units import BudgetKind, format_bytes, parse_budget

_DEFAULT_MOST_BYTES = 512_000_000
_DEFAULT_SHARE = 0.25


def memory_limits(written: str | int | None) -> MemoryLimits:
    """Return the budget in bytes, at most what the host has; BudgetTooSmall where the process already uses more."""
    used, free = tree_bytes(), available_bytes()
    if written is None:
        return MemoryLimits(budget_bytes=used + int(min(_DEFAULT_MOST_BYTES, free * _DEFAULT_SHARE)))
    budget = parse_budget(written)
    match budget.kind:
        case BudgetKind.TOTAL:
            asked = int(budget.amount)
        case BudgetKind.EXTRA:
            asked = used + int(budget.amount)
        case BudgetKind.SHARE:
            asked = int(total_bytes() * budget.amount)
    if asked <= used:
        raise BudgetTooSmall(
            spelled(
                f"{{memory}} is {format_bytes(asked)}, and the process already uses {format_bytes(used)}.",
                memory=written,
            ),
            budget_bytes=asked,
            used_bytes=used,
            fix=spelled(
                'Give more, write {memory} for that much on top of what is in use, or "none" for the default.',
                memory="+256MB",
            ),
        )
    return MemoryLimits(budget_bytes=min(asked, used + free))
