from pathlib import Path
from typing import Any

import pytest

from tests.trouble.children import run_child
from tests.trouble.small_disks import UNSHARE, needs_small_disks, on_small_disk

COUNT = 600


def check_filled_up_and_went_on(told: list[Any]) -> None:
    full, still_full, roomy = told
    assert full["error"] == "StorageFull", full
    assert "run the same job again" in full["message"]
    assert 0 < full["count"] < COUNT, "something was journaled, and it is all readable"
    assert still_full["error"] == "StorageFull", still_full
    assert full["count"] <= still_full["count"] < COUNT
    assert (roomy["error"], roomy["count"]) == (None, COUNT), roomy


def test_a_disk_that_fills_up_stops_the_run_and_room_lets_it_go_on(tmp_path: Path) -> None:
    check_filled_up_and_went_on(on_small_disk("small_disk", tmp_path))


def test_a_file_size_limit_stops_the_run_and_a_higher_one_lets_it_go_on(tmp_path: Path) -> None:
    check_filled_up_and_went_on(run_child("full_disk", "size_limit", tmp_path))


def test_a_disk_too_small_for_the_lists_is_said_and_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    first, again, roomy = on_small_disk("no_room_for_the_lists", tmp_path)
    assert [first["error"], again["error"], roomy["error"]] == ["StorageFull", "StorageFull", None], (first, again)
    assert roomy["count"] == 100


def test_a_disk_that_is_full_before_the_first_byte_is_said(tmp_path: Path) -> None:
    full, roomy = on_small_disk("no_room_at_all", tmp_path)
    assert full["error"] == "StorageFull", full
    assert (roomy["error"], roomy["count"]) == (None, 20), roomy


def test_a_disk_that_filled_up_between_two_runs_is_said_and_harms_nothing(tmp_path: Path) -> None:
    full, roomy = on_small_disk("no_room_to_resume", tmp_path)
    assert (full["error"], full["count"]) == ("StorageFull", 20), full
    assert (roomy["error"], roomy["count"]) == (None, 40), roomy


def test_a_full_temporary_directory_is_said_when_a_list_is_made(tmp_path: Path) -> None:
    (told,) = on_small_disk("no_room_to_spool", tmp_path)
    assert told["error"] == "StorageFull", told
    assert str(tmp_path) in told["message"]
    assert told["left"] == []


def test_a_temporary_directory_that_fills_up_at_a_lists_last_rows_is_said_when_it_is_made(tmp_path: Path) -> None:
    (told,) = run_child("full_disk", "no_room_for_the_end_of_a_spool", tmp_path)
    assert told["error"] == "StorageFull", told


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_a_disk_that_fills_up_while_a_step_is_journaled_stops_the_engine_and_room_lets_it_go_on(
    tmp_path: Path, isolation: str
) -> None:
    needs_small_disks()
    (disk := tmp_path / "disk").mkdir()
    filled_up, still_full, roomy = run_child("full_engine", disk, tmp_path / "log", isolation, within=UNSHARE)
    assert set(filled_up) == {"diary", "bystander", "submitted", "engine"}
    assert set(still_full) == {"engine"}
    for told in (*filled_up.values(), *still_full.values()):
        assert told.startswith(f"StorageFull: {disk}/agents.run cannot grow: the disk is full")
    ran = roomy.pop("ran")
    assert roomy == {"diary": "01234567", "bystander": "7"}
    assert ran == [0, 1, 2, 3, 4, 5, 5, 6, 7], "only the step that could not be journaled ran twice"
