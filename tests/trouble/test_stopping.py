import os
from collections import Counter
from pathlib import Path

import apsw
import pytest

from headrace import Results
from tests.trouble.children import Child, run_child, until
from tests.trouble.programs.town import CITIES, QUESTIONS, calls_of, expected, town_job

pytestmark = pytest.mark.usefixtures("forks")

AGENTS, FEW = 20, 2  # so few at a time that the run is not over when it is interrupted
INTERVIEWS = AGENTS * len(CITIES)
RIGHT = [expected(ordinal) for ordinal in range(INTERVIEWS)]

_PENDING = "SELECT ordinal, question FROM pending"
Calls = Counter[tuple[int, str]]


def calls_in(log: Path) -> Calls:
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter((int(ordinal), question) for ordinal, question, _ in map(str.split, lines))


def sealed_and_pending(path: Path) -> tuple[set[int], set[int]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(10_000)
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'results'").get:
            return set(), set()
        sealed = {ordinal for (ordinal,) in connection.execute("SELECT ordinal FROM interviews")}
        return sealed, {ordinal for (ordinal,) in connection.execute("SELECT ordinal FROM pending")}
    finally:
        connection.close()


def pending_answers(path: Path) -> set[tuple[int, str]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {(ordinal, QUESTIONS[question]) for ordinal, question in connection.execute(_PENDING)}
    finally:
        connection.close()


def check_ended_in_good_order(path: Path, log: Path) -> None:
    """All that had begun has ended, nothing else was begun, and nobody holds the file."""
    sealed, pending = sealed_and_pending(path)
    assert pending == set()
    assert 0 < len(sealed) < INTERVIEWS
    assert {ordinal for ordinal, _ in calls_in(log)} == sealed
    assert not path.with_name(path.name + ".lock").exists()


def check_goes_on_to_the_end(path: Path, log: Path, latency_s: float) -> None:
    """The rest is asked, each question as often as in a run that nobody stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALL_LOG", str(log))
        workers = int(os.environ.get("WORKERS", "0"))
        town_job(AGENTS, latency_s).run(path, concurrency=INTERVIEWS, workers=workers).close()
    with Results.open(path) as results:
        assert [result.answer for result in results] == RIGHT
        assert results.stats().interviews == INTERVIEWS
    wanted = Counter({(o, name): calls for o in range(INTERVIEWS) for name, calls in calls_of(o).items()})
    assert calls_in(log) == +wanted


def wait_for_results(path: Path, child: Child, *, pending: bool = False) -> None:
    until(lambda: path.exists() or not child.is_alive, "the file")
    until(lambda: any(sealed_and_pending(path)[pending:]) or not child.is_alive, "the first results")


@pytest.fixture(params=["0", "2"])
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How many processes conduct the interviews; the programs read it from their environment."""
    monkeypatch.setenv("WORKERS", request.param)
    return request.param


inline_and_in_workers = pytest.mark.usefixtures("workers")


@inline_and_in_workers
def test_the_first_ctrl_c_lets_what_runs_end_and_the_run_goes_on_later(tmp_path: Path) -> None:
    path, log = tmp_path / "town.run", tmp_path / "calls"
    with Child("run_town", path, AGENTS, 0.02, FEW, CALL_LOG=str(log)) as child:
        wait_for_results(path, child)
        child.interrupt()
        told = child.ended()[-1]
    assert told["error"] == "Interrupted"
    assert "KeyboardInterrupt" in told["kinds"]
    check_ended_in_good_order(path, log)
    assert f"Stopped after {len(sealed_and_pending(path)[0])} of {INTERVIEWS}" in told["message"]
    check_goes_on_to_the_end(path, log, 0.02)


@inline_and_in_workers
def test_the_second_ctrl_c_stops_at_once_and_the_run_goes_on_later(tmp_path: Path) -> None:
    path, log, latency_s = tmp_path / "town.run", tmp_path / "calls", 0.8
    with Child("run_town", path, AGENTS, latency_s, INTERVIEWS, CALL_LOG=str(log)) as child:
        wait_for_results(path, child, pending=True)
        child.interrupt()
        child.wait_until_stopping()
        child.interrupt()
        told = child.ended()[-1]
    assert told["error"] == "Interrupted"
    sealed, pending = sealed_and_pending(path)
    # Each interview takes five calls in turn: had it waited for them, some would have ended.
    assert sealed == set()
    assert pending
    assert pending <= set(range(INTERVIEWS))


@inline_and_in_workers
def test_answers_journaled_before_a_second_ctrl_c_are_not_asked_for_again(tmp_path: Path) -> None:
    path, log, latency_s = tmp_path / "town.run", tmp_path / "calls", 0.4  # four calls in turn, or more
    with Child("run_town", path, AGENTS, latency_s, INTERVIEWS, CALL_LOG=str(log)) as child:
        wait_for_results(path, child, pending=True)
        child.interrupt()
        child.wait_until_stopping()
        child.interrupt()
        assert child.ended()[-1]["error"] == "Interrupted"
    assert not path.with_name(path.name + ".lock").exists()
    kept, before = pending_answers(path), calls_in(log)
    assert kept
    assert run_child("run_town", path, AGENTS, latency_s, INTERVIEWS, CALL_LOG=str(log))[-1]["error"] is None
    assert not kept & (calls_in(log) - before).keys()
    with Results.open(path) as results:
        assert [result.answer for result in results] == RIGHT


def test_ctrl_c_while_the_file_is_made_stops_and_the_run_starts_later(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("number\n" + "".join(f"{number}\n" for number in range(100_000)))
    for attempt in range(5):  # on a busy machine a run of half a second may be over before it is interrupted
        path = tmp_path / f"{attempt}.run"
        with Child("run_rows", path, rows, 50) as child:
            child.wait_until_told()
            lock = path.with_name(path.name + ".lock")
            until(lambda: lock.exists() or not child.is_alive, "the run to open its file", every_s=0.0)  # noqa: B023
            child.interrupt()
            told = child.ended()[-1]
        if told["error"] is not None:
            break
    assert told["error"] == "Interrupted"
    assert run_child("run_rows", path, rows, 50)[-1]["error"] is None
    with Results.open(path) as results:
        assert len(results) == 50


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("break_out_of_a_stream", None),
        ("close_a_stream", None),
        ("close_a_stream_at_its_first_result", None),
        ("fail_in_a_stream", "Enough"),
        ("fail_in_on_result", "Enough"),
        ("interrupt_in_on_result", "Interrupted"),
        ("break_out_of_an_async_stream", None),
        ("fail_in_an_async_stream", "Enough"),
        ("fail_in_async_on_result", "Enough"),
        ("cancel_a_task", "CancelledError"),
        ("cancel_a_task_that_listens", "CancelledError"),
        ("run_out_of_time", "TimeoutError"),
    ],
)
def test_leaving_a_run_early_is_a_first_ctrl_c(how: str, error: str | None, tmp_path: Path) -> None:
    path, log = tmp_path / "town.run", tmp_path / "calls"
    with Child("stopping", how, path, CALL_LOG=str(log)) as child:
        (told,) = child.ended(within_s=30)
    assert (told["error"], told["threads"], told["locked"]) == (error, [], False)
    check_ended_in_good_order(path, log)
    check_goes_on_to_the_end(path, log, 0.02)
