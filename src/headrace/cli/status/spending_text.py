"""What a run took, and its budgets, in words and options. Does not cover: the results themselves (cli.output)."""

from __future__ import annotations

from headrace.display import counted
from headrace.limits import Budgets
from headrace.results.stats import Stats


def spent_text(stats: Stats) -> str:
    """What a run file took: `8 calls, 396 tokens, $0.12`, and what earlier runs had paid for already."""
    cost = f", {_dollars(stats.cost)}" if stats.cost else ""
    cached = f", {counted(stats.cache_hits, 'answer')} from the cache" if stats.cache_hits else ""
    return f"{counted(stats.calls, 'call')}, {counted(stats.tokens, 'token')}{cost}{cached}"


def budgets_text(budgets: Budgets, stats: Stats) -> str:
    """The budgets that a file keeps, and how much of them is used; empty where it keeps none."""
    parts: list[str] = []
    if budgets.max_cost is not None:
        spent = "an unknown part" if stats.cost is None else _dollars(stats.cost)
        parts.append(f"{spent} of {_dollars(budgets.max_cost)}")
    if budgets.max_tokens_total is not None:
        parts.append(f"{stats.tokens:,} of {counted(budgets.max_tokens_total, 'token')}")
    if budgets.concurrency is not None:
        parts.append(f"concurrency {budgets.concurrency:,}")
    if budgets.workers is not None:
        parts.append(f"workers {budgets.workers:,}")
    if budgets.memory is not None:
        parts.append(f"memory {budgets.memory}")
    return ", ".join(parts)


def larger_budgets(budgets: Budgets, stats: Stats) -> str:
    """The options that let a run go on whose budget has no room for another interview like those before."""
    words = ""
    share = 1 + 1 / max(stats.interviews, 1)
    if budgets.max_cost is not None and (stats.cost or 0.0) * share > budgets.max_cost:
        words += f" --max-cost {2 * budgets.max_cost:g}"
    if budgets.max_tokens_total is not None and stats.tokens * share > budgets.max_tokens_total:
        words += f" --max-tokens-total {2 * budgets.max_tokens_total}"
    return words


def _dollars(amount: float) -> str:
    """An amount as text; with two significant figures below ten cents."""
    return f"${amount:,.2f}" if amount >= 0.1 or not amount else f"${float(f'{amount:.2g}'):f}".rstrip("0")
