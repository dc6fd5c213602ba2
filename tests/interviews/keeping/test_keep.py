"""What a run file keeps: everything, answers, or nothing but totals."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import Engine, Results
from headrace.errors import InvalidInput, OptionError, ProviderRefused, RunFileDamaged
from headrace.models.provider import Request
from headrace.store.run_file.keeping import unkept_rows
from headrace.store.whole_files import verify
from tests.interviews.keeping.kept_jobs import TOTALS, Respondent, expected, kept_job

NOTHING: dict[str, Any] = {"keep": "nothing", "aggregate": TOTALS, "group_by": "scenario.city"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.run"


def sql(path: Path, query: str) -> Any:
    """From another process: two SQLite libraries in one would drop each other's locks."""
    program = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])"
    command = [sys.executable, "-c", program, path, query]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def whole(path: Path) -> bool:
    return not verify(path).findings


def totals(results: Results) -> list[dict[str, Any]]:
    return results.aggregate().to_dicts()


def test_a_usual_file_is_of_the_version_it_always_was(path: Path):
    kept_job(Respondent()).run(path)
    assert sql(path, "PRAGMA user_version") == "2"
    assert sql(path, "SELECT count(*) FROM sqlite_schema WHERE name IN ('finished', 'totals')") == "0"
    assert Results.open(path).kept == "everything"


def test_answers_are_kept_without_prompts_and_raw_responses(path: Path):
    job = kept_job(Respondent())
    everything, answers = job.run(path.with_name("b.run")), job.run(path, keep="answers")
    assert [result.answer for result in answers] == [result.answer for result in everything]
    assert [result.tokens for result in answers] == [result.tokens for result in everything]
    options = "question_options.mood_question_options"
    assert answers.select(options).to_list() == everything.select(options).to_list()
    assert answers[0]["raw_model_response"]["mood_input_tokens"] == everything[0].tokens["mood"].input
    assert (answers.kept, len(answers), whole(path)) == ("answers", 30, True)
    assert "answers only" in repr(answers)
    for part in ("prompts", "raw_responses", "system_prompt"):
        with pytest.raises(InvalidInput, match=r"keeps answers without prompts"):
            answers[0][part]
    with pytest.raises(InvalidInput, match=r"has no prompt\.mood_user_prompt"):
        answers.select("prompt.*").to_dicts()
    answers.close()
    everything.close()
    small, large = (sql(each, "SELECT sum(length(detail)) FROM details") for each in (path, path.with_name("b.run")))
    assert int(small) < int(large)


def test_options_filled_with_earlier_answers_are_shown_again_where_answers_are_kept(path: Path):
    from headrace import Model, QuestionMultipleChoice, Survey

    survey = Survey(
        [
            QuestionMultipleChoice(question_name="a", question_text="Which?", question_options=["x", "y"]),
            QuestionMultipleChoice(question_name="b", question_text="And?", question_options=["{{ a.answer }}!", "no"]),
        ]
    )
    job = survey.by(Model("test", canned_response={"a": "y", "b": "y!"}))
    results = job.run(path, keep="answers")
    assert results.select("question_options.b_question_options").to_list() == [["y!", "no"]]
    assert results[0]["question_options"]["b_question_options"] == ["y!", "no"]


def test_failed_questions_are_asked_again_and_their_good_answers_never_where_answers_are_kept(path: Path):
    respondent = Respondent()
    respondent.troubles = lambda request: "99" if request.question_name == "rating" else None
    job = kept_job(respondent)
    assert job.run(path, keep="answers").stats().failed == 30
    assert whole(path)
    respondent.troubles = lambda _: None
    results = job.run(path, retry_failed=True)
    assert results.stats().failed == 0
    assert [question for _, _, question in respondent.calls].count("mood") == 30
    assert {result.answer["mood"] for result in results} == {"Good"}
    assert whole(path)


def test_a_file_keeps_to_what_it_was_made_for(path: Path):
    job = kept_job(Respondent())
    job.run(path, keep="answers", limit=3)
    with pytest.raises(OptionError, match=r"keeps answers only, and that cannot change"):
        job.run(path, keep="everything")
    assert len(job.run(path)) == 30
    assert Results.open(path).kept == "answers"
    assert len(job.run(path, keep="answers")) == 30
    job.run(path, keep="nothing", aggregate=TOTALS, fresh=True)
    assert Results.open(path).kept == "nothing"


def test_nothing_but_totals_is_kept_and_a_later_run_goes_on(path: Path):
    respondent = Respondent()
    job = kept_job(respondent)
    first = job.run(path, limit=7, **NOTHING)
    assert (len(first), first.stats().interviews, len(respondent.calls)) == (7, 7, 14)
    assert sum(row["n"] for row in totals(first)) == 7
    results = job.run(path)
    assert (len(results), results.stats().reused, len(respondent.calls)) == (30, 7, 60)
    assert totals(results) == expected()
    assert job.run(path, **NOTHING).stats().reused == 30
    assert len(respondent.calls) == 60
    assert totals(Results.open(path)) == expected()
    assert [sql(path, f"SELECT count(*) FROM {table}") for table in ("interviews", "details", "pending")] == ["0"] * 3
    assert whole(path)


def test_rows_that_are_not_kept_are_said_to_be_absent(path: Path):
    results = kept_job(Respondent()).run(path, **NOTHING)
    for read in (list, lambda r: r[0], lambda r: r.to_dicts(), lambda r: r.filter("rating > 3").to_dicts()):
        with pytest.raises(InvalidInput, match=r'keeps no results \(keep="nothing"\)\. results\.aggregate\(\) has'):
            read(results)
    with pytest.raises(InvalidInput, match="keeps no results"):
        len(results.filter("rating > 3"))
    with pytest.raises(InvalidInput, match="keeps no results"):
        results.sql("select count(*) from self").to_dicts()
    assert "no rows are kept" in repr(results)
    assert "Oslo" in str(results)
    assert list(results.failed()) == []


def test_what_is_made_of_a_file_without_rows_shows_an_error_in_place_of_itself(path: Path):
    results = kept_job(Respondent()).run(path, **NOTHING)
    for view in (results.select("mood"), results.drop("mood"), results.filter("rating > 3"), results.head(2)):
        with pytest.raises(InvalidInput, match="keeps no results"):
            str(view)
    for view in (results.select("mood"), results.drop("mood")):
        assert "keeps no results" in repr(view)
    with pytest.raises(InvalidInput, match="keeps no results"):
        results.table()
    with pytest.raises(InvalidInput, match="keeps no results"):
        str(kept_job(Respondent()).run(path.with_name("b.run")) + results)


@pytest.mark.parametrize("keep", ["nothing", "everything"])
def test_totals_are_of_all_interviews_and_never_of_a_part_of_them(path: Path, keep: str):
    results = kept_job(Respondent()).run(path, **(NOTHING | {"keep": keep}))
    assert totals(results.sort_by("rating")) == expected()
    for part in (results.filter("agent.age > 25"), results.head(3), results.tail(3), results.head(3).sort_by("age")):
        with pytest.raises(InvalidInput, match="these results are a part of them"):
            part.aggregate()


def test_a_run_whose_answers_nobody_would_see_is_refused_before_a_file_is_made(path: Path):
    with pytest.raises(OptionError, match=r'keep="nothing" keeps no answer'):
        kept_job(Respondent()).run(path, keep="nothing")
    assert not path.exists()


def test_callbacks_and_streams_get_whole_results_that_are_not_kept(path: Path):
    respondent, seen = Respondent(), []
    job = kept_job(respondent)
    job.run(path, keep="nothing", limit=10, on_result=seen.append)
    assert len({result.ordinal for result in seen}) == 10
    assert all("Rate it." in result.prompts["rating"] and result.raw_responses for result in seen)
    answered = len(respondent.calls)
    with pytest.raises(OptionError, match="10 finished ones cannot be streamed again"):
        list(job.stream(path))
    assert len(respondent.calls) == answered  # refused before anything was asked
    seen += job.stream(path, new_only=True)
    assert len({result.ordinal for result in seen}) == 30
    assert whole(path)


def test_a_resumed_file_needs_somebody_who_takes_the_results(path: Path):
    job = kept_job(Respondent())
    job.run(path, keep="nothing", limit=10, on_result=lambda _: None)
    with pytest.raises(OptionError, match="keeps no answer"):
        job.run(path)


def test_failures_from_outside_are_retried_and_enter_the_totals_when_they_succeed(path: Path):
    respondent = Respondent()

    def refuse(request: Request) -> BaseException | None:
        is_bad = request.question_name == "rating" and request.scenario["city"] == "Lima"
        return ProviderRefused("not now") if is_bad else None

    respondent.troubles = refuse
    job = kept_job(respondent)
    results = job.run(path, **NOTHING)
    assert (len(results), results.stats().failed) == (30, 10)
    assert totals(results) == expected(skip=lambda _, city: city == "Lima")
    assert {failed.question for failed in results.failed()} == {"rating"}
    assert whole(path)
    respondent.troubles = lambda _: None
    again = job.run(path)
    assert (again.stats().reused, again.stats().failed, len(again)) == (20, 0, 30)
    assert totals(again) == expected()
    moods = [city for _, city, question in respondent.calls if question == "mood"]
    assert len(moods) == 30  # the answers that were there were not asked for again
    assert sql(path, "SELECT (SELECT count(*) FROM failures) + (SELECT count(*) FROM details)") == "0"
    assert whole(path)


def test_invalid_answers_are_retried_only_when_asked_for_where_nothing_is_kept(path: Path):
    respondent = Respondent()
    respondent.troubles = lambda request: "99" if request.question_name == "rating" else None
    job = kept_job(respondent)
    job.run(path, limit=4, **NOTHING)
    respondent.troubles = lambda _: None
    assert job.run(path, limit=4).stats().failed == 4
    results = job.run(path, retry_failed=True)
    assert (results.stats().failed, totals(results)) == (0, expected())


def test_more_failures_than_are_kept_are_retried_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unkept_rows, "MOST_FAILURES", 5)
    respondent = Respondent()
    respondent.troubles = lambda request: ProviderRefused("no") if request.question_name == "rating" else None
    job = kept_job(respondent)
    results = job.run(path, **NOTHING)
    assert (results.stats().failed, len(list(results.failed()))) == (30, 5)
    assert whole(path)
    respondent.troubles = lambda _: None
    again = job.run(path)
    assert (again.stats().failed, totals(again)) == (0, expected())
    moods = [question for _, _, question in respondent.calls if question == "mood"]
    assert len(moods) == 30 + 25  # five had kept their answers
    assert whole(path)


def test_n_and_extend_grow_a_file_that_keeps_nothing(path: Path):
    kept_job(Respondent(), agents=4).run(path, **NOTHING)
    kept_job(Respondent(), agents=10).run(path, extend=True)
    results = kept_job(Respondent(), agents=10).run(path, n=2)
    assert [row["n"] for row in totals(results)] == [20, 20, 20]
    assert (len(results), whole(path)) == (60, True)


def test_a_sample_finishes_bits_anywhere_in_the_plan(path: Path):
    respondent = Respondent()
    job = kept_job(respondent, agents=9_000)
    job.run(path, sample=50, seed=3, **NOTHING)
    results = job.run(path, sample=50, seed=3)
    assert (len(results), results.stats().reused, len(respondent.calls)) == (50, 50, 100)
    assert whole(path)


def test_totals_may_be_kept_beside_rows_and_are_theirs(path: Path):
    job = kept_job(Respondent())
    results = job.run(path, aggregate=TOTALS, group_by=["scenario.city"])
    assert totals(results) == expected()
    assert len(list(results)) == 30
    with pytest.raises(OptionError, match="has other totals"):
        job.run(path, aggregate={"n": "count()"})
    job.run(path.with_name("b.run"), limit=1)
    with pytest.raises(OptionError, match="has no totals"):
        job.run(path.with_name("b.run"), aggregate=TOTALS)


@pytest.mark.parametrize("keep", ["everything", "answers", "nothing"])
async def test_every_way_to_run_keeps_the_same(path: Path, keep: str):
    job = kept_job(Respondent())
    options: dict[str, Any] = {**NOTHING, "keep": keep}
    results = await job.run_async(path, limit=5, **options)
    assert len(results) == 5
    async with Engine(path.with_name("engine.run"), memory="+512MB", isolation="inline") as engine:
        results = await engine.run(job, path, **options)
    assert (len(results), totals(results), results.kept) == (30, expected(), keep)
    streamed = [result async for result in job.astream(path, new_only=True)]
    assert streamed == []


@pytest.mark.parametrize("keep", ["answers", "nothing"])
def test_workers_send_rows_and_one_place_adds_them_up(path: Path, keep: str):
    from tests.interviews.keeping.worker_jobs import worker_job

    results = worker_job(40).run(path, workers=2, keep=keep, aggregate=TOTALS, group_by="scenario.city")
    assert totals(results) == expected(40)
    assert (len(results), whole(path)) == (120, True)


def test_a_damaged_bit_or_total_is_found_and_nothing_is_run_in_such_a_file(path: Path):
    job = kept_job(Respondent())
    job.run(path, **NOTHING)
    for change in (
        "UPDATE totals SET interviews = 3 WHERE key = '[\"Oslo\"]'",
        "DELETE FROM totals WHERE key = '[\"Oslo\"]'",
        "UPDATE finished SET block = block + 1",
        "DELETE FROM finished",
        "UPDATE meta SET value = 'answers' WHERE key = 'keep'",
    ):
        copy = path.with_name("copy.run")
        copy.write_bytes(path.read_bytes())
        _change(copy, change)
        assert not whole(copy), change
        with pytest.raises(RunFileDamaged):
            job.run(copy)


def test_a_run_in_another_process_shows_its_totals_live(path: Path):
    job, seen = kept_job(Respondent()), []

    def look(_: object) -> None:
        if not seen:
            seen.append(sum(row["n"] for row in totals(Results.open(path))))

    job.run(path, concurrency=2, on_result=look, **NOTHING)
    assert 1 <= seen[0] <= 30


def test_bits_are_blocks_that_compress(path: Path):
    job = kept_job(Respondent(), agents=3_000)
    job.run(path, **NOTHING)
    assert int(sql(path, "SELECT sum(length(bits)) FROM finished")) < 200
    assert sql(path, "SELECT count(*) FROM finished") == "2"


def _change(path: Path, statement: str) -> None:
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    subprocess.run([sys.executable, "-c", program, path, statement], check=True)
