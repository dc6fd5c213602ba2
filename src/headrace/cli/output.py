"""Prints results, estimates and the end of a run: for people, and as JSON for scripts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from headrace.cli.export_formats import (
    EDSL,
    FORMATS,
    checked_format,
    default_output,
    format_of,
    print_parquet,
    write,
)
from headrace.cli.queries import EVERYTHING, Query, opened
from headrace.cli.status.spending_text import spent_text
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
from headrace.plan.estimate import Estimate
from headrace.results.export.text_export import print_csv, print_jsonl
from headrace.results.failed_questions import FailedQuestion
from headrace.results.results import Results
from headrace.results.tabular import columns_of
from headrace.units import format_bytes, format_dollars

_TABLE = "table"
_LAYOUTS = (_TABLE, "csv", "jsonl", "markdown", "parquet")
_LONGEST_MESSAGE = 500


def show_finished(results: Results, *, as_json: bool) -> None:
    """Prints what is in a file after a run and what to type next."""
    stats = results.stats()
    if as_json:
        print_json({"path": path_text(results.path), **asdict(stats)})
        return
    failed = f", {stats.failed:,} failed" if stats.failed else ""
    path = seen_from_here(results.path)
    say(f"{counted(stats.interviews, 'interview')} in {path}{failed}; {spent_text(stats)}")
    say(f"look at them: {own_command()} results {path}")
    if stats.failed:
        first = next(Results.open(results.path).failed())
        say(f"the first failure: interview {first.ordinal}, {first.question}: {first.cause}: {first.message}")
        say(f"ask the failed ones again: {own_command()} resume {path} --retry-failed")


def show_estimate(estimate: Estimate, max_cost: float | None, *, as_json: bool) -> None:
    """Prints what a run would take, and whether that is more than the `max_cost` it was given."""
    if as_json:
        print_json(asdict(estimate))
        return
    cost = "not known" if estimate.cost is None else format_dollars(estimate.cost)
    if max_cost is not None and estimate.cost is not None and estimate.cost > max_cost:
        cost += f", above --max-cost {max_cost:g}: a run would stop before its end"
    print(f"interviews  {estimate.interviews:,}")
    print(f"calls       {estimate.calls:,}")
    print(f"tokens      about {estimate.input_tokens:,} in, {estimate.output_tokens:,} out")
    print(f"cost        {cost}")
    print(f"disk        about {format_bytes(estimate.disk_bytes)}")


class Layout:
    """How results are printed, or into which file they go; checked when it is made."""

    def __init__(self, format: str | None, output: Path | None, *, escape_formulas: bool) -> None:
        self.output = output
        if output is not None and format == _TABLE:
            raise OptionError("A table is for looking at.", fix="Add --format csv, or leave --output out.")
        self.name = checked_format(format or _TABLE, _LAYOUTS) if output is None else format_of(output, format)
        check_escaping(self.name, escape_formulas=escape_formulas)
        self.escape_formulas = escape_formulas


def check_escaping(format: str, *, escape_formulas: bool) -> None:
    if escape_formulas and format != "csv":
        raise OptionError(f"--escape-formulas is for CSV, and this is {format}.", fix="Add --format csv.")


def show_results(paths: Sequence[Path], query: Query, layout: Layout) -> None:
    """Prints what a query asks for as it is read, or writes it into a file."""
    with opened(paths, query.timeout_s) as results:
        chosen = results if query.is_plain and layout.name == _TABLE else query.of(results)
        if layout.output is not None:
            write(chosen, layout.output, layout.name, escape_formulas=layout.escape_formulas)
            return
        match layout.name:
            case "csv":
                print_data_as_utf8()
                chosen.print_csv(sys.stdout, escape_formulas=layout.escape_formulas)
            case "jsonl":
                print_data_as_utf8()
                chosen.print_jsonl(sys.stdout)
            case "markdown":
                print_data_as_utf8()
                chosen.print_markdown(sys.stdout)
            case "parquet":
                print_parquet(chosen)
            case _:
                chosen.print(max_rows=query.limit)
                if query.is_of_interviews and results.stats().failed:
                    files = " ".join(seen_from_here(path) for path in paths)
                    say(f"list what failed: {own_command()} results {files} --failed")


def export_results(
    paths: Sequence[Path], query: Query, output: Path | None, format: str | None, *, escape_formulas: bool
) -> None:
    output = default_output(paths[0], format) if output is None else output
    name = format_of(output, format, known=(*FORMATS, EDSL))
    check_escaping(name, escape_formulas=escape_formulas)
    if name == EDSL and not (query.is_of_interviews and query.select == EVERYTHING):
        raise OptionError(
            "EDSL's results are whole interviews.", fix="Leave --select, --group-by, --agg and --totals out."
        )
    with opened(paths, query.timeout_s) as results:
        write(query.of(results), output, name, escape_formulas=escape_formulas)
    files = ", ".join(path_text(path) for path in paths)
    say(f"exported {files} to {path_text(output)}, {format_bytes(output.stat().st_size)}")


def show_failed(paths: Sequence[Path], *, where: str | None, limit: int | None, layout: Layout) -> None:
    """Prints the questions without an answer as they are read: a line each, or as CSV or JSON lines."""
    if layout.output is not None or layout.name not in (_TABLE, "csv", "jsonl"):
        raise OptionError("--failed is printed as a table, CSV or JSON lines.", fix="Add --format csv > failed.csv.")
    with opened(paths) as results:
        failures = islice((results.filter(where) if where else results).failed(), limit)
        columns = list(FailedQuestion._fields)
        batches = columns_of(failures, len(columns))
        match layout.name:
            case "csv":
                print_data_as_utf8()
                print_csv(sys.stdout, columns, batches, escape_formulas=layout.escape_formulas)
            case "jsonl":
                print_data_as_utf8()
                print_jsonl(sys.stdout, columns, batches)
            case _:
                for failure in failures:
                    message = cell_text(failure.message, _LONGEST_MESSAGE)
                    say(f"interview {failure.ordinal:,}, {failure.question}: {failure.cause}: {message}")
