"""What a run took, and its budgets, in words and options. Does not cover: the results themselves (cli.output)."""

from __future__ import annotations

from headrace.display import counted
from headrace.limits import Budgets
from headrace.results.stats import Stats
from headrace.units import format_dollars


def spent_text(stats: Stats) -> str:
    """What a run file took: `8 calls, 396 tokens, $0.12`, and what earlier runs had paid for already."""
    cost = f", {format_dollars(stats.cost)}" if stats.cost else ""
    cached = f", {counted(stats.cache_hits, 'answer')} from the cache" if stats.cache_hits else ""
    return f"{counted(stats.calls, 'call')}, {counted(stats.tokens, 'token')}{cost}{cached}"


def budgets_text(budgets: Budgets, stats: Stats) -> str:
    """The budgets that a file keeps, and how much of them is used; empty where it keeps none."""
    parts: list[str] = []
    if budgets.max_cost is not None:
        spent = "an unknown part" if stats.cost is None else format_dollars(stats.cost)
        parts.append(f"{spent} of {format_dollars(budgets.max_cost)}")
    if budgets.max_tokens_total is not None:
        parts.append(f"{stats.tokens:,} of {counted(budgets.max_tokens_total, 'token')}")
    return ", ".join([*parts, *budgets.sizes_in_words])
