import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from headrace import Results
from headrace.survey.record import decode_record
from tests.trouble.children import Child, run_child, until
from tests.trouble.programs.letters import right_letters
from tests.trouble.programs.town import CITIES, QUESTIONS, calls_of, expected

pytestmark = pytest.mark.usefixtures("forks")

AGENTS, LATENCY_S, WINDOW = 60, 0.01, 16
INTERVIEWS = AGENTS * len(CITIES)
CALLS = sum(sum(calls_of(ordinal).values()) for ordinal in range(INTERVIEWS))
KILLS = 8


class Call(NamedTuple):
    ordinal: int
    question: str
    attempt: int


def calls_in(log: Path) -> list[Call]:
    *lines, _ = log.read_text().split("\n") if log.exists() else [""]  # the last may be half there
    return [Call(int(ordinal), question, int(attempt)) for ordinal, question, attempt in map(str.split, lines)]


def count(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def journaled(path: Path, copy: Path) -> set[tuple[int, str]]:
    """Every (interview, question) that stands in the file, read from a copy: the next run finds it as it was left."""
    copy.mkdir()
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            shutil.copy(path.with_name(path.name + suffix), copy / f"copy.run{suffix}")
    connection = apsw.Connection(str(copy / "copy.run"))
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'results'").get:
            return set()
        sealed = [ordinal for (ordinal,) in connection.execute("SELECT ordinal FROM interviews")]
        pending = list(connection.execute("SELECT ordinal, question, record FROM pending"))
    finally:
        connection.close()
    assert not set(sealed) & {ordinal for ordinal, _, _ in pending}, "an interview is both ended and in flight"
    assert all(decode_record(record).question == question for _, question, record in pending)
    return {(ordinal, name) for ordinal in sealed for name in QUESTIONS} | {(o, QUESTIONS[q]) for o, q, _ in pending}


def pending_answers(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(10_000)
        made = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'results'").get
        return connection.execute("SELECT count(*) FROM pending").get if made else 0
    finally:
        connection.close()


def everything(path: Path) -> list[dict[str, Any]]:
    parts = ("ordinal", "iteration", "status", "answer", "agent", "scenario", "prompts", "raw_responses", "failures")
    with Results.open(path) as results:
        return [{part: result[part] for part in (*parts, "skipped", "system_prompt")} for result in results]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("uninterrupted") / "whole.run"
    assert run_child("run_town", path, AGENTS, LATENCY_S, WINDOW)[-1]["error"] is None
    return everything(path)


def test_an_uninterrupted_run_answers_as_it_should(uninterrupted: list[dict[str, Any]]) -> None:
    assert [result["ordinal"] for result in uninterrupted] == list(range(INTERVIEWS))
    assert [result["answer"] for result in uninterrupted] == [expected(ordinal) for ordinal in range(INTERVIEWS)]
    assert 0 < sum(result["status"] == "failed" for result in uninterrupted) < INTERVIEWS
    assert {name for result in uninterrupted for name in result["skipped"]} == {"minutes"}


def moments(seed: int) -> list[int]:
    """After how many calls in all to kill: at the very start, anywhere, and when nearly or quite everything is done."""
    chance = random.Random(seed)
    anywhere = sorted(chance.randrange(1, CALLS) for _ in range(KILLS - 4))
    return [0, 0, *anywhere, CALLS - 1, CALLS]


def kill_at(child: Child, log: Path, calls: int, chance: random.Random) -> None:
    child.wait_until_told()
    until(lambda: count(log) >= calls or not child.is_alive, f"call {calls}")
    # The moment is random on purpose: setting up takes some 20 ms, a commit less than one.
    time.sleep(chance.uniform(0.0, 0.03 if calls == 0 else 0.004))
    child.kill()


@pytest.mark.parametrize(("seed", "workers"), [(1, "0"), (4, "2")])
def test_a_run_killed_at_random_moments_loses_and_repeats_nothing_journaled(
    seed: int, workers: str, tmp_path: Path, uninterrupted: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKERS", workers)
    path, log, chance = tmp_path / "town.run", tmp_path / "calls", random.Random(seed)
    kept: set[tuple[int, str]] = set()
    for number, moment in enumerate(moments(seed)):
        before = len(calls_in(log))
        with Child("run_town", path, AGENTS, LATENCY_S, WINDOW, CALL_LOG=str(log)) as child:
            kill_at(child, log, moment, chance)
        made = {(call.ordinal, call.question) for call in calls_in(log)[before:]}
        assert not sorted(made & kept), "what was journaled was asked again"
        was_kept, kept = kept, journaled(path, tmp_path / f"copy{number}") if path.exists() else set()
        assert was_kept <= kept, "what was journaled is gone"
        assert len({ordinal for ordinal, _ in made - kept}) <= WINDOW, "more was lost than the window holds"

    before = len(calls_in(log))
    assert run_child("run_town", path, AGENTS, LATENCY_S, WINDOW, CALL_LOG=str(log))[-1]["error"] is None
    assert not {(call.ordinal, call.question) for call in calls_in(log)[before:]} & kept
    assert everything(path) == uninterrupted
    with Results.open(path) as results:
        stats = results.stats()
    assert (stats.interviews, stats.calls) == (INTERVIEWS, CALLS)
    assert stats.failed == sum(result["status"] == "failed" for result in uninterrupted)


def test_a_killed_run_keeps_single_answers_of_interviews_it_had_not_finished(tmp_path: Path) -> None:
    path, log, latency_s = tmp_path / "town.run", tmp_path / "calls", 0.4
    with Child("run_town", path, AGENTS, latency_s, INTERVIEWS, CALL_LOG=str(log)) as child:
        # All interviews run at once, and each takes five calls in turn: after the first, none can have ended.
        child.wait_until_told()
        until(lambda: path.exists() and pending_answers(path) > 0, "answers of interviews in flight")
        child.kill()
    kept = journaled(path, tmp_path / "copy")
    assert kept, "no answer was journaled before its interview ended"
    before = len(calls_in(log))
    assert run_child("run_town", path, AGENTS, latency_s, INTERVIEWS, CALL_LOG=str(log))[-1]["error"] is None
    repeated = Counter((call.ordinal, call.question) for call in calls_in(log)[before:])
    assert not repeated.keys() & kept
    assert [result["answer"] for result in everything(path)] == [expected(ordinal) for ordinal in range(INTERVIEWS)]


ROWS = 20_000


@pytest.fixture(scope="module")
def rows_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text("number,text\n" + "".join(f"{number},row {number} of many\n" for number in range(ROWS)))
    return path


def size_of(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in folder.iterdir() if entry.exists())


def test_a_run_killed_while_its_file_is_made_starts_over_unharmed(tmp_path: Path, rows_csv: Path) -> None:
    whole, chance = tmp_path / "whole", random.Random(4)
    whole.mkdir()
    assert run_child("run_rows", whole / "rows.run", rows_csv, 50)[-1]["error"] is None
    for share in (0.0, *(chance.uniform(0.01, 0.95) for _ in range(2))):
        folder = tmp_path / f"{share:.3f}"
        folder.mkdir()
        with Child("run_rows", folder / "rows.run", rows_csv, 50) as child:
            wanted = share * size_of(whole)
            # Without a pause between looks: the whole file is made in a tenth of a second.
            until(lambda: size_of(folder) > wanted or not child.is_alive, "the file to grow", every_s=0.0)  # noqa: B023
            child.kill()
        told = run_child("run_rows", folder / "rows.run", rows_csv, 50)[-1]
        assert told == {"error": None, "message": "", "kinds": []}
        assert [r["answer"] for r in everything(folder / "rows.run")] == [
            r["answer"] for r in everything(whole / "rows.run")
        ]
        with Results.open(folder / "rows.run") as results:
            assert len(results) == 50


def test_a_new_run_does_not_mix_with_what_a_removed_run_file_left_beside_it(tmp_path: Path) -> None:
    path, log = tmp_path / "any.run", tmp_path / "calls"
    with Child("run_town", path, AGENTS, LATENCY_S, WINDOW, CALL_LOG=str(log)) as child:
        child.wait_until_told()
        until(lambda: count(log) > CALLS // 10, "a tenth of the calls")
        child.kill()
    rows = path.with_name(path.name + "-wal").read_bytes()
    assert len(rows) > 32
    path.unlink()  # as a user would who wants to start over and knows of one file
    with Child("run_letters", path, 50, 100, 0.0, 10) as child:
        until(lambda: not child.is_alive, "the new run's end")
        assert child.told[-1] == {"error": None, "message": "", "kinds": []}
        assert "any.run-wal is the log of an earlier file" in child.complaints
    assert right_letters(path, 100) == 50
    (kept,) = tmp_path.glob("any.*.run-wal")
    assert kept.read_bytes() == rows, "the file may only have been moved: its log is not thrown away"
