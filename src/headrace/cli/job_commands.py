"""The commands that run a job: `run`, `map` and `resume`. Does not cover: reading arguments (cli.arguments)."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import (
    ROWS,
    SOME_FAILED,
    Delimiter,
    Encoding,
    RunFileArgument,
    RunFlags,
    TableName,
    with_run_flags,
)
from headrace.errors import OptionError

if TYPE_CHECKING:
    from headrace.limits import RunOptions
    from headrace.plan.job import Job
    from headrace.ray_option import Ray


@with_run_flags(without="")
def run(
    survey: Annotated[str, typer.Argument(help="A survey or a study: a .yaml or .json file, or module:object.")],
    agents: Annotated[str | None, typer.Option(metavar="ROWS", help=f"Who answers: {ROWS}.")] = None,
    scenarios: Annotated[str | None, typer.Option(metavar="ROWS", help=f"What it is about: {ROWS}.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='Only combinations like this: "agent.age > 30". Repeatable.'),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    table: TableName = None,
    *,
    flags: RunFlags,
) -> None:
    """Run a survey. Run it again to go on where it was: what is journaled is never repeated."""
    from headrace.cli.arguments import job_from

    options = _run_options(flags)
    reading = {"delimiter": delimiter, "encoding": encoding, "table": table, "sheet": table}
    job = job_from(survey, agents, scenarios, flags.model or [], where or [], flags.allow or [], reading)
    _start(job, flags.output, options, flags)


@with_run_flags(without="allow")
def map_rows(
    template: Annotated[
        str, typer.Argument(help='The text to send: "Label: {{ text }}", or @file to read it from one.')
    ],
    data: Annotated[str, typer.Option(metavar="ROWS", help=f"The rows: {ROWS}; or a directory of pictures.")],
    schema: Annotated[Path | None, typer.Option(help="A JSON schema that every reply must fit.")] = None,
    system: Annotated[str | None, typer.Option(help="A system prompt; by default there is none.")] = None,
    image_column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column with paths of pictures or documents to send. Repeatable."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    table: TableName = None,
    *,
    flags: RunFlags,
) -> None:
    """Send one prompt per row of a file, exactly as written. Run it again to go on where it was."""
    from headrace.cli.arguments import mapped_job_from

    options = _run_options(flags)
    reading = {"delimiter": delimiter, "encoding": encoding, "table": table, "sheet": table}
    job = mapped_job_from(template, data, schema, system, flags.model or [], image_column or [], reading)
    _start(job, flags.output, options, flags)


@with_run_flags(without="model output sample seed n fresh extend dry_run keep aggregate group_by")
def resume(path: RunFileArgument, *, flags: RunFlags) -> None:
    """Go on with the job in a run file. It runs here, or in the process where it was paused."""
    from headrace.cli.confirm_prompt import confirmed_job
    from headrace.cli.status.run_status import go_on_elsewhere
    from headrace.limits import RunOptions

    options = _run_options(flags)
    if go_on_elsewhere(path, has_options=options != RunOptions(progress_bar=True), as_json=flags.json):
        return
    job, options = confirmed_job(path, flags.allow or [], options)
    _start(job, path, options, flags)


def _run_options(flags: RunFlags) -> RunOptions:
    """The run options among a command's flags: those that have the same name, and the few that do not."""
    from headrace.limits import RunOptions

    if flags.log and flags.lines:
        raise OptionError("--log and --lines are two ways to show the same.", fix="Choose one of them.")
    named = {name: value for name, value in asdict(flags).items() if name in RunOptions.__struct_fields__}
    named |= {"aggregate": _aggregate(flags.aggregate or []), "group_by": tuple(flags.group_by or ()) or None}
    progress_bar = "log" if flags.log else "lines" if flags.lines else True
    return RunOptions(**named, cache=not flags.no_cache, progress_bar=progress_bar, executor=_cluster(flags.on))


def _cluster(written: str | None) -> Ray | None:
    """The cluster that --on names: `ray` is the one of this host."""
    if written is None:
        return None
    host, _, port = written.rpartition(":")
    if written != "ray" and not (host and port.isdecimal()):
        fix = "Write --on ray, --on host:6379, or --on ray://host:10001."
        raise OptionError(f"--on {written} names no cluster.", fix=fix)
    from headrace.ray_option import Ray

    return Ray("auto" if written == "ray" else written)


def _aggregate(written: list[str]) -> dict[str, str] | None:
    """The totals that --aggregate asks for; None where it is not given."""
    parts = [text.partition("=") for text in written]
    for name, equals, function in parts:
        if not name.strip() or not equals or "(" in name:
            raise OptionError(
                f"--aggregate {name}{equals}{function} has no name.", fix="Write mean=mean(answer.rating)."
            )
    return {name.strip(): function.strip() for name, _, function in parts} or None


def _start(job: Job, path: Path | None, options: RunOptions, flags: RunFlags) -> None:
    """Run a job and say how it ended; with --dry-run say what it would take."""
    from msgspec import structs

    from headrace.cli.error_messages import exit_with
    from headrace.cli.output import show_estimate, show_finished

    if flags.dry_run:
        from headrace.interviews.session import check_estimated
        from headrace.limits import Budgets

        check_estimated(job, options)
        expected = job.estimate(_times_asked(path, options), limit=options.limit, sample=options.sample)
        show_estimate(expected, options.budgets(Budgets()).max_cost, as_json=flags.json)
        return
    given = {name: value for name, value in structs.asdict(options).items() if value is not None}
    results = job.run(path, **given)
    with exit_with(SOME_FAILED if results.stats().failed else 0):
        with suppress(BrokenPipeError) if options.view else nullcontext():  # the page was asked for too
            show_finished(results, as_json=flags.json)
        if options.view:
            _keep_the_page()


def _keep_the_page() -> None:
    """The page ends with this process: at a terminal, wait until the user has seen it."""
    import sys
    import time

    from headrace.cli.terminal import say

    if not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    with suppress(BrokenPipeError):  # the page was asked for too
        print(end="", flush=True)  # what has been said, before the wait
    try:
        say("the page stays until Ctrl-C", on_error=True)
        while True:
            time.sleep(3_600)
    except KeyboardInterrupt:
        return


def _times_asked(path: Path | None, options: RunOptions) -> int:
    """How often a run would ask each interview: a run file keeps the largest n that it was given."""
    from headrace.store.run_file.reader import Reader
    from headrace.store.run_file.stored_job.stored_boxes import read_plan

    asked = options.n or 1
    if path is None or options.fresh or not path.exists():
        return asked
    reader = Reader(path)
    try:
        with reader.snapshot() as connection:
            return max(asked, read_plan(connection, path).shape.iteration)
    finally:
        reader.close()
