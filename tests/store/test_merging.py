"""Several run files made into one: every interview in its place, counted once, and the rest can be run."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headrace import Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.cli.main import app
from headrace.errors import HeadraceError, OptionError, RunFileDamaged, RunFileError
from headrace.plan.lists import AgentList
from headrace.store.run_file.merging.merging import Merged, merge_run_files
from headrace.store.whole_files import copy_file, verify
from headrace.survey.agent import Agent
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.survey.scenario import Scenario
from tests.cli.terminals import HEADRACE, environment
from tests.results import files
from tests.store.kept_files import unpacked
from tests.trouble.children import size_of

COLUMNS = ("agent.k", "scenario.city", "model.canned_response", "iteration.iteration", "answer.a", "answer.b")
CITIES = [Scenario(city="Oslo"), Scenario(city="Lima")]


def job(agents: list[int], cities: list[Scenario] = CITIES, models: tuple[str, ...] = ("m",)) -> Job:
    people = [Agent({"k": k, "word": f"w{k}"}) for k in agents]
    return files.job(files.survey("a", "b"), people, cities, [Model("test", canned_response=each) for each in models])


def write(path: Path, of: Job, ordinals: list[int] | None = None, mark: str = "", **options: Any) -> Path:
    def answers(ordinal: int) -> list[Any]:
        return [files.MISSING if (ordinal + len(mark)) % 5 == 0 else f"{mark}{ordinal}", [ordinal, mark]]

    return files.write(path, of, answers, ordinals, **options)


def rows(path: Path) -> list[tuple[Any, ...]]:
    with Results.open(path) as results:
        return results.select(*COLUMNS).to_list()


def by_place(path: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {row[:4]: row[4:] for row in rows(path)}


def merged(*paths: Path) -> tuple[Path, Merged]:
    target = paths[0].with_name("merged.run")
    before = [path.read_bytes() for path in paths]
    made = merge_run_files(paths, target)
    assert [path.read_bytes() for path in paths] == before
    found = verify(target)
    assert found.findings == {}
    assert found.unchecked == 0
    return target, made


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_one_job_are_put_together(tmp_path: Path, seed: int):
    draw, of = random.Random(seed), job(list(range(10)), models=("m", "n"))
    parts = [draw.sample(range(40), draw.randint(1, 40)) for _ in range(3)]
    paths = [write(tmp_path / f"{n}.run", of, sorted(part), mark="x" * n) for n, part in enumerate(parts)]
    target, made = merged(*paths)
    expected: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for path in paths:
        for place, answers in by_place(path).items():
            if place not in expected or (expected[place][0] is None and answers[0] is not None):
                expected[place] = answers
    assert by_place(target) == expected
    assert made.interviews == len(expected) == len(set().union(*parts))
    assert made.planned == 40
    assert made.in_several == sum(map(len, parts)) - len(expected)
    with Results.open(target) as results:
        stats = results.stats()
        assert stats.failed == sum(answers[0] is None for answers in expected.values())
        assert stats.calls == 2 * sum(map(len, parts))  # what was dropped was paid for, too
        assert sum(1 for _ in results.failed()) == stats.failed
        for result in results:
            assert result.prompts["a"] == "Please answer 0."


def test_a_file_with_changed_budgets_is_not_merged_before_they_are_given_again(tmp_path: Path):
    a, b = write(tmp_path / "a.run", job([1]), max_cost=2.0), write(tmp_path / "b.run", job([2]))
    with closing(sqlite3.connect(a)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key = 'budget.max_cost'")
    with pytest.raises(RunFileDamaged, match="Run it with max_cost= and max_tokens_total="):
        merge_run_files((a, b), tmp_path / "merged.run")


def test_lists_are_joined_by_content_equal_ones_side_by_side(tmp_path: Path):
    one, two = [1, 2, 2, 3], [2, 4, 2, 2, 3, 4]
    a, b = write(tmp_path / "a.run", job(one)), write(tmp_path / "b.run", job(two), mark="b")
    target, made = merged(a, b)
    assert [row[0] for row in rows(target)][::2] == [1, 2, 2, 3, 4, 2, 4]
    assert (made.interviews, made.planned, made.in_several) == (14, 14, 6)
    with Results.open(target) as results:
        taken = results.select("agent.k", "answer.b").to_list()[8:]
    assert [value[0] for _, value in taken] == [2, 3, 6, 7, 10, 11]
    assert all(value[1] == "b" for _, value in taken)
    expected = job([1, 2, 2, 3, 4, 2, 4]).identity()
    with closing(sqlite3.connect(target)) as connection:
        kept = dict(connection.execute("SELECT key, value FROM meta WHERE key GLOB 'identity.*'"))
    assert kept["identity.agents"] == expected.agents  # so that a program with that list goes on in the file


@pytest.mark.parametrize("axis", ["scenarios", "models"])
def test_other_lists_are_joined_alike_and_what_is_left_is_run(tmp_path: Path, axis: str):
    if axis == "scenarios":
        one, two = job([1, 2, 3]), job([1, 2, 3], [Scenario(city="Rome"), Scenario(city="Lima")])
    else:
        one, two = job([1, 2, 3], models=("m", "n")), job([1, 2, 3], models=("o", "m"))
    a, b = write(tmp_path / "a.run", one, [1, 2]), write(tmp_path / "b.run", two, [1, 2, 3], mark="b")
    target, made = merged(a, b)
    both = {**by_place(b), **by_place(a)}
    assert by_place(target) == both
    assert made.planned == 9 if axis == "scenarios" else 18
    assert CliRunner().invoke(app, ["resume", str(target)]).exit_code in (0, 3)
    assert verify(target).findings == {}
    after = by_place(target)
    assert len(after) == made.planned
    assert {place: after[place] for place in both} == both
    assert all(answers[0] == place[2] for place, answers in after.items() if place not in both)


def test_a_file_that_is_asked_more_often_adds_its_iterations(tmp_path: Path):
    a, b = write(tmp_path / "a.run", job([1, 2])), write(tmp_path / "b.run", job([1, 2]), mark="b", n=3)
    target, made = merged(a, b)
    assert (made.interviews, made.planned, made.in_several) == (12, 12, 4)
    assert {place[3] for place in by_place(target)} == {0, 1, 2}


def test_a_list_that_was_extended_is_the_same_list(tmp_path: Path):
    write(tmp_path / "a.run", job([1, 2]))
    write(tmp_path / "a.run", job([1, 2, 3]), [4, 5], extend=True)
    b = write(tmp_path / "b.run", job([1, 2, 3]), mark="b")
    target, made = merged(tmp_path / "a.run", b)
    assert (made.interviews, made.in_several) == (6, 6)
    # The rest goes on with the program's own list, whichever file it was.
    files.opened(target, job([1, 2, 3]))


def test_copies_of_one_file_are_not_counted_twice(tmp_path: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="{{ scenario.n }}?")])
    of = asked.by(ScenarioList.from_list("n", list(range(10)))).by(Model("test", canned_response="x"))
    of.run(tmp_path / "a.run", limit=4).close()
    copy_file(tmp_path / "a.run", tmp_path / "b.run")
    of.run(tmp_path / "a.run", limit=6).close()
    of.run(tmp_path / "b.run", limit=9).close()
    target, made = merged(tmp_path / "a.run", tmp_path / "b.run")
    with Results.open(target) as results:
        assert (len(results), made.in_several, results.stats().calls) == (9, 6, 9)
    with of.run(target) as results:
        assert (len(results), results.stats().reused) == (10, 9)


def test_answers_in_flight_go_on(tmp_path: Path):
    a, of = write(tmp_path / "a.run", job([1]), [0]), job([2])
    with files.opened(tmp_path / "b.run", of) as file:
        record = AnswerRecord(0, AnswerState.ANSWERED, value="kept", prompt="p", raw=b"r", attempts=1, input_tokens=7)
        file.journal.commit([], [(1, record)])
    target, made = merged(a, tmp_path / "b.run")
    assert (made.interviews, made.planned) == (1, 4)
    assert CliRunner().invoke(app, ["resume", str(target)]).exit_code in (0, 3)
    assert by_place(target)[2, "Lima", "m", 0] == ("kept", "m")


def test_files_of_older_versions_are_merged_and_checked_from_then_on(tmp_path: Path):
    (tmp_path / "one").mkdir()
    old = unpacked("city", tmp_path / "one")
    second = Path(shutil.copy(old, tmp_path / "second.run"))
    target = tmp_path / "merged.run"
    made = merge_run_files([old, second], target)
    assert made.in_several == made.interviews > 0
    assert (verify(target).findings, verify(target).unchecked) == ({}, 0)
    with Results.open(old) as before, Results.open(target) as after:
        assert before.to_dicts() == after.to_dicts()


def test_files_that_keep_answers_alone_are_merged_and_totals_are_not(tmp_path: Path):
    asked = Survey([QuestionFreeText(question_name="q", question_text="{{ scenario.n }}?")])
    of = asked.by(ScenarioList.from_list("n", list(range(6)))).by(Model("test", canned_response="x"))
    for name, keep in (("a", "answers"), ("b", "answers"), ("c", "everything"), ("d", "nothing")):
        of.run(tmp_path / f"{name}.run", keep=keep, sample=4, seed=ord(name), on_result=lambda _: None).close()
    target, made = merged(tmp_path / "a.run", tmp_path / "b.run")
    with of.run(target) as results:
        assert (len(results), results.stats().reused) == (6, made.interviews)
    assert verify(target).findings == {}
    target.unlink()
    _refused(RunFileError, "one keeps prompts", tmp_path / "a.run", tmp_path / "c.run")
    _refused(RunFileError, "keeps totals", tmp_path / "a.run", tmp_path / "d.run")


def _refused(kind: type[HeadraceError], words: str, *paths: Path) -> None:
    target = paths[0].parent / "merged.run"
    with pytest.raises(kind, match=words):
        merge_run_files(paths, target)
    assert not list(target.parent.glob("merged.run*"))


def test_what_cannot_be_merged_is_told_in_words(tmp_path: Path):
    a = write(tmp_path / "a.run", job([1, 2]))
    other = files.city(tmp_path / "city.run", people=2)
    _refused(RunFileError, "different surveys: .*'mood'", a, other)
    two_lists = write(tmp_path / "b.run", job([3], [Scenario(city="Rome")]))
    _refused(RunFileError, "both their agents and scenarios differ", a, two_lists)
    more_often = write(tmp_path / "c.run", job([3]), n=2)
    _refused(RunFileError, r"agents differ, and how often each is asked \(n\)", a, more_often)
    _refused(OptionError, "named twice", a, tmp_path / "." / "a.run")
    _refused(OptionError, "nothing to merge", a)
    _refused(RunFileError, "no run file", a, tmp_path / "missing.run")
    with pytest.raises(OptionError, match="is there already"):
        merge_run_files([a, more_often], a)
    written = [Agent({"k": 1}, codebook={"k": "Number"})]
    codebook = files.write(tmp_path / "d.run", files.job(files.survey("a", "b"), written, CITIES), lambda n: ["", ""])
    _refused(RunFileError, "different codebooks|agents and models differ", a, codebook)


def test_conditions_must_be_those_of_one_job(tmp_path: Path):
    left_out = job([1, 2, 3]).where("agent.k != 2")
    a, b = write(tmp_path / "a.run", left_out, [0, 1]), write(tmp_path / "b.run", left_out, [1, 4], mark="b")
    target, made = merged(a, b)
    assert (made.interviews, made.planned, made.in_several) == (3, 4, 1)
    assert CliRunner().invoke(app, ["resume", str(target)]).exit_code in (0, 3)
    assert {place[0] for place in by_place(target)} == {1, 3}
    target.unlink()
    _refused(RunFileError, "leave out different combinations", a, write(tmp_path / "c.run", job([1, 2, 3])))
    other = write(tmp_path / "d.run", job([1, 2, 4]).where("agent.k != 2"), [0])
    _refused(RunFileError, "not of the same job", a, other)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE interviews SET a0 = 'other' WHERE ordinal = 2",
        "UPDATE details SET detail = X'00' WHERE ordinal = 2",
        "DELETE FROM interviews WHERE ordinal = 2",
        'UPDATE scenarios SET fields = \'{"city":"Bonn"}\' WHERE position = 1',
        "UPDATE counters SET value = 0 WHERE name = 'calls'",
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: str):
    a, b = write(tmp_path / "a.run", job([1, 2])), write(tmp_path / "b.run", job([3, 4]))
    with closing(sqlite3.connect(b)) as connection:
        connection.execute(change)
        connection.commit()
    _refused(RunFileDamaged, "damaged", b, a)
    if "scenarios" not in change:  # a list that both have is taken from the first
        _refused(RunFileDamaged, "damaged", a, b)


def test_a_killed_merge_leaves_no_file_and_the_others_as_they_were(tmp_path: Path):
    agents = (
        [Agent({"n": n, "note": os.urandom(50).hex()}) for n in range(first, first + 6_000)] for first in (0, 3000)
    )
    paths = [tmp_path / "a.run", tmp_path / "b.run"]
    for path, people in zip(paths, agents, strict=True):
        files.write(path, files.job(files.survey("q"), AgentList(people)), lambda n: [f"answer {n}"])
    before, target = [path.read_bytes() for path in paths], tmp_path / "c.run"
    command = [*HEADRACE, "merge", *map(str, paths), "-o", str(target), "--json"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    making, until = tmp_path / "c.run.making", time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until and not size_of(making):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if target.exists():  # the kill came after the last step
        assert verify(target).findings == {}
        target.unlink()
    again = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")
    assert '"interviews": 12000' in again.stdout
    assert [path.read_bytes() for path in paths] == before
    assert verify(target).findings == {}
    assert not making.exists()
