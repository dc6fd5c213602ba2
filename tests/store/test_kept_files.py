import asyncio
import json
from pathlib import Path

import pytest

from headrace import Engine, Job, Results
from headrace.errors import RunFailed
from headrace.store.whole_files import verify
from tests.results.files import city_answers
from tests.store.kept_files import (
    BLOB_BYTES,
    DATA,
    FORMATS,
    STORED_FIRST,
    WIDE_ANSWERS,
    failing,
    failing_job,
    mapped_job,
    noting,
    pending_job,
    plain_job,
    unpacked,
    waiting,
    wide_job,
)


@pytest.fixture(params=FORMATS)
def written_as(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("name", ["city", "engine", "failing", "mapped", "pending", "plain"])
def test_an_older_file_is_whole(tmp_path: Path, name: str, written_as: str) -> None:
    found = verify(unpacked(name, tmp_path, written_as))
    has_checksums = written_as != "format_1" and name != "engine"
    assert not found.findings
    assert found.unchecked == (0 if has_checksums else found.rows)


@pytest.mark.parametrize("name", ["plain", "failing", "mapped"])
def test_an_older_file_reads_as_it_did_when_it_was_written(tmp_path: Path, name: str, written_as: str) -> None:
    expected = json.loads((DATA / "expected.json").read_text("utf-8"))[name]
    with Results.open(unpacked(name, tmp_path, written_as)) as results:
        assert results.select(*expected[0]).to_dicts(remove_prefix=False) == expected
        assert len(results) == len(list(results)) == len(expected)
        assert results.sql("select count(*) from self").to_dicts() == [{"count(*)": len(expected)}]
        assert all(result.prompts for result in results)


def test_an_older_file_is_filtered_and_sorted(tmp_path: Path, written_as: str) -> None:
    with Results.open(unpacked("city", tmp_path, written_as)) as results:
        assert len(list(results.failed())) == sum(ordinal % 7 == 3 for ordinal in range(40))
        found = results.filter("answer.rating > 5 and agent.age < 30").sort_by("answer.rating", "interview.ordinal")
        rated = [(city_answers(n)[1], n) for n in range(20) if city_answers(n)[1] > 5]
        assert [(r.answer["rating"], r.ordinal) for r in found] == sorted(rated)


def test_an_older_file_of_many_questions_reads_as_it_did(tmp_path: Path) -> None:
    path = unpacked("wide", tmp_path)
    with Results.open(path) as results:
        assert list(results[0].answer.values()) == WIDE_ANSWERS
    with wide_job().run(path) as results:
        assert results.stats().reused == 1


def test_an_older_run_goes_on_where_it_was_and_grows(tmp_path: Path, written_as: str) -> None:
    path = unpacked("plain", tmp_path, written_as)
    with plain_job().run(path) as results:
        assert (results.stats().reused, len(results)) == (STORED_FIRST, 12)
    with plain_job(8).run(path, extend=True) as results:
        assert (results.stats().reused, len(results)) == (12, 16)
    with plain_job(8).run(path, n=2) as results:
        assert (results.stats().reused, len(list(results))) == (16, 32)
        assert {result.answer["rating"] for result in results} == {7}


def test_an_older_job_is_read_from_its_file_alone(tmp_path: Path, written_as: str) -> None:
    path = unpacked("plain", tmp_path, written_as)
    with Job.open(path).run(path) as results:
        assert len(results) == 12


def test_failures_of_an_older_file_are_tried_again(tmp_path: Path, written_as: str) -> None:
    path = unpacked("failing", tmp_path, written_as)
    with failing_job().run(path, retry_failed=True) as results:
        stats = results.stats()
        assert (stats.failed, len(list(results.failed()))) == (4, 4)
    with mapped_job().run(unpacked("mapped", tmp_path, written_as)) as results:
        assert results.stats().reused == 5


def test_answers_in_flight_of_an_older_file_are_not_asked_for_again(tmp_path: Path, written_as: str) -> None:
    with pending_job().run(unpacked("pending", tmp_path, written_as)) as results:
        assert [result.answer for result in results] == [{"one": "x", "two": "x"}, {"one": "kept", "two": "x"}]


async def test_an_older_engine_file_gives_its_results_and_goes_on(tmp_path: Path, written_as: str) -> None:
    async with Engine(unpacked("engine", tmp_path, written_as), isolation="inline") as engine:
        assert await (await engine.submit(noting, "y", key="short")).result() == "y: 10"
        assert await (await engine.submit(noting, "x", key="long")).result() == f"x: {BLOB_BYTES}"
        with pytest.raises(RunFailed, match="as it should"):
            await (await engine.submit(failing, key="failed")).result()
        run = await engine.submit(waiting, key="waiting")
        await run.send("a letter")
        assert await asyncio.wait_for(run.result(), 30) == "got a letter"
