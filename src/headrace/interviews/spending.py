"""Counts what a job has cost so far, and how many interviews the rest of its budget affords.

Counted over all runs of the file, so that a run that was killed and started again spends no more than was allowed.
Does not cover: prices (plan.prices), or stopping (interviews.run).
"""

from __future__ import annotations

from headrace.display import counted
from headrace.errors import BudgetSpent, OptionError, Spelled, spelled
from headrace.installing import install_command
from headrace.limits import Budgets
from headrace.plan.job import Job
from headrace.plan.prices import can_look_up, price_of
from headrace.survey.record import Usage


class Spending:
    """`run` is what this run took, `_lost` the part of it that no interview shows, `_before` what earlier runs took."""

    def __init__(self, job: Job, budgets: Budgets, before: Usage, interviews_before: int) -> None:
        self._most_cost = budgets.max_cost
        self._most_tokens = budgets.max_tokens_total
        self._before = before
        self._interviews = 0
        self._first_cost = self._first_tokens = 0.0
        self.run = Usage()
        self._lost = Usage()
        self._unanswered = 0
        if self.is_limited:
            expected, count = job.estimate(), max(interviews_before, 1)
            expected_tokens = expected.input_tokens + expected.output_tokens
            # What earlier runs took says more than an estimate, which may be ten times too low.
            each = _uncached(before) / count
            self._first_cost = before.cost * each or (expected.cost or 0.0) / expected.interviews
            self._first_tokens = _tokens(before) * each or expected_tokens / expected.interviews

    @property
    def is_limited(self) -> bool:
        return self._most_cost is not None or self._most_tokens is not None

    def add(self, usage: Usage, interviews: int) -> None:
        """Count what so many more interviews took together."""
        self._interviews += interviews
        self.run.include(usage)

    def add_lost(self, usage: Usage, unanswered: int) -> None:
        """Paid for by a worker that has ended: it counts, and says nothing of what an interview takes. The service has
        most likely taken money for unanswered calls too: the budget takes each for an average one.
        """
        self.run.include(usage)
        self._lost.include(usage)
        self._unanswered += unanswered

    def affordable(self) -> int | None:
        """How many interviews more, those in flight among them, the budget has room for; None for no limit."""
        rooms: list[float] = []
        if self._most_cost is not None:
            left = self._most_cost - self._before.cost - self.run.cost - self._unseen(self.run.cost)
            rooms.append(_room(left, self._mean(self.run.cost - self._lost.cost, self._first_cost)))
        if self._most_tokens is not None:
            tokens = _tokens(self.run)
            left = self._most_tokens - _tokens(self._before) - tokens - self._unseen(tokens)
            rooms.append(_room(left, self._mean(_tokens(self.run) - _tokens(self._lost), self._first_tokens)))
        return int(min(rooms)) if rooms else None

    def spent(self, done: int, total: int) -> BudgetSpent:
        """The error that ends a run whose budget has no room for another interview."""
        cost, tokens = self._before.cost + self.run.cost, _tokens(self._before) + _tokens(self.run)
        paid = f"${cost:,.4f}, " if cost and not self._before.unpriced + self.run.unpriced else ""
        given = {"max_cost": self._most_cost, "max_tokens_total": self._most_tokens}
        limits = {name: most for name, most in given.items() if most is not None}
        either, named = " or ".join(f"{{{name}}}" for name in limits), ", ".join(f"{{{name}}}" for name in limits)
        return BudgetSpent(
            spelled(
                f"The budget is spent: {either} has no room for another interview after {done:,} of {total:,}"
                f" ({paid}{counted(tokens, 'token')}).",
                **limits,
            ),
            fix=spelled(
                f"Everything is saved; to go on, give a larger one, or none: {named}.", **dict.fromkeys(limits, "none")
            ),
        )

    def _unseen(self, spent: float) -> float:
        """Estimate what calls without a reply have taken, if each was like those with one."""
        answered = self.run.calls - self._unanswered
        return spent / answered * self._unanswered if answered > 0 else 0.0

    def _mean(self, spent: float, expected: float) -> float:
        """Estimate what the next interview takes, of money or tokens, if the cache holds none of its answers: the mean
        of those that ended, scaled up by their cache hits; `expected` until one has made a call.
        """
        each = _uncached(self.run, self._lost.calls)
        return spent / self._interviews * each if self._interviews and each else expected


def _room(left: float, each: float) -> float:
    if left <= 0:
        return 0.0
    return left // each if each > 0 else 1e12


def _uncached(usage: Usage, lost_calls: int = 0) -> float:
    """How many times as much the interviews would have taken without the response cache; 0 where none made a call.
    The interviews to come may find nothing in it.
    """
    calls = usage.calls - lost_calls
    return 1 + usage.cache_hits / calls if calls > 0 else 0.0


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def check_priced(job: Job, budgets: Budgets) -> None:
    """Refuse a limit of cost where a price is not known; before a file is made that would keep it."""
    unpriced = [model.name for model in job.called_models if price_of(model) is None]
    if budgets.max_cost is not None and unpriced:
        prices = "." if can_look_up() else f", or install prices with: {install_command('genai-prices')}"
        raise OptionError(
            spelled(
                f"{{max_cost}} needs prices, and none is known of {', '.join(unpriced)}.", max_cost=budgets.max_cost
            ),
            fix=Spelled(
                f'Give Model(..., price={{"input": 2.5, "output": 10}}){prices}',
                command=f"""Give --model 'NAME,price={{"input": 2.5, "output": 10}}'{prices}""",
            ),
        )
