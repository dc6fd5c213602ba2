"""Prints results, estimates, budgets and the end of a run: for people, and as JSON for scripts."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from headrace.cli.terminal import (
    own_command,
    path_text,
    print_data_as_utf8,
    print_json,
    say,
    seen_from_here,
)
from headrace.display import cell_text, counted
from headrace.errors import OptionError
from headrace.limits import Budgets
from headrace.plan.estimate import Estimate
from headrace.results.export.text_export import print_csv, print_jsonl
from headrace.results.failed_questions import FailedQuestion
from headrace.results.results import Results
from headrace.results.stats import Stats
from headrace.units import format_bytes

_LAYOUTS = ("table", "csv", "jsonl")
_LONGEST_MESSAGE = 500


def show_finished(results: Results, *, as_json: bool) -> bool:
    """Prints how a run ended and what to type next; returns whether some interviews failed."""
    stats = results.stats()
    if as_json:
        print_json({"path": path_text(results.path), **asdict(stats)})
        return stats.failed > 0
    failed = f", {stats.failed:,} failed" if stats.failed else ""
    path = seen_from_here(results.path)
    say(f"{counted(stats.interviews, 'interview')} in {path}{failed}; {spent_text(stats)}")
    say(f"look at them: {own_command()} results {path}")
    if stats.failed:
        first = next(iter(results.failed()))
        say(f"the first failure: interview {first.ordinal}, {first.question}: {first.cause}: {first.message}")
        say(f"ask the failed ones again: {own_command()} resume {path} --retry-failed")
    return stats.failed > 0


def spent_text(stats: Stats) -> str:
    """What a run file took: `8 calls, 396 tokens, $0.12`, and what earlier runs had paid for already."""
    cost = f", {_dollars(stats.cost)}" if stats.cost else ""
    cached = f", {counted(stats.cache_hits, 'answer')} from the cache" if stats.cache_hits else ""
    return f"{counted(stats.calls, 'call')}, {counted(stats.tokens, 'token')}{cost}{cached}"


def show_estimate(estimate: Estimate, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(estimate))
        return
    cost = "not known" if estimate.cost is None else f"${estimate.cost:,.2f}"
    print(f"interviews  {estimate.interviews:,}")
    print(f"calls       {estimate.calls:,}")
    print(f"tokens      about {estimate.input_tokens:,} in, {estimate.output_tokens:,} out")
    print(f"cost        {cost}")
    print(f"disk        about {format_bytes(estimate.disk_bytes)}")


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


class Layout:
    """The format of printed results, checked when it is made."""

    def __init__(self, name: str, *, escape_formulas: bool) -> None:
        if name not in _LAYOUTS:
            raise OptionError(f"--format {name} is not known.", fix=f"Use one of {', '.join(_LAYOUTS)}.")
        if escape_formulas and name != "csv":
            raise OptionError(f"--escape-formulas is for CSV, and this is {name}.", fix="Add --format csv.")
        self.name = name
        self.escape_formulas = escape_formulas


def show_results(
    path: Path, *, select: str, where: str | None, sort_by: str | None, limit: int | None, layout: Layout
) -> None:
    with Results.open(path) as results:
        chosen = results if select == "*" else results.select(*(name.strip() for name in select.split(",")))
        chosen = chosen.filter(where) if where else chosen
        chosen = chosen.sort_by(*(name.strip() for name in sort_by.split(","))) if sort_by else chosen
        chosen = chosen.head(limit) if limit else chosen
        match layout.name:
            case "csv":
                print_data_as_utf8()
                chosen.print_csv(sys.stdout, escape_formulas=layout.escape_formulas)
            case "jsonl":
                print_data_as_utf8()
                chosen.print_jsonl(sys.stdout)
            case _:
                chosen.print(max_rows=limit)
                if chosen.stats().failed:
                    say(f"list what failed: {own_command()} results {seen_from_here(path)} --failed")


def show_failed(path: Path, *, where: str | None, limit: int | None, layout: Layout) -> None:
    """Prints the questions without an answer as they are read: a line each, or as CSV or JSON lines."""
    with Results.open(path) as results:
        failures = islice((results.filter(where) if where else results).failed(), limit)
        columns = list(FailedQuestion._fields)
        match layout.name:
            case "csv":
                print_data_as_utf8()
                print_csv(sys.stdout, columns, failures, escape_formulas=layout.escape_formulas)
            case "jsonl":
                print_data_as_utf8()
                print_jsonl(sys.stdout, columns, failures)
            case _:
                for failure in failures:
                    message = cell_text(failure.message, _LONGEST_MESSAGE)
                    say(f"interview {failure.ordinal:,}, {failure.question}: {failure.cause}: {message}")
