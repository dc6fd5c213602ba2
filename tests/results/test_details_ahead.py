"""Prompts and responses of results that are looked at one after the other: read several at a time, each checked."""

import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from headrace.errors import RunFileDamaged
from headrace.results.results import Results
from headrace.store.run_file.bulk import details_ahead
from headrace.survey.agent import Agent
from tests.results import files
from tests.store.kept_files import unpacked


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many details were asked for at a time; 0 is one by itself."""
    asked: list[int] = []
    read, by_itself = details_ahead.DetailsAhead._read, details_ahead.stored_detail

    def noted(self: Any, ordinals: tuple[int, ...]) -> dict[int, bytes]:
        asked.append(len(ordinals))
        return read(self, ordinals)

    def noted_by_itself(*given: Any) -> Any:
        asked.append(0)
        return by_itself(*given)

    monkeypatch.setattr(details_ahead.DetailsAhead, "_read", noted)
    monkeypatch.setattr(details_ahead, "stored_detail", noted_by_itself)
    return asked


def test_details_are_read_ahead_for_those_who_look_at_one_after_the_other(tmp_path: Path, readings: list[int]) -> None:
    with Results.open(files.city(tmp_path / "city.run", 150)) as results:
        assert [result.system_prompt for result in results] == [f"You are number {n}." for n in range(300)]
        assert readings == [0, 2, 4, 8, 16, 32, 64, 64, 64, 45]
        readings.clear()
        assert sum(1 for result in results if result.answer) == 300
        assert readings == []  # nobody looked at one
        for result in results:
            if result.ordinal % 100 == 50:
                assert result.system_prompt == f"You are number {result.ordinal}."
        assert readings == [0, 2, 0]  # one here and there is not worth reading the next


def test_a_damaged_detail_is_refused_and_those_around_it_are_read(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run", 50)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE details SET detail = (SELECT detail FROM details WHERE ordinal = 3) WHERE ordinal = 41")
    connection.execute("DELETE FROM details WHERE ordinal = 60")
    connection.close()
    with Results.open(path) as results:
        for result in results:
            if result.ordinal in (41, 60):
                with pytest.raises(RunFileDamaged, match=f"interview {result.ordinal} "):
                    _ = result.system_prompt
            else:
                assert result.system_prompt == f"You are number {result.ordinal}."


def test_long_details_are_read_one_by_one(tmp_path: Path, readings: list[int]) -> None:
    of = files.job(files.survey("said"), [Agent({"n": n}) for n in range(60)])
    path = tmp_path / "long.run"
    with files.opened(path, of) as file:
        rows = [files.row(file, of, n, [f"answer {n}"]) for n in range(60)]
        packer = files._packer(file.dictionary)
        for n in range(20, 40):
            system = random.Random(n).randbytes(130_000).hex()
            detail = files.Detail(system, 1.0, [])
            rows[n].detail = packer.compress(files.encode_detail(detail))
            assert len(rows[n].detail) > 100_000
        file.journal.commit([files.row_batch(rows)], [])
    with Results.open(path) as results:
        assert [len(result.system_prompt) >= 250_000 for result in results] == [20 <= n < 40 for n in range(60)]
    assert 20 <= readings.count(0) < 40


def test_details_without_checksums_are_read(tmp_path: Path) -> None:
    with Results.open(unpacked("plain", tmp_path)) as results:
        assert all(result.prompts for result in results)


def test_results_of_a_sorted_view_have_their_own_prompts(tmp_path: Path) -> None:
    with Results.open(files.city(tmp_path / "city.run", 100)) as results:
        for result in results.sort_by("rating", reverse=True):
            assert result.system_prompt == f"You are number {result.ordinal}."
