"""The commands that run a job: `run` and `resume`. Does not cover: reading their arguments (cli.arguments)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import (
    SOME_FAILED,
    Allow,
    Concurrency,
    DryRun,
    Extend,
    Fresh,
    Iterations,
    Json,
    Limit,
    Lines,
    Log,
    MaxCost,
    MaxTokens,
    Memory,
    Models,
    NoCache,
    Output,
    RetryFailed,
    RunFileArgument,
    Sample,
    Seed,
    Workers,
)
from headrace.errors import OptionError

if TYPE_CHECKING:
    from headrace.limits import RunOptions
    from headrace.plan.job import Job


def run(
    survey: Annotated[str, typer.Argument(help="A survey: a .yaml or .json file, or module:object.")],
    agents: Annotated[Path | None, typer.Option(help="Who answers: a .csv or .jsonl file.")] = None,
    scenarios: Annotated[Path | None, typer.Option(help="What it is about: a .csv or .jsonl file.")] = None,
    model: Models = None,
    output: Output = None,
    memory: Memory = None,
    concurrency: Concurrency = None,
    workers: Workers = None,
    limit: Limit = None,
    sample: Sample = None,
    seed: Seed = 0,
    n: Iterations = None,
    max_cost: MaxCost = None,
    max_tokens_total: MaxTokens = None,
    no_cache: NoCache = False,
    fresh: Fresh = False,
    extend: Extend = False,
    retry_failed: RetryFailed = False,
    log: Log = False,
    lines: Lines = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run a survey. Run it again to go on where it was: what is journaled is never repeated."""
    given = dict(locals())
    from headrace.cli.arguments import job_from

    options = options_from(given)
    start(job_from(survey, agents, scenarios, model or []), output, options, dry_run=dry_run, as_json=json)


def resume(
    path: RunFileArgument,
    memory: Memory = None,
    concurrency: Concurrency = None,
    workers: Workers = None,
    limit: Limit = None,
    max_cost: MaxCost = None,
    max_tokens_total: MaxTokens = None,
    no_cache: NoCache = False,
    retry_failed: RetryFailed = False,
    allow: Allow = None,
    log: Log = False,
    lines: Lines = False,
    json: Json = False,
) -> None:
    """Go on with the job in a run file. It runs here, or in the process where it was paused."""
    given = dict(locals())
    from headrace.cli.confirm_prompt import confirmed_job
    from headrace.cli.run_status import go_on_elsewhere
    from headrace.limits import RunOptions

    options = options_from(given)
    if go_on_elsewhere(path, has_options=options != RunOptions(progress_bar=True), as_json=json):
        return
    job, options = confirmed_job(path, allow or [], options)
    start(job, path, options, dry_run=False, as_json=json)


def options_from(given: dict[str, Any]) -> RunOptions:
    """The run options among a command's arguments: those that have the same name, and the few that do not."""
    from headrace.limits import RunOptions

    if given["log"] and given["lines"]:
        raise OptionError("--log and --lines are two ways to show the same.", fix="Choose one of them.")
    named = {name: given[name] for name in RunOptions.__struct_fields__ if name in given}
    progress_bar = "log" if given["log"] else "lines" if given["lines"] else True
    return RunOptions(**named, cache=not given["no_cache"], progress_bar=progress_bar)


def start(job: Job, path: Path | None, options: RunOptions, *, dry_run: bool, as_json: bool) -> None:
    """Run a job and say how it ended, or only what it would take."""
    from msgspec import structs

    from headrace.cli.output import show_estimate, show_finished

    if dry_run:
        expected = job.estimate(options.n or 1, limit=options.limit, sample=options.sample)
        show_estimate(expected, as_json=as_json)
        return
    given = {name: value for name, value in structs.asdict(options).items() if value is not None}
    if show_finished(job.run(path, **given), as_json=as_json):
        raise typer.Exit(SOME_FAILED)
