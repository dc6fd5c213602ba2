import os
from pathlib import Path
from typing import Any

import pytest

from headrace import Results
from tests.trouble.children import Child, run_child, until
from tests.trouble.programs.town import CITIES, expected

pytestmark = pytest.mark.usefixtures("forks")

AGENTS = 20
RIGHT = [expected(ordinal) for ordinal in range(AGENTS * len(CITIES))]


def lock_beside(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def answers_in(path: Path) -> list[dict[str, Any]]:
    with Results.open(path) as results:
        return [result.answer for result in results]


def wait_for_results(path: Path, child: Child) -> None:
    until(lambda: (lock_beside(path).exists() and path.exists()) or not child.is_alive, "the run to begin")
    until(lambda: count_in(path) > 0 or not child.is_alive, "the first results")


def count_in(path: Path) -> int:
    try:
        with Results.open(path) as results:
            return len(results)
    except Exception:  # noqa: BLE001 - it is being set up
        return 0


def test_a_second_process_is_refused_by_name_and_the_first_is_unharmed(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    with Child("run_town", path, AGENTS, 0.01, 5, GATE=str(tmp_path / "gate")) as first:
        wait_for_results(path, first)
        refused = run_child("run_town", path, AGENTS, 0.01, 5)[-1]
        (tmp_path / "gate").touch()
        assert refused["error"] == "RunFileBusy"
        assert f"process {first.pid})" in refused["message"]
        assert str(path) in refused["message"]
        assert first.ended()[-1]["error"] is None
    assert answers_in(path) == RIGHT
    assert not lock_beside(path).exists()


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    with Child("run_town", path, AGENTS, 0.01, 5, GATE=str(tmp_path / "gate")) as first:
        wait_for_results(path, first)
        first.kill()
    assert lock_beside(path).exists(), "a killed process cannot have tidied up"
    assert run_child("run_town", path, AGENTS, 0.01, 50)[-1]["error"] is None
    assert answers_in(path) == RIGHT


def test_a_lock_file_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    for left in (b"", b"1", str(os.getpid()).encode(), b"\xff\xfe not a number" * 100):
        lock_beside(path).write_bytes(left)
        assert run_child("run_town", path, AGENTS, 0.001, 20)[-1]["error"] is None
    assert answers_in(path) == RIGHT


def test_many_processes_that_start_at_once_give_one_writer_and_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    children = [Child("run_town", path, AGENTS, 0.01, 20) for _ in range(4)]
    try:
        ends = [child.ended()[-1] for child in children]
    finally:
        for child in children:
            child.__exit__(None, None, None)
    assert {end["error"] for end in ends} <= {None, "RunFileBusy"}, ends
    assert None in {end["error"] for end in ends}
    assert answers_in(path) == RIGHT


def test_a_second_thread_of_the_same_process_is_refused_too(tmp_path: Path) -> None:
    (told,) = run_child("two_threads", tmp_path / "town.run")
    assert told["second"]["error"] == "RunFileBusy"
    assert f"process {told['pid']})" in told["second"]["message"]
    assert told["first"]["error"] is None
    assert told["answers"] == RIGHT


@pytest.mark.parametrize(("how", "status"), [("exits", 7), ("raises", 1)])
def test_a_fork_that_leaves_the_run_behind_ends_at_once_and_harms_nothing(tmp_path: Path, how: str, status: int):
    """It has none of the threads that it would otherwise wait for."""
    (told,) = run_child("fork_in_run", tmp_path / "town.run", how)
    assert told == {"statuses": [status], "answers": RIGHT}
