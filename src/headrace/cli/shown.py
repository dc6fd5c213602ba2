"""What the commands print: for people, and as JSON for scripts. Does not cover: the commands (cli.main)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headrace.cli.seen import print_json, seen_from_here
from headrace.errors import HeadraceError, OptionError
from headrace.plan.estimate import Estimate
from headrace.results.results import Results
from headrace.store.home import home
from headrace.units import format_bytes

_LAYOUTS = ("table", "csv", "jsonl")
_ROWS_OF_A_TABLE = 50


def show_finished(results: Results, *, as_json: bool) -> bool:
    """Say how a run ended and what to type next; tells whether some interviews failed."""
    stats = results.stats()
    if as_json:
        print_json({"path": str(results.path), **asdict(stats)})
        return stats.failed > 0
    failed = f", {stats.failed:,} failed" if stats.failed else ""
    path = seen_from_here(results.path)
    print(f"{stats.interviews:,} interviews in {path}{failed}; {stats.calls:,} calls, {stats.tokens:,} tokens")
    print(f"look at them: headrace results {path}")
    if stats.failed:
        print(f"ask the failed ones again: headrace resume {path} --retry-failed")
    return stats.failed > 0


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


def show_results(
    path: Path, *, select: str, where: str | None, sort_by: str | None, limit: int | None, layout: str
) -> None:
    if layout not in _LAYOUTS:
        raise OptionError(f"--format {layout} is not known.", fix=f"Use one of {', '.join(_LAYOUTS)}.")
    with Results.open(path) as results:
        chosen = results.select(*(name.strip() for name in select.split(",")))
        chosen = chosen.filter(where) if where else chosen
        chosen = chosen.sort_by(*(name.strip() for name in sort_by.split(","))) if sort_by else chosen
        chosen = chosen.head(limit) if limit else chosen
        match layout:
            case "csv":
                chosen.print_csv(sys.stdout)
            case "jsonl":
                chosen.print_jsonl(sys.stdout)
            case _:
                _print_table(chosen)


def show_runs(*, as_json: bool) -> None:
    found = list(_runs())  # as many as a person keeps
    if as_json:
        print_json(found)
        return
    if not found:
        print(f"no run files in {home() / 'runs'}")
        return
    for run in found:
        print(f"{format_bytes(run['size_bytes']):>8}  {run['interviews']:>12,}  {run['path']}")


def _runs() -> Iterator[dict[str, Any]]:
    for path in sorted((home() / "runs").glob("*.run")):
        try:
            with Results.open(path) as results:
                interviews = len(results)
        except HeadraceError:
            continue  # not a run file, or one that cannot be read: `headrace status` says which
        yield {"path": str(path), "interviews": interviews, "size_bytes": path.stat().st_size}


def _print_table(results: Results) -> None:
    shown = Table()
    for name in results.columns:
        shown.add_column(name)
    for row in results.head(_ROWS_OF_A_TABLE).to_dicts():
        shown.add_row(*("" if value is None else escape(str(value)) for value in row.values()))
    Console(highlight=False).print(shown)
    if len(results) > _ROWS_OF_A_TABLE:
        print(f"the first {_ROWS_OF_A_TABLE} of {len(results):,}; --format csv prints them all")
