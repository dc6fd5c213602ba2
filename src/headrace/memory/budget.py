"""Turns a written memory budget into bytes on this host. Covers: `memory="512MB"`, `"60%"`, `"+512MB"` and the default,
and the same as `MemoryLimits(budget=...)`.

Does not cover: how the tree is read afterwards (memory.gauge), or the words (units.parse_budget).
"""

from __future__ import annotations

from msgspec import structs

from headrace.errors import BudgetTooSmall, spelled
from headrace.limits import MemoryLimits
from headrace.memory.measure.host_memory import available_bytes, total_bytes
from headrace.memory.measure.own_tree import tree_bytes
from headrace.units import BudgetKind, format_bytes, parse_budget

_DEFAULT_MOST_BYTES = 512_000_000
_DEFAULT_SHARE = 0.25


def memory_limits(given: str | int | MemoryLimits | None) -> MemoryLimits:
    """Return the limits with their budget in bytes. A written one is at most what the host has, and BudgetTooSmall
    where the process already uses more; `budget_bytes` is taken as it is.
    """
    used_bytes = tree_bytes()
    if not isinstance(given, MemoryLimits):
        limits = MemoryLimits(budget_bytes=_budget_bytes("memory", given, used_bytes))
        return _with_base(limits, given, used_bytes)
    if given.budget is None:
        return given
    budget_bytes = _budget_bytes("budget", given.budget, used_bytes)
    return _with_base(structs.replace(given, budget=None, budget_bytes=budget_bytes), given.budget, used_bytes)


def _with_base(limits: MemoryLimits, written: str | int | None, used_bytes: int) -> MemoryLimits:
    """A notebook may hold gigabytes: of these and 512 MB on top, each level would be entered before any work."""
    is_on_top = written is None or parse_budget(written).kind is BudgetKind.EXTRA
    if not is_on_top or used_bytes < limits.shrink_until * limits.budget_bytes:
        return limits
    return structs.replace(limits, base_bytes=used_bytes)


def _budget_bytes(option: str, written: str | int | None, used: int) -> int:
    free = available_bytes()
    if written is None:
        return used + int(min(_DEFAULT_MOST_BYTES, free * _DEFAULT_SHARE))
    budget = parse_budget(written)
    match budget.kind:
        case BudgetKind.TOTAL:
            asked = int(budget.amount)
        case BudgetKind.EXTRA:
            asked = used + int(budget.amount)
        case BudgetKind.SHARE:
            asked = int(total_bytes() * budget.amount)
    if asked <= used:
        or_default = '"none" for the default, ' if option == "memory" else ""
        raise BudgetTooSmall(
            spelled(
                f"{{{option}}} is {format_bytes(asked)}, and the process already uses {format_bytes(used)}.",
                **{option: written},
            ),
            budget_bytes=asked,
            used_bytes=used,
            fix=spelled(
                f"Give more, {or_default}or write {{{option}}} for that much on top of what is in use.",
                **{option: "+256MB"},
            ),
        )
    return min(asked, used + free)
