"""The commands that run a job: `run` and `resume`. Does not cover: reading their arguments (cli.arguments)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import SOME_FAILED, Concurrency, Json, Limit, Memory, RetryFailed, RunFileArgument
from headrace.limits import RunOptions

if TYPE_CHECKING:
    from headrace.plan.job import Job


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


def resume(
    path: RunFileArgument,
    memory: Memory = None,
    concurrency: Concurrency = 200,
    limit: Limit = None,
    retry_failed: RetryFailed = False,
    json: Json = False,
) -> None:
    """Go on with the job that a run file holds: here, or in the process where it was paused."""
    from headrace.cli.steered import go_on_elsewhere
    from headrace.plan.job import Job

    options = RunOptions(
        concurrency=concurrency, limit=limit, memory=memory, retry_failed=retry_failed, progress_bar=True
    )
    if go_on_elsewhere(path, has_options=options != RunOptions(progress_bar=True), as_json=json):
        return
    _run_and_show(Job.open(path), path, options, as_json=json)


def _run_and_show(job: Job, path: Path | None, options: RunOptions, *, as_json: bool) -> None:
    from headrace.cli.shown import show_finished

    given = {name: value for name, value in asdict(options).items() if value is not None}
    if show_finished(job.run(path, **given), as_json=as_json):
        raise typer.Exit(SOME_FAILED)
