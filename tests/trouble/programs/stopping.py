"""Ends a run before its time and goes on with it: HOW PATH, HOW being a function below.

Each tells how it ended, what was left behind and whether the file is free; then the same job runs to its end.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

from headrace import Job, Result
from tests.trouble.programs.telling import outcome_of, tell
from tests.trouble.programs.town import town_job

WINDOW, ENOUGH = 10, 17  # not a multiple: it ends in the middle of a batch
OPTIONS: dict[str, Any] = {"concurrency": WINDOW, "workers": int(os.environ.get("WORKERS", "0"))}
SLOWLY = {**OPTIONS, "concurrency": 2}  # a run that is not over when its first results have been seen in its file


class Enough(Exception):
    pass


def break_out_of_a_stream(job: Job, path: Path) -> None:
    for place, _ in enumerate(job.stream(path, **OPTIONS)):
        if place == ENOUGH:
            break


def close_a_stream(job: Job, path: Path) -> None:
    stream = job.stream(path, **OPTIONS)
    for _ in range(ENOUGH):
        next(stream)
    stream.close()  # type: ignore[attr-defined]


def close_a_stream_at_its_first_result(job: Job, path: Path) -> None:
    stream = job.stream(path, **OPTIONS)
    next(stream)
    stream.close()  # type: ignore[attr-defined]


def fail_in_a_stream(job: Job, path: Path) -> None:
    for place, _ in enumerate(job.stream(path, **OPTIONS)):
        if place == ENOUGH:
            raise Enough


def fail_in_on_result(job: Job, path: Path) -> None:
    job.run(path, **OPTIONS, on_result=_failing())


def interrupt_in_on_result(job: Job, path: Path) -> None:
    job.run(path, **OPTIONS, on_result=_failing(KeyboardInterrupt))


def break_out_of_an_async_stream(job: Job, path: Path) -> None:
    async def main() -> None:
        async with _closing(job, path) as stream:
            place = 0
            async for _ in stream:
                place += 1
                if place == ENOUGH:
                    break

    asyncio.run(main())


def fail_in_an_async_stream(job: Job, path: Path) -> None:
    async def main() -> None:
        async with _closing(job, path) as stream:
            place = 0
            async for _ in stream:
                place += 1
                if place == ENOUGH:
                    raise Enough

    asyncio.run(main())


def fail_in_async_on_result(job: Job, path: Path) -> None:
    fail = _failing()

    async def take(result: Result) -> None:
        await asyncio.sleep(0)
        fail(result)

    asyncio.run(_discard(job.run_async(path, **OPTIONS, on_result=take)))


def cancel_a_task(job: Job, path: Path) -> None:
    _cancel(job, path, None)


def cancel_a_task_that_listens(job: Job, path: Path) -> None:
    _cancel(job, path, lambda _: None)


def run_out_of_time(job: Job, path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(None) as time_left, asyncio.TaskGroup() as group:
            group.create_task(_end_once_there_are_results(path, time_left))
            await job.run_async(path, **SLOWLY)

    asyncio.run(main())


async def _end_once_there_are_results(path: Path, time_left: asyncio.Timeout) -> None:
    while not _has_results(path):
        await asyncio.sleep(0.01)
    time_left.reschedule(asyncio.get_running_loop().time())


def _cancel(job: Job, path: Path, on_result: Callable[[Result], None] | None) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(job.run_async(path, **SLOWLY, on_result=on_result))
        while not _has_results(path):
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    asyncio.run(main())


def _has_results(path: Path) -> bool:
    from headrace import HeadraceError, Results

    try:
        with Results.open(path) as results:
            return len(results) > 0
    except HeadraceError:
        return False


def _failing(error: type[BaseException] = Enough) -> Callable[[Result], None]:
    seen: list[int] = []

    def take(result: Result) -> None:
        seen.append(result.ordinal)
        if len(seen) == ENOUGH:
            raise error

    return take


def _closing(job: Job, path: Path) -> aclosing[AsyncIterator[Result]]:
    return aclosing(job.astream(path, **OPTIONS))  # type: ignore[type-var]


async def _discard(running: Coroutine[Any, Any, Any]) -> None:
    (await running).close()


how, path, job = sys.argv[1], Path(sys.argv[2]), town_job(20, 0.02)
tell(
    **outcome_of(lambda: globals()[how](job, path)),
    threads=[thread.name for thread in threading.enumerate() if thread is not threading.main_thread()],
    locked=path.with_name(path.name + ".lock").exists(),
)
