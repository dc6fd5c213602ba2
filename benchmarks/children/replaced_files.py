"""Scenarios of kills in which a good file is replaced or brought up to date, and of one that keeps totals in place of
rows: what is done, and what must hold afterwards.

Does not cover: the other scenarios (kill_scenarios).
"""

import asyncio
import gzip
from contextlib import closing
from pathlib import Path

import apsw

from benchmarks.children.killed_surveys import (
    PEOPLE,
    check_is_alone,
    check_run,
    finish,
    lines_of,
    ordinals_of,
    run_survey,
)
from headrace import Engine, Job, Results
from headrace.store.whole_files import compact_file, verify
from tests.store.kept_files import waiting

_DAMAGED = 2  # the ordinal of the interview that is changed
_KEPT = Path(__file__).parents[2] / "tests" / "data" / "format_1"
_STORED, _PLANNED = 8, 12  # interviews of the kept run file
_TOTALS = {"n": "count()", "numbers": "sum(agent.number)", "most": "max(agent.number)"}


# --- a smaller file in the place of a good one


def roomy(place: Path) -> None:
    """A finished run whose file has room that it does not use."""
    finish(place)
    with closing(apsw.Connection(str(place / "x.run"))) as connection:
        connection.execute("CREATE TABLE more AS SELECT randomblob(100000) AS x; DROP TABLE more;")


def damaged(place: Path) -> None:
    """A finished run with an answer that has changed since."""
    roomy(place)
    with closing(apsw.Connection(str(place / "x.run"))) as connection:
        connection.execute("UPDATE interviews SET a1 = 'another' WHERE ordinal = ?", (_DAMAGED,))


def compact(place: Path) -> None:
    compact_file(place / "x.run")


def check_compacted(place: Path) -> None:
    """Every row is there, and a second compaction leaves nothing to gain."""
    path = place / "x.run"
    assert ordinals_of(path) == list(range(PEOPLE)), "results are lost"
    check_run(place)
    compact_file(path)
    assert compact_file(path).before_bytes == path.stat().st_size < 100_000
    check_run(place)


def drop(place: Path) -> None:
    compact_file(place / "x.run", drop_damaged_rows=True)


def check_dropped(place: Path) -> None:
    """The file is the old one or the new one. The old one stays under another name, once, and as a file of its own."""
    path = place / "x.run"
    if verify(path).findings:
        drop(place)
    assert not verify(path).findings
    (kept,) = place.glob("x.damaged-*.run")
    assert verify(kept).run_again.ranges == [(_DAMAGED, _DAMAGED)]
    assert not path.samefile(kept), "two names of one file"
    assert ordinals_of(path) == [ordinal for ordinal in range(PEOPLE) if ordinal != _DAMAGED]
    check_run(place)


# --- files of the first version


def unpack(place: Path) -> None:
    for name in ("plain.run", "engine.run"):
        (place / name).write_bytes(gzip.decompress((_KEPT / f"{name}.gz").read_bytes()))


def upgrade(place: Path) -> None:
    path = place / "plain.run"
    Job.open(path).run(path, limit=_STORED + 2).close()
    asyncio.run(_open_engine(place / "engine.run"))


async def _open_engine(path: Path) -> None:
    async with Engine(path, isolation="inline") as engine:
        engine.status()


def check_upgraded(place: Path) -> None:
    path, engine_path = place / "plain.run", place / "engine.run"
    before = ordinals_of(path)
    assert before[:_STORED] == list(range(_STORED)), "results are lost"
    with Job.open(path).run(path) as results:
        assert results.stats().reused >= len(before)
        assert [result.answer for result in results] == [{"mood": "Good", "rating": 7}] * _PLANNED
    asyncio.run(_check_engine(engine_path))
    for each in (path, engine_path):
        assert not verify(each).findings
        check_is_alone(each)


async def _check_engine(path: Path) -> None:
    async with Engine(path, isolation="inline") as engine:
        short = await engine.find("short")
        assert short is not None
        assert await short.result() == "y: 10"
        run = await engine.submit(waiting, key="waiting")
        await run.send("a letter")
        assert await asyncio.wait_for(run.result(), 30) == "got a letter"


# --- totals in place of rows


def run_for_totals(place: Path) -> None:
    run_survey(place, keep="nothing", aggregate=_TOTALS)


def check_totals(place: Path) -> None:
    """The totals are those of the finished interviews at every moment, and of each once in the end."""
    path, finished, before = place / "x.run", 0, len(lines_of(place / "calls"))
    if path.exists():
        finished = _finished_of(path)
    assert finished >= len(lines_of(place / "confirmed")), "a confirmed result is lost"
    run_for_totals(place)
    again = {call.partition(":")[0] for call in lines_of(place / "calls")[before:]}
    assert len(again) <= PEOPLE - finished, "finished interviews were asked again"
    assert _finished_of(path) == PEOPLE
    with Results.open(path) as results:
        (totals,) = results.aggregate().to_dicts()
    assert totals == {"n": PEOPLE, "numbers": sum(range(PEOPLE)), "most": PEOPLE - 1}
    check_is_alone(path)


def _finished_of(path: Path) -> int:
    """How many interviews are finished, each of which is in the totals."""
    assert not verify(path).findings
    with Results.open(path) as results:
        (totals,) = results.aggregate().to_dicts()
        assert totals["n"] == len(results), "the totals are not those of the finished interviews"
        return len(results)
