"""The `headrace` command. Covers: the commands and their options, and turning errors into messages and exit codes.

Exit codes: 0 done; 1 an error, told in words; 2 a command that cannot be read; 3 done, and some interviews failed;
130 stopped by Ctrl-C, resumable. Does not cover: what is shown (cli.shown), or reading arguments (cli.arguments).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.errors import HeadraceError, Interrupted
from headrace.limits import RunOptions

if TYPE_CHECKING:
    from headrace.plan.job import Job

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
_SOME_FAILED = 3
_INTERRUPTED = 130

RunFileArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Memory = Annotated[str | None, typer.Option(help='A budget: "512MB", "60%" of the machine, or "+512MB" on top.')]
Concurrency = Annotated[int, typer.Option(min=1, help="How many interviews may be in flight.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many interviews of the plan.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Ask again where an answer was not valid.")]


@app.callback()
def headrace() -> None:
    """Run LLM jobs of any size in a fixed amount of memory."""


@app.command()
def demo(
    size: Annotated[int, typer.Option(min=1, help="How many interviews to run.")] = 600,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the run file here; by default it is a temporary one.")
    ] = None,
) -> None:
    """Run a small survey with the test model and show its answers and its memory."""
    from headrace.cli.demo import run_demo

    run_demo(size, output)


@app.command()
def run(
    survey: Annotated[str, typer.Argument(help="A survey: a .yaml or .json file, or module:object.")],
    agents: Annotated[Path | None, typer.Option(help="Who answers: a .csv or .jsonl file.")] = None,
    scenarios: Annotated[Path | None, typer.Option(help="What it is about: a .csv or .jsonl file.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="A model with parameters: test,canned_response=Good. May be repeated.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The run file.")] = None,
    memory: Memory = None,
    concurrency: Concurrency = 200,
    limit: Limit = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="How often each interview is asked.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over; the old file is kept.")] = False,
    extend: Annotated[bool, typer.Option("--extend", help="The lists grew at their end.")] = False,
    retry_failed: RetryFailed = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count and estimate; run nothing.")] = False,
    json: Json = False,
) -> None:
    """Run a survey. Run it again to go on where it was: what is journaled is never repeated."""
    from headrace.cli.arguments import job_from
    from headrace.cli.shown import show_estimate

    job = job_from(survey, agents, scenarios, model or [])
    if dry_run:
        show_estimate(job.estimate(n or 1), as_json=json)
        return
    options = RunOptions(
        concurrency=concurrency,
        n=n,
        limit=limit,
        memory=memory,
        fresh=fresh,
        extend=extend,
        retry_failed=retry_failed,
        progress_bar=True,
    )
    _run_and_show(job, output, options, as_json=json)


@app.command()
def resume(
    path: RunFileArgument,
    memory: Memory = None,
    concurrency: Concurrency = 200,
    limit: Limit = None,
    retry_failed: RetryFailed = False,
    json: Json = False,
) -> None:
    """Go on with the job that a run file holds."""
    from headrace.plan.job import Job

    options = RunOptions(
        concurrency=concurrency, limit=limit, memory=memory, retry_failed=retry_failed, progress_bar=True
    )
    _run_and_show(Job.open(path), path, options, as_json=json)


@app.command()
def status(path: RunFileArgument, json: Json = False) -> None:
    """How far a run is, also while it goes on elsewhere."""
    from headrace.cli.shown import show_status

    show_status(path, as_json=json)


@app.command()
def results(
    path: RunFileArgument,
    select: Annotated[str, typer.Option(help="Columns, with commas between: agent.age,answer.*")] = "*",
    where: Annotated[str | None, typer.Option(help="Only where this holds: answer.rating > 5")] = None,
    sort_by: Annotated[str | None, typer.Option(help="Columns to sort by, with commas between.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    format: Annotated[str, typer.Option(help="table, csv or jsonl.")] = "table",
) -> None:
    """Print the results in a run file."""
    from headrace.cli.shown import show_results

    show_results(path, select=select, where=where, sort_by=sort_by, limit=limit, layout=format)


@app.command()
def runs(json: Json = False) -> None:
    """List the run files that were given no path of their own."""
    from headrace.cli.shown import show_runs

    show_runs(as_json=json)


def main() -> None:
    try:
        app()
    except Interrupted as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output, `head` for instance, has seen enough; the interpreter must not complain at exit.
        sys.stdout = None
        sys.exit(0)


def _run_and_show(job: Job, path: Path | None, options: RunOptions, *, as_json: bool) -> None:
    from headrace.cli.shown import show_finished

    given = {name: value for name, value in asdict(options).items() if value is not None}
    if show_finished(job.run(path, **given), as_json=as_json):
        raise typer.Exit(_SOME_FAILED)
