"""`headrace map`: one prompt per row, for those who label, extract or translate rather than survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import (
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
    Sample,
    Seed,
    Workers,
)
from headrace.cli.run_commands import options_from, start


def map_rows(
    template: Annotated[
        str, typer.Argument(help='The text to send: "Label: {{ text }}", or @file to read it from one.')
    ],
    data: Annotated[Path, typer.Option(help="The rows: a .csv or .jsonl file. Their columns are the text's names.")],
    schema: Annotated[Path | None, typer.Option(help="A JSON schema that every reply must fit.")] = None,
    system: Annotated[str | None, typer.Option(help="A system prompt; by default there is none.")] = None,
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
    """Send one prompt per row of a file, exactly as written. Run it again to go on where it was."""
    given = dict(locals())
    from headrace.cli.arguments import mapped_job_from

    job = mapped_job_from(template, data, schema, system, model or [])
    start(job, output, options_from(given), dry_run=dry_run, as_json=json)
