"""What a run returns is what it was asked for, and stays so; `Results.open` is the live view of the whole file."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Engine, Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.errors import RunFileError


def job(people: int = 4, answer: Any = "x", cities: tuple[str, ...] = ("Oslo",)) -> Job:
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well, {{ scenario.city }}?")])
    agents = AgentList(Agent(name=f"p{i}", traits={"n": i}) for i in range(people))
    return survey.by(agents).by(ScenarioList.from_list("city", list(cities))).by(Model("test", canned_response=answer))


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


def seen(results: Results) -> list[list[int]]:
    """The same interviews, read in every way that there is."""
    flat = results.select("interview.ordinal")
    return [
        ordinals(results),
        flat.to_list(),
        ordinals(results.filter("interview.ordinal >= 0")),
        ordinals(results.filter("len(q) >= 0")),
        ordinals(results.sort_by("interview.ordinal")),
        sorted(ordinals(results.shuffle(1))),
        [row["interview.ordinal"] for row in results.to_dicts(remove_prefix=False)],
        results.sql('select "interview.ordinal" from self').to_list(),
        sorted(results.tally("interview.ordinal", output="dict")),
        [results[place].ordinal for place in range(len(results))],
        [ordinal for place in range(len(results)) for ordinal in ordinals(results[place : place + 1])],
    ]


def assert_has(results: Results, expected: list[int]) -> None:
    assert len(results) == len(expected)
    assert all(found == expected for found in seen(results))
    assert len(results.filter("True")) == len(expected)
    results.close()


def test_a_run_returns_what_it_was_asked_for_while_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    first = job().run(path)
    three = job().run(path, n=3)
    limited = job().run(path, limit=2)
    assert_has(first, [0, 1, 2, 3])
    assert_has(three, list(range(12)))
    assert_has(limited, [0, 1])
    assert_has(job().run(path), list(range(12)))  # the plan that the file has by now
    assert_has(Results.open(path), list(range(12)))


def test_lists_that_grew_are_outside_what_earlier_runs_returned(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    few = job(3).run(path)
    more = job(5).run(path, extend=True)
    wide = job(5, cities=("Oslo", "Lima")).run(path, extend=True, n=2)
    assert_has(few, [0, 1, 2])
    assert_has(more, [0, 1, 2, 3, 4])
    assert_has(wide, list(range(20)))


def test_a_sample_stays_the_same_interviews(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    drawn = job(40).run(path, sample=5, seed=3)
    expected = ordinals(drawn)
    assert len(expected) == 5
    assert len(Results.open(path)) == 5
    job(40).run(path, n=2)
    again = job(40).run(path, limit=40, sample=5, seed=3)
    most = job(40).run(path, limit=20, sample=18, seed=4)
    assert_has(drawn, expected)
    assert_has(again, expected)
    assert len(most) == 18
    assert max(ordinals(most)) < 20
    assert_has(most, ordinals(most))


def test_a_sample_of_a_job_with_conditions_stays_the_same_interviews(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    chosen = job(30).where("agent.n % 3 != 0")
    first = chosen.run(path, limit=6)
    drawn = chosen.run(path, sample=4, seed=1)
    expected = ordinals(drawn)
    chosen.run(path, n=2)
    assert_has(first, [1, 2, 4, 5, 7, 8])
    assert_has(drawn, expected)
    assert all(ordinal % 3 for ordinal in expected)
    assert len(expected) == 4


def test_a_later_retry_shows_its_new_answer(tmp_path: Path) -> None:
    path, answers = tmp_path / "a.run", {"q": None}
    asked = job(3, answer=lambda *_: answers["q"])
    before = asked.run(path, limit=2)
    assert [result.answer["q"] for result in before] == [None, None]
    assert len(list(before.failed())) == 2
    answers["q"] = "now"
    asked.run(path, retry_failed=True)
    assert [result.answer["q"] for result in before] == ["now", "now"]
    assert list(before.failed()) == []
    before.close()


def test_failures_are_those_of_the_run(tmp_path: Path) -> None:
    path, answers = tmp_path / "a.run", {"q": "fine"}
    asked = job(6, answer=lambda *_: answers["q"])
    fine = asked.run(path, limit=2)
    answers["q"] = None
    whole = asked.run(path)
    part = asked.run(path, limit=3)
    drawn = asked.run(path, sample=5, seed=2)
    assert [failure.ordinal for failure in whole.failed()] == [2, 3, 4, 5]
    assert [failure.ordinal for failure in part.failed()] == [2]
    assert [failure.ordinal for failure in drawn.failed()] == [each for each in ordinals(drawn) if each > 1]
    assert not fine.has_unfixed_exceptions
    assert "failed" not in str(fine)
    assert "1 of 3 interviews failed" in str(part)
    assert ordinals(part.filter("interview.status == 'failed'")) == [2]
    for each in (fine, whole, part, drawn):
        each.close()


def test_results_follow_a_file_that_a_fresh_start_renamed(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    answers = {"q": "old"}
    asked = job(4, answer=lambda *_: answers["q"])
    closed, opened, live = asked.run(path), asked.run(path, limit=3), Results.open(path)
    assert opened[0].answer["q"] == live[0].answer["q"] == "old"  # connections to the first file
    answers["q"] = "new"
    fresh = asked.run(path, fresh=True, limit=2)
    answers["q"] = "newest"
    newest = asked.run(path, fresh=True)
    for results, answer, count in ((closed, "old", 4), (opened, "old", 3), (live, "old", 4), (fresh, "new", 2)):
        assert [result.answer["q"] for result in results] == [answer] * count
        assert results[0].prompts["q"]
        assert results.select("q").sort_by("n").to_list() == [answer] * count
        assert results.path != path
        assert results.path.parent == path.parent
    assert newest.path == path
    assert_has(newest, [0, 1, 2, 3])
    for results in (closed, opened, live, fresh):
        results.close()


def test_a_file_that_is_gone_is_still_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    results = job(2).run(path)
    path.unlink()
    with pytest.raises(RunFileError, match="no run file"):
        len(list(results))
    job(3).run(path)
    with pytest.raises(RunFileError, match="was replaced by another"):
        list(results)


def test_the_repr_says_what_the_results_are(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    named = repr(str(path))
    assert repr(job().run(path, limit=3)) == f"Results({named}: the 3 interviews of a run with limit=3, 0 failed)"
    assert repr(job().run(path)) == f"Results({named}: the 4 interviews of a run, 0 failed)"
    assert "of a run with limit=3, sample=2, 0 failed" in repr(job().run(path, limit=3, sample=2))
    live = Results.open(path)
    assert repr(live) == f"Results({named}: a live view of the whole file, 4 interviews, 0 failed)"
    few = job().run(path, limit=3)
    assert repr(live.head(1)) == f"Results({named}: 1 of the 4 interviews of a live view of the whole file)"
    assert (
        repr(live[1:].sort_by("q")[2:]) == f"Results({named}: 1 of the 4 interviews of a live view of the whole file)"
    )
    assert repr(live.tail(9)) == f"Results({named}: 4 of the 4 interviews of a live view of the whole file)"
    assert repr(few[9:]) == f"Results({named}: 0 of the 3 interviews of a run with limit=3)"
    # The numbers of the file are not those of a part of it, and counting it would read every interview.
    part = f"Results({named}: part of the 3 interviews of a run with limit=3; len() counts it)"
    assert repr(few.filter("q == 'x'")) == repr(few.filter("q == 'x'").head(2)) == part


def test_results_of_two_runs_are_added_within_what_each_was_asked_for(tmp_path: Path) -> None:
    one, two = tmp_path / "a.run", tmp_path / "b.run"
    left, right = job(5).run(one, limit=2), job(5).run(two, sample=2, seed=1)
    drawn = ordinals(right)
    job(5).run(one)
    job(5).run(two, n=2)
    both = left + right
    assert len(both) == 4
    assert ordinals(both) == [0, 1, *drawn]
    assert ordinals(both.sort_by("interview.ordinal", reverse=True)) == sorted([0, 1, *drawn], reverse=True)
    assert ordinals(both[1:3]) == [0, 1, *drawn][1:3]
    assert both.tally("iteration", output="dict") == {0: 4}
    both.close()


@pytest.mark.anyio
async def test_run_async_and_an_engine_return_what_they_were_asked_for(tmp_path: Path) -> None:
    path, other = tmp_path / "a.run", tmp_path / "b.run"
    first = await job().run_async(path)
    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        limited = await engine.run(job(), other, limit=3)
        drawn = await engine.run(job(), other, sample=2, seed=5)
        await engine.run(job(), other, n=2)
        await engine.run(job(), path, n=2)
    assert_has(first, [0, 1, 2, 3])
    assert_has(limited, [0, 1, 2])
    assert_has(drawn, ordinals(drawn))
    assert len(drawn) == 2


def test_statistics_are_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    first = job().run(path, limit=1)
    job().run(path)
    assert first.stats() == Results.open(path).stats()
    assert first.stats().interviews == 4


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    people=st.integers(1, 12),
    n=st.integers(1, 3),
    limit=st.none() | st.integers(1, 40),
    sample=st.none() | st.integers(1, 40),
    seed=st.integers(-3, 2**70),
    keeps=st.none() | st.integers(1, 4),
)
def test_the_scope_of_a_run_is_what_the_run_conducts(
    tmp_path_factory: pytest.TempPathFactory,
    people: int,
    n: int,
    limit: int | None,
    sample: int | None,
    seed: int,
    keeps: int | None,
) -> None:
    path = tmp_path_factory.mktemp("scope") / "a.run"
    asked = job(people) if keeps is None else job(people).where(f"agent.n % {keeps} == 0")
    results = asked.run(path, n=n, limit=limit, sample=sample, seed=seed)
    conducted = Results.open(path).select("interview.ordinal").to_list()
    asked.run(path, n=n + 1)
    assert_has(results, conducted)


def test_the_ordinals_of_a_run_are_searched_by_key(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    results = job(50).run(path, limit=20)
    opened = results._parts[0].opened()
    with opened._stage(opened.clock()) as (stage, _, _), opened.reader.snapshot() as connection:
        sql = f"SELECT i.ordinal FROM {stage._row_set.tables} WHERE i.ordinal > 3"
        ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN {sql}")
    assert plan.endswith("interviews USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")
    results.close()
