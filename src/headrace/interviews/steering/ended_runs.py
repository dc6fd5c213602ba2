"""Why a run that no process runs has ended, and which larger budgets let it go on.

Does not cover: who runs a file now (interviews.steering.run_file_status), functions that a command cannot give
(interviews.steering.needed_functions), or the command itself (cli, web).
"""

from __future__ import annotations

from math import ceil

from headrace.limits import Budgets
from headrace.results.stats import Stats
from headrace.store.run_file.details import RunOutcome


def why_ended(outcome: RunOutcome, budgets: Budgets, stats: Stats) -> str:
    """In words, of a file whose plan is not complete."""
    is_spent = bool(larger_budgets(budgets, stats))
    match outcome:
        case RunOutcome.SPENT:
            return "Its budget is spent."
        case RunOutcome.STOPPED:  # older versions noted a spent budget as this, too
            return "Its budget is spent." if is_spent else "It was stopped."
        case RunOutcome.FAILED:
            return "It ended with an error."
        case RunOutcome.COMPLETE:
            return "Its latest run has done the part of the plan that it was asked for."
        case RunOutcome.UNKNOWN:
            return "It was killed, or its machine stopped."


def larger_budgets(budgets: Budgets, stats: Stats) -> str:
    """The options that let a run go on whose budget has no room for another interview like those before: twice the
    budget, or twice what is needed where that is not enough.
    """
    words = ""
    share = 1 + 1 / max(stats.interviews, 1)
    cost, tokens = (stats.cost or 0.0) * share, stats.tokens * share
    if budgets.max_cost is not None and cost > budgets.max_cost:
        words += f" --max-cost {_larger(budgets.max_cost, float(f'{cost:.2g}')):g}"
    if budgets.max_tokens_total is not None and tokens > budgets.max_tokens_total:
        words += f" --max-tokens-total {_larger(budgets.max_tokens_total, ceil(tokens)):.0f}"
    return words


def _larger(budget: float, needed: float) -> float:
    return 2 * (budget if 2 * budget > needed else needed)
