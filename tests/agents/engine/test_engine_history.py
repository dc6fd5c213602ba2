"""The memory history in an engine's file: written with its commits, bounded, and there after a kill."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headrace import Engine
from headrace.memory.bounded_history import HistoryPoint
from headrace.store.engine_file.engine_reader import reading_engine
from headrace.store.whole_files import verify
from tests.store.kept_files import FORMATS, noting, unpacked
from tests.trouble.children import until


def history(path: Path) -> list[HistoryPoint]:
    with reading_engine(path) as reader:
        return reader.memory_history()


async def short(ctx, number):
    return await ctx.step("one", asyncio.sleep, 0, number)


async def run_one(path: Path, number: int) -> None:
    async with Engine(path, isolation="inline", memory="+300MB") as engine:
        assert await (await engine.submit(short, number)).result() == number


async def test_all_engines_of_a_file_make_one_history(tmp_path: Path):
    path = tmp_path / "a.run"
    for number in range(3):
        await run_one(path, number)
    points = history(path)
    assert sorted({point.run for point in points}) == [1, 2, 3]
    assert [point.done for point in points if point.run == 3][-1] == 3
    assert all(0 < point.memory_bytes < point.budget_bytes and point.stored_bytes > 0 for point in points)
    assert [point.second for point in points] == sorted({point.second for point in points})


async def test_an_idle_engine_writes_its_history_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headrace.agents.engine.engine_memory.IDLE_NOTED_EVERY_S", 0.2)
    path = tmp_path / "a.run"
    async with Engine(path, isolation="inline", memory="+300MB"):
        await asyncio.to_thread(until, lambda: len(history(path)) >= 2, "two points of an engine without runs")


@pytest.mark.parametrize("written_as", FORMATS)
async def test_a_file_of_an_older_version_gets_a_history_when_an_engine_opens_it(tmp_path: Path, written_as: str):
    path = unpacked("engine", tmp_path, written_as)
    assert history(path) == []
    async with Engine(path, isolation="inline", memory="+300MB") as engine:
        assert await (await engine.submit(noting, "y", key="short")).result() == "y: 10"
    assert {point.run for point in history(path)} == {1}
    assert not verify(path).findings


async def test_a_damaged_point_is_found_and_costs_the_next_engine_nothing(tmp_path: Path):
    path = tmp_path / "a.run"
    await run_one(path, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE memory_history SET memory_bytes = memory_bytes + 1")
    assert list(verify(path).findings) == ["memory history"]
    await run_one(path, 2)
    assert {point.run for point in history(path)} == {1}
    assert not verify(path).findings
