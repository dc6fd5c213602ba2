"""What is under way when a process is killed, and what must hold afterwards. Each scenario prepares a directory, does
something that changes files, and checks in a new process that nothing is lost, doubled or stuck.

    prepare ──► work, killed at moment n ──► check: reads, goes on, ends right

Does not cover: choosing moments and processes (benchmarks.kill_storm), or scenarios in which a good file is replaced
(replaced_files).
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from benchmarks.children import replaced_files
from benchmarks.children.killed_surveys import (
    PEOPLE,
    check_complete,
    check_is_alone,
    check_run,
    finish,
    left_in_wal_mode,
    lines_of,
    note,
    ordinals_of,
    run_survey,
)
from headrace import Engine
from headrace.agents.engine.run_handle import Run
from headrace.errors import RunUndecided
from headrace.models.provider import Reply
from headrace.models.response_cache import ResponseCache, cache_key
from headrace.store.logs import write_ahead_log
from headrace.store.run_file.removal import remove_run
from headrace.store.whole_files import copy_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`check` raises AssertionError where something is lost, doubled or stuck."""

    prepare: Callable[[Path], object]
    work: Callable[[Path], object]
    check: Callable[[Path], object]


# --- surveys


def _check_fresh(place: Path) -> None:
    """The earlier results are in the file or in the one that was put aside, and a new start works."""
    files = list(place.glob("x*.run"))
    assert any(ordinals_of(path) == list(range(PEOPLE)) for path in files), "the earlier results are lost"
    run_survey(place, fresh=True)
    check_complete(place / "x.run", PEOPLE)


def _check_removed(place: Path) -> None:
    path = place / "x.run"
    if path.exists():
        assert ordinals_of(path) == list(range(PEOPLE))
        remove_run(path)
    run_survey(place)
    check_complete(path, PEOPLE)


def _half_written(place: Path) -> None:
    """As a process leaves a file that is killed in the middle of a transaction outside WAL mode."""
    finish(place)
    pid = os.fork()
    if not pid:
        connection = apsw.Connection(str(place / "x.run"))
        connection.execute("PRAGMA cache_size=1").fetchall()  # so that pages are written before the commit
        connection.execute("BEGIN IMMEDIATE; DELETE FROM interviews; DELETE FROM details;")
        connection.execute(
            "CREATE TABLE more AS SELECT randomblob(4000) AS x FROM (VALUES(1), (2), (3), (4), (5), (6))"
        )
        os._exit(0)
    os.waitpid(pid, 0)


def _run_with_checkpoints(place: Path) -> None:
    """The log is brought into the file after every commit."""
    write_ahead_log._MOST_S = 0.0  # pyright: ignore[reportPrivateUsage]  # in a process of its own
    run_survey(place)


def _check_copy(place: Path) -> None:
    for copy in place.glob("copy.run"):
        assert set(ordinals_of(copy)) >= set(map(int, lines_of(place / "confirmed")))
        copy.unlink()
    copy_file(place / "x.run", place / "copy.run")
    check_run(place)


# --- engines


async def _one_step(log: str, name: str) -> str:
    note(Path(log), name)
    return name


async def _agent(ctx, log: str, number: int):  # an agent run
    told = [await ctx.step(f"s{i}", _one_step, log, f"{number}.s{i}") for i in range(2)]
    await ctx.checkpoint({"i": 2})
    told.append(await ctx.step("pay", _one_step, log, f"{number}.pay", side_effect=True))
    return told


async def _run_engine(place: Path) -> None:
    log = str(place / "steps")
    async with Engine(place / "e.run", isolation="inline", slots=2) as engine:
        for number in range(2):
            run = await engine.submit(_agent, log, number, key=f"a{number}")
            note(place / "confirmed", f"a{number}")
            told = await asyncio.wait_for(_result_of(run), 60)
            assert told == [f"{number}.s0", f"{number}.s1", f"{number}.pay"]


async def _result_of(run: Run) -> object:
    """A side effect that was cut short is run again, on purpose."""
    try:
        return await run.result()
    except RunUndecided:
        await run.resolve("pay", again=True)
        return await run.result()


def _engine_work(place: Path) -> None:
    asyncio.run(_run_engine(place))


def _check_engine(place: Path) -> None:
    asyncio.run(_check_submissions(place))
    before = Counter(lines_of(place / "steps"))
    _engine_work(place)
    after = Counter(lines_of(place / "steps"))
    assert set(after) == {f"{number}.{step}" for number in range(2) for step in ("s0", "s1", "pay")}
    # What was in flight when the process was killed may run again, once; one run at a time is in flight.
    assert sum((after - before).values()) + len(before) <= len(after) + 1, "a journaled step ran again"
    check_is_alone(place / "e.run")


async def _check_submissions(place: Path) -> None:
    async with Engine(place / "e.run", isolation="inline") as engine:
        for key in lines_of(place / "confirmed"):
            assert await engine.find(key) is not None, "a confirmed submission is lost"


# --- the response cache


def _keys() -> list[bytes]:
    return [cache_key(b"model", "system", f"question {number}", {}, 0) for number in range(40)]


def _fill_cache(place: Path) -> None:
    cache = ResponseCache.open(place / "cache.sqlite", time.time())
    for number, key in enumerate(_keys()):
        cache.put(key, Reply(f"reply {number}", b"raw", 1, 1))
        if number % 10 == 9:
            cache.flush()
            assert cache.why_not is None, cache.why_not
            note(place / "confirmed", str(number))
    cache.close()


def _check_cache(place: Path) -> None:
    cache = ResponseCache.open(place / "cache.sqlite", time.time() + 1)
    assert cache.why_not is None, cache.why_not
    confirmed = max(map(int, lines_of(place / "confirmed")), default=-1)
    replies = [cache.get(key) for key in _keys()]
    for number, reply in enumerate(replies):
        assert reply is None or reply.text == f"reply {number}", "a reply stands under another's key"
        assert number > confirmed or reply is not None, "a reply that was flushed is lost"
    cache.close()
    _fill_cache(place)
    cache = ResponseCache.open(place / "cache.sqlite", time.time() + 1)
    assert all(cache.get(key) is not None for key in _keys())
    cache.close()


def _damaged_cache(place: Path) -> None:
    _fill_cache(place)
    (place / "confirmed").unlink()
    (place / "cache.sqlite").write_bytes(b"not a database " * 1000)


def _nothing(_place: Path) -> None:
    pass


def _read(place: Path) -> None:
    ordinals_of(place / "x.run")


SCENARIOS: dict[str, Scenario] = {
    "a new run": Scenario(prepare=_nothing, work=run_survey, check=check_run),
    "a run that goes on": Scenario(prepare=lambda p: run_survey(p, limit=2), work=run_survey, check=check_run),
    "a killed run that goes on": Scenario(prepare=left_in_wal_mode, work=run_survey, check=check_run),
    "a run that grows": Scenario(
        prepare=run_survey,
        work=lambda p: run_survey(p, people=PEOPLE + 3, extend=True),
        check=lambda p: check_run(p, PEOPLE + 3, extend=True),
    ),
    "a fresh start": Scenario(prepare=finish, work=lambda p: run_survey(p, fresh=True), check=_check_fresh),
    "a fresh start after a kill": Scenario(
        prepare=lambda p: (finish(p), left_in_wal_mode(p)), work=lambda p: run_survey(p, fresh=True), check=_check_fresh
    ),
    "a removal": Scenario(prepare=finish, work=lambda p: remove_run(p / "x.run"), check=_check_removed),
    "a recovery": Scenario(prepare=_half_written, work=_read, check=check_run),
    "a recovery by a run": Scenario(prepare=_half_written, work=run_survey, check=check_run),
    "a run with many checkpoints": Scenario(prepare=_nothing, work=_run_with_checkpoints, check=check_run),
    "a copy": Scenario(
        prepare=left_in_wal_mode, work=lambda p: copy_file(p / "x.run", p / "copy.run"), check=_check_copy
    ),
    "a read after a kill": Scenario(prepare=left_in_wal_mode, work=_read, check=check_run),
    "a compaction": Scenario(
        prepare=replaced_files.roomy, work=replaced_files.compact, check=replaced_files.check_compacted
    ),
    "a compaction without damaged rows": Scenario(
        prepare=replaced_files.damaged, work=replaced_files.drop, check=replaced_files.check_dropped
    ),
    "an upgrade": Scenario(
        prepare=replaced_files.unpack, work=replaced_files.upgrade, check=replaced_files.check_upgraded
    ),
    "a run that keeps totals": Scenario(
        prepare=_nothing, work=replaced_files.run_for_totals, check=replaced_files.check_totals
    ),
    "a new engine": Scenario(prepare=_nothing, work=_engine_work, check=_check_engine),
    "an engine that goes on": Scenario(prepare=_engine_work, work=_engine_work, check=_check_engine),
    "a new cache": Scenario(prepare=_nothing, work=_fill_cache, check=_check_cache),
    "a cache in use": Scenario(prepare=_fill_cache, work=_fill_cache, check=_check_cache),
    "a damaged cache": Scenario(prepare=_damaged_cache, work=_fill_cache, check=_check_cache),
}
