"""What a run has paid for, what the response cache gave it, and what is left of its budgets."""

from __future__ import annotations

import msgspec

from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.web.api.run_summary import OneRun
from headrace.web.operations import PageOperation
from headrace.web.shown_files import ShownFiles


class RunMoney(msgspec.Struct, frozen=True):
    """In US dollars; null where a price is not known, or there is no limit. `calls` were paid for, `cache_hits` were
    not: `saved_about` is what they would have cost at the mean price of a call. Budgets are of all runs of the file.
    """

    cost: float | None
    calls: int
    cache_hits: int
    saved_about: float | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    max_cost: float | None
    cost_left: float | None
    max_tokens: int | None
    tokens_left: int | None
    interview_cost: float | None
    memory: str | None
    concurrency: int
    workers: int


def _run_money(files: ShownFiles, asked: OneRun) -> RunMoney:
    status = RunFileStatus.at(files.one(asked.run).path, is_brief=True)
    stats, budgets = status.stats, status.budgets
    paid = stats.cost
    most_tokens = budgets.max_tokens_total
    return RunMoney(
        cost=paid,
        calls=stats.calls,
        cache_hits=stats.cache_hits,
        saved_about=None if paid is None or not stats.calls else paid / stats.calls * stats.cache_hits,
        input_tokens=stats.input_tokens,
        output_tokens=stats.output_tokens,
        cached_tokens=stats.cached_tokens,
        reasoning_tokens=stats.reasoning_tokens,
        max_cost=budgets.max_cost,
        cost_left=None if budgets.max_cost is None or paid is None else max(0.0, budgets.max_cost - paid),
        max_tokens=most_tokens,
        tokens_left=None if most_tokens is None else max(0, most_tokens - stats.tokens),
        interview_cost=None if paid is None or not stats.interviews else paid / stats.interviews,
        memory=None if budgets.memory is None else str(budgets.memory),
        concurrency=budgets.window,
        workers=budgets.workers or 0,
    )


RUN_MONEY = PageOperation(
    name="money",
    summary="What a run has paid for, what came from the cache, and what is left of its budgets.",
    path="/runs/{run}/money",
    parameters=OneRun,
    reply=RunMoney,
    call=_run_money,
)
