"""The four ways to run a job, and making one from its file. Covers: the caller's side.

`run` and `stream` serve the caller's own thread: callbacks are called there, and Ctrl-C arrives there as
KeyboardInterrupt; while they wait, asyncio's SIGINT handler is replaced by Python's own. `run_async` and
`astream` do the same on the caller's event loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.edsl_names import EDSL_ONLY, in_our_words
from headrace.errors import OptionError, nearest
from headrace.interviews.delivery import AsyncDelivery, Delivery
from headrace.interviews.standalone import OpenedRun
from headrace.limits import Keep, RunOptions
from headrace.models.contacts import allowed_names
from headrace.plan.job import Job
from headrace.progress.page_beside import page_address, show_page
from headrace.results.asked.prompt_table import PromptTable
from headrace.results.result import Result
from headrace.results.results import Results, results_of_run
from headrace.stand_ins import Cache
from headrace.store.run_file.stored_job.stored_lists import read_job


def run(job: Job, path: str | Path | None, on_result: Callable[[Result], None] | None, **settings: Any) -> Results:
    _check_callback(on_result)
    if inspect.iscoroutinefunction(on_result) or inspect.iscoroutinefunction(getattr(on_result, "__call__", None)):  # noqa: B004 - its kind is asked for
        raise OptionError("on_result is async, and run() has no event loop to call it on.", fix="Use run_async().")
    options = run_options(settings)
    with Delivery(job, path, options, listening=on_result is not None) as delivery:
        opened = delivery.start()
        if options.view:
            show_page(opened.path, page_address(opened.path))
        if on_result is not None:
            for result in delivery.results(opened.header):
                on_result(result)
        delivery.finish()
    return results_of_run(opened.path, opened.scope)


def prompts(job: Job) -> PromptTable:
    return PromptTable(job)


def stream(job: Job, path: str | Path | None, *, new_only: bool, **settings: Any) -> Generator[Result]:
    options = run_options(settings)
    with Delivery(job, path, options, listening=True, check=_check_stream(new_only)) as delivery:
        opened = delivery.start()
        if options.view:
            show_page(opened.path, page_address(opened.path))
        if not new_only:
            yield from _stored(opened)
        yield from delivery.results(opened.header)
        delivery.finish()


async def run_async(
    job: Job,
    path: str | Path | None,
    on_result: Callable[[Result], Awaitable[None] | None] | None,
    **settings: Any,
) -> Results:
    _check_callback(on_result)
    options = run_options(settings)
    async with AsyncDelivery(job, path, options, listening=on_result is not None) as delivery:
        opened = await delivery.start()
        if options.view:
            show_page(opened.path, await asyncio.to_thread(page_address, opened.path))
        if on_result is not None:
            async for result in delivery.results(opened.header):
                if inspect.isawaitable(returned := on_result(result)):
                    await returned
        await delivery.finish()
    return results_of_run(opened.path, opened.scope)


async def astream(job: Job, path: str | Path | None, *, new_only: bool, **settings: Any) -> AsyncGenerator[Result]:
    options = run_options(settings)
    async with AsyncDelivery(job, path, options, listening=True, check=_check_stream(new_only)) as delivery:
        opened = await delivery.start()
        if options.view:
            show_page(opened.path, await asyncio.to_thread(page_address, opened.path))
        if not new_only:
            for result in _stored(opened):
                yield result
        async for result in delivery.results(opened.header):
            yield result
        await delivery.finish()


def open_job(path: str | Path, allow: str | Iterable[str]) -> Job:
    return read_job(Path(path), allowed_names(allow))


_GIVEN_BY = {
    **dict.fromkeys(("model", "models"), "Model(...)"),
    **dict.fromkeys(("agent", "agents"), "Agent(...)"),
    **dict.fromkeys(("scenario", "scenarios"), "Scenario({...})"),
}


def run_options(settings: dict[str, Any]) -> RunOptions:
    ours = in_our_words(settings)
    known = RunOptions.__struct_fields__
    for name in ours:
        if name in _GIVEN_BY:
            raise OptionError(f"run() takes no {name}.", fix=f"Give it before: .by({_GIVEN_BY[name]}).run().")
        if name not in known:
            raise OptionError(f"There is no option {name!r}.", fix=nearest(name, [*known, *EDSL_ONLY]))
    if isinstance(ours.get("cache"), Cache) or ours.get("cache", True) is None:
        del ours["cache"]
    return RunOptions(**ours)


def _check_callback(on_result: object) -> None:
    if on_result is not None and not callable(on_result):
        raise OptionError(f"on_result={on_result!r} cannot be called.", fix="Give a function of one result.")


def _check_stream(new_only: bool) -> Callable[[OpenedRun], None]:
    """What refuses a stream before its first interview: results that are not kept could be had only once."""

    def check(opened: OpenedRun) -> None:
        stored = opened.stored.count_below(opened.scope.stop)
        if stored and not new_only and opened.header.keeping.keep is Keep.NOTHING:
            raise OptionError(
                f'{opened.path} keeps no results (keep="nothing"): the {stored:,} finished ones cannot be streamed'
                " again.",
                fix="Write stream(..., new_only=True) for those to come.",
            )

    return check


def _stored(opened: OpenedRun) -> Iterator[Result]:
    """The results that were there before this run, whatever is added to the file meanwhile."""
    left = opened.stored.count_below(opened.scope.stop)
    if left == 0:
        return
    with Results.open(opened.path) as results:
        for result in results:
            if result.ordinal < opened.scope.stop and result.ordinal in opened.stored:
                left -= 1
                yield result
            if left == 0:
                return
