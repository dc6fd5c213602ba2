import asyncio
import dataclasses
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    ModelList,
    QuestionFreeText,
    QuestionMultipleChoice,
    QuestionNumerical,
    Results,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import (
    BudgetTooSmall,
    InterviewFailed,
    ListError,
    OptionError,
    PlanMismatch,
)
from headrace.models.provider import Request

CITIES = ["Oslo", "Lima", "Rome"]


def survey() -> Survey:
    return Survey(
        [
            QuestionMultipleChoice(
                question_name="mood",
                question_text="How do you feel about {{ scenario.city }}?",
                question_options=["Good", "Bad"],
            ),
            QuestionNumerical(
                question_name="rating", question_text="You said {{ mood.answer }}. Rate it.", min_value=0, max_value=10
            ),
        ]
    )


class Respondent:
    """A canned function that counts its calls and can be told to answer badly."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, str]] = []
        self.answers: dict[str, Any] = {"mood": "Good", "rating": 7}

    def __call__(self, request: Request) -> Any:
        self.calls.append((request.agent["agent_name"], request.scenario.get("city"), request.question_name))
        answer = self.answers[request.question_name]
        return answer(request) if callable(answer) else answer


def job_of(respondent: Any, agents: int = 4, cities: list[str] | None = None, **parameters: Any) -> Job:
    people = AgentList(Agent({"age": 20 + number}, name=f"p{number}") for number in range(agents))
    model = Model("test", canned_response=respondent, **parameters)
    return survey().by(people, ScenarioList.from_list("city", cities or CITIES), model)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.run"


def answers(results: Results) -> dict[tuple[int, str, str], Any]:
    return {(r.iteration, r.agent["agent_name"], r.scenario["city"]): dict(r.answer) for r in results}


def test_every_interview_of_the_plan_is_run_once(path: Path):
    respondent = Respondent()
    results = job_of(respondent).run(path)
    assert len(results) == 12
    assert answers(results) == {
        (0, f"p{person}", city): {"mood": "Good", "rating": 7} for person in range(4) for city in CITIES
    }
    assert len(respondent.calls) == len(set(respondent.calls)) == 24


def test_running_again_repeats_nothing(path: Path):
    respondent = Respondent()
    job_of(respondent).run(path)
    stats = job_of(respondent).run(path).stats()
    assert len(respondent.calls) == 24
    assert (stats.reused, stats.interviews, stats.calls) == (12, 12, 24)


def test_a_limit_tries_the_first_ones_and_the_same_file_goes_on(path: Path):
    respondent = Respondent()
    job = job_of(respondent)
    assert [result.ordinal for result in job.run(path, limit=5)] == [0, 1, 2, 3, 4]
    assert len(job.run(path)) == 12
    assert len(respondent.calls) == 24


def test_fresh_starts_over_and_keeps_the_old_file(path: Path):
    respondent = Respondent()
    job = job_of(respondent)
    job.run(path)
    assert job.run(path, fresh=True).stats().reused == 0
    assert len(respondent.calls) == 48
    kept = [name for name in path.parent.iterdir() if name != path]
    assert len(kept) == 1
    assert len(Results.open(kept[0])) == 12


def test_n_may_grow_in_the_same_file_and_old_ordinals_stay(path: Path):
    respondent = Respondent()
    job = job_of(respondent)
    before = {result.ordinal: (result.iteration, result.agent) for result in job.run(path)}
    results = job.run(path, n=3)
    assert len(results) == 36
    assert len(respondent.calls) == 72
    after = {result.ordinal: (result.iteration, result.agent) for result in results}
    assert before.items() <= after.items()
    assert len(job.run(path)) == 36
    with pytest.raises(OptionError, match="may grow but not shrink"):
        job.run(path, n=2)


def test_extend_appends_agents_and_scenarios(path: Path):
    respondent = Respondent()
    before = {r.ordinal: (r.agent, r.scenario) for r in job_of(respondent).run(path, n=2)}
    larger = job_of(respondent, agents=6, cities=[*CITIES, "Bonn"])
    with pytest.raises(PlanMismatch, match="extend=True goes on in the same file"):
        larger.run(path)
    results = larger.run(path, extend=True)
    assert len(results) == 2 * 6 * 4
    assert len(respondent.calls) == len(results) * 2
    after = {r.ordinal: (r.agent, r.scenario) for r in results}
    assert before.items() <= after.items()
    assert len(answers(results)) == len(results)
    assert len(larger.run(path)) == len(results)


def test_extend_refuses_a_list_that_begins_differently(path: Path):
    job_of("Good", cities=["Oslo", "Lima"]).run(path)
    with pytest.raises(PlanMismatch, match=r"scenario 1.*extend=True only appends"):
        job_of("Good", cities=["Oslo", "Rome", "Bonn"]).run(path, extend=True)
    assert len(Results.open(path)) == 8


@pytest.mark.parametrize(
    ("other", "part", "told"),
    [
        (lambda: job_of("Good", agents=5), "agents", "agents: 4 in the file, 5 in this job"),
        (lambda: job_of("Good", cities=["Oslo"]), "scenarios", "scenarios: 3 in the file, 1 in this job"),
        (
            lambda: job_of("Good", cities=[*CITIES[:2], "Bonn"]),
            "scenarios",
            "scenario 3 of 3: city '{2}' in the file, 'Bonn' in",
        ),
        (lambda: job_of("Bad"), "models", "model 'test': canned_response 'Good' in the file, 'Bad' in this job"),
        (lambda: _with(Model("mine", service_name="test")), "models", "models: test in the file, mine in this job"),
        (lambda: _with(Model("test", canned_response=str)), "models", "'Good' in the file, builtins:str (source "),
        (lambda: _with(_good, "True"), "survey", "skip rules: rating none in the file, 'True' in this job"),
        (lambda: _asking(survey().questions[:1]), "survey", "question 'rating' only in the file"),
        (lambda: _asking([*survey().questions, _more]), "survey", "question 'more' only in this job"),
        (lambda: _asking([_mood_text, *survey().questions[1:]]), "survey", "question 'mood': text '"),
        (lambda: _asking([_mood_options, *survey().questions[1:]]), "survey", '"Bad"] in the file, ["Good", "So-so"'),
    ],
)
def test_another_plan_is_refused_with_what_differs(path: Path, other: Any, part: str, told: str):
    job_of("Good").run(path)
    content = path.read_bytes()
    with pytest.raises(PlanMismatch) as refused:
        other().run(path)
    assert told.format(*CITIES) in refused.value.message
    assert "#" not in str(refused.value)
    assert len(str(refused.value)) < 420 + len(str(path))
    assert refused.value.expected[part] != refused.value.found[part]
    assert path.read_bytes() == content


_good = Model("test", canned_response="Good")
_more = QuestionFreeText(question_name="more", question_text="More?")
_mood_text = dataclasses.replace(survey().questions[0], question_text="And {{ scenario.city }}?")
_mood_options = dataclasses.replace(survey().questions[0], question_options=["Good", "So-so", "Bad"])


def _with(model: Model, rule: str | None = None) -> Job:
    asked = survey().add_skip_rule("rating", rule) if rule else survey()
    return asked.by(job_of("Good").agents, job_of("Good").scenarios, model)


def _asking(questions: Any) -> Job:
    return Survey(questions).by(job_of("Good").agents, job_of("Good").scenarios, _good)


def test_a_file_s_job_is_read_from_the_file_alone(path: Path):
    job_of({"mood": "Good", "rating": 7}).run(path, limit=3)
    job = Job.open(path)
    assert len(job) == 12
    assert [agent.name for agent in job.agents] == ["p0", "p1", "p2", "p3"]
    results = job.run(path)
    assert (len(results), results.stats().reused) == (12, 3)


def test_a_function_does_not_come_out_of_a_file(path: Path):
    job_of(Respondent()).run(path, limit=1)
    with pytest.raises(ListError, match="Run the program that made this run file again"):
        Job.open(path).run(path)


def test_without_a_path_the_same_program_goes_on(headrace_home: Path):
    respondent = Respondent()
    job_of(respondent).run(limit=4)
    results = job_of(respondent).run()
    assert results.stats().reused == 4
    assert results.path.is_relative_to(headrace_home)
    assert len(respondent.calls) == 24


def test_on_result_sees_each_newly_sealed_result_in_the_caller_s_thread(path: Path):
    job = job_of("Good")
    job.run(path, limit=4)
    seen: list[tuple[int, int]] = []
    job.run(path, on_result=lambda result: seen.append((result.ordinal, threading.get_ident())))
    assert sorted(ordinal for ordinal, _ in seen) == list(range(4, 12))
    assert {thread for _, thread in seen} == {threading.get_ident()}


def test_an_error_of_on_result_ends_the_run_and_loses_nothing(path: Path):
    def fail(_: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        job_of("Good", agents=200).run(path, on_result=fail, concurrency=10)
    assert len(job_of("Good", agents=200).run(path)) == 600


def test_an_async_on_result_needs_a_loop(path: Path):
    async def callback(_: object) -> None: ...

    with pytest.raises(OptionError, match="run_async"):
        job_of("Good").run(path, on_result=callback)


def test_a_stream_replays_what_is_stored_and_then_goes_on(path: Path):
    job = job_of("Good")
    job.run(path, limit=5)
    ordinals = [result.ordinal for result in job.stream(path)]
    assert ordinals[:5] == [0, 1, 2, 3, 4]
    assert sorted(ordinals) == list(range(12))
    assert list(job.stream(path, new_only=True)) == []


def test_a_closed_stream_can_be_gone_on_with(path: Path):
    job = job_of("Good", agents=500)
    stream = job.stream(path, concurrency=10)
    first = [next(stream).ordinal for _ in range(3)]
    stream.close()
    stored = len(Results.open(path))
    assert 3 <= stored <= 3 + 10 + 10
    assert sorted(result.ordinal for result in job.stream(path)) == list(range(1500))
    assert set(first) <= set(range(1500))


async def test_run_async_calls_back_on_the_caller_s_loop(path: Path):
    seen: list[int] = []

    async def callback(result: Any) -> None:
        assert threading.get_ident() == here
        seen.append(result.ordinal)

    here = threading.get_ident()
    results = await job_of("Good").run_async(path, on_result=callback)
    assert sorted(seen) == list(range(12))
    assert len(results) == 12


async def test_astream_gives_every_result_once(path: Path):
    job = job_of("Good")
    await job.run_async(path, limit=4)
    assert sorted([result.ordinal async for result in job.astream(path)]) == list(range(12))


async def test_an_astream_may_be_left_early(path: Path):
    job = job_of("Good", agents=300)
    stream = job.astream(path, concurrency=10)
    async for _ in stream:
        break
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    assert len(await job.run_async(path)) == 900


def test_interviews_overlap_within_the_window_and_questions_within_an_interview(path: Path):
    interviews, questions = 4, 3
    in_flight, overlap = 0, asyncio.Event()

    async def answer(_: Request) -> str:
        nonlocal in_flight
        in_flight += 1
        if in_flight > max(interviews, questions):  # several of one interview, and of several interviews
            overlap.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(overlap.wait(), 10)
        in_flight -= 1
        return "x"

    names = [f"q{n}" for n in range(questions)]
    apart = Survey([QuestionFreeText(question_name=name, question_text="Well?") for name in names])
    people = AgentList(Agent({"n": n}) for n in range(interviews))
    apart.by(people, Model.from_function(answer)).run(path, concurrency=interviews)
    assert overlap.is_set()


def test_dependent_questions_wait_for_each_other(path: Path):
    respondent = Respondent()
    respondent.answers["rating"] = lambda request: 9 if "You said Good." in request.user_prompt else 0
    results = job_of(respondent, latency_s=0.001).run(path)
    assert {result.answer["rating"] for result in results} == {9}


def test_a_skipped_question_is_not_asked_and_says_so(path: Path):
    respondent = Respondent()
    skipping = survey().add_skip_rule("rating", "{{ mood.answer }} == 'Good' and agent.age < 22")
    job = skipping.by(job_of("x").agents, Scenario({"city": "Oslo"}), Model("test", canned_response=respondent))
    results = job.run(path)
    assert [result.answer["rating"] for result in results] == [None, None, 7, 7]
    assert [list(result.skipped) for result in results] == [["rating"], ["rating"], [], []]
    assert len(list(results.failed())) == 0
    assert len(respondent.calls) == 6


def test_an_invalid_answer_is_asked_again_and_then_recorded_with_its_cause(path: Path):
    respondent = Respondent()
    respondent.answers["rating"] = lambda request: 99 if request.agent["agent_name"] == "p1" else 7
    results = job_of(respondent, cities=["Oslo"]).run(path)
    (failed,) = results.failed()
    assert (failed.question, failed.cause) == ("rating", "invalid answer")
    assert "99 is above the greatest value 10" in failed.message
    assert respondent.calls.count(("p1", "Oslo", "rating")) == 3
    assert [result.status for result in results] == ["done", "failed", "done", "done"]
    assert results[1].answer == {"mood": "Good", "rating": None}
    assert results.stats().failed == 1


def test_the_model_is_told_why_its_answer_was_not_accepted(path: Path):
    respondent = Respondent()
    respondent.answers["rating"] = lambda request: 7 if "99 is above" in request.user_prompt else 99
    results = job_of(respondent).run(path)
    assert results.stats().failed == 0
    assert {result.answer["rating"] for result in results} == {7}


def test_a_missing_answer_is_a_failure_and_never_a_silent_none(path: Path):
    respondent = Respondent()
    respondent.answers["mood"] = None
    results = job_of(respondent, agents=1, cities=["Oslo"]).run(path)
    assert [(f.question, f.cause) for f in results.failed()] == [("mood", "no answer")]
    assert ("p0", "Oslo", "rating") not in respondent.calls  # it needs the missing answer


def test_failed_answers_are_retried_only_when_asked_for_and_good_ones_never(path: Path):
    respondent = Respondent()
    respondent.answers["rating"] = 99
    job = job_of(respondent, cities=["Oslo"])
    job.run(path)
    respondent.answers["rating"] = 7
    assert job.run(path).stats().failed == 4
    results = job.run(path, retry_failed=True)
    assert results.stats().failed == 0
    assert [result.answer for result in results] == [{"mood": "Good", "rating": 7}] * 4
    assert [question for _, _, question in respondent.calls].count("mood") == 4
    assert results.stats().calls == len(respondent.calls)


def test_a_model_that_was_unavailable_is_tried_again_by_the_next_run(path: Path):
    job = job_of({"mood": "Good", "rating": 7}, fail_rate=1.0)
    results = job.run(path)
    assert {failed.cause for failed in results.failed()} == {"model unavailable"}
    assert len(results) == 12
    again = job.run(path)
    assert again.stats().reused == 0
    assert len(again) == 12


def test_a_busy_model_is_tried_again_until_it_answers(path: Path):
    results = job_of({"mood": "Good", "rating": 7}, agents=30, fail_rate=0.2, seed=5).run(path)
    assert len(results) == 90
    assert results.stats().failed <= 2
    assert sum(result.answer["rating"] == 7 for result in results) >= 88


def test_one_agent_s_bad_data_harms_nobody_else(path: Path):
    people = [Agent({"age": 1}), Agent({}), Agent({"age": {"a": "{{"}}), Agent({"age": 3})]
    asked = Survey([QuestionFreeText(question_name="q", question_text="{{ agent.age + 1 }}?")])
    results = asked.by(people, Model("test", canned_response="x")).run(path)
    assert [result.status for result in results] == ["done", "failed", "failed", "done"]
    assert {failed.cause for failed in results.failed()} == {"data does not fit the question"}


def test_a_canned_function_that_raises_fails_its_own_interview(path: Path):
    respondent = Respondent()
    respondent.answers["mood"] = lambda request: "Good" if request.scenario["city"] != "Lima" else 1 / 0
    results = job_of(respondent, agents=1).run(path)
    (failed,) = results.failed()
    assert "ZeroDivisionError" in failed.message
    assert results.stats().failed == 1


def test_stop_on_exception_stops_at_the_first_failure(path: Path):
    job = job_of({"mood": "Good", "rating": 99}, agents=300)
    with pytest.raises(InterviewFailed, match=r"rating.*invalid answer") as stopped:
        job.run(path, stop_on_exception=True, concurrency=10)
    assert stopped.value.question == "rating"
    assert 1 <= len(Results.open(path)) < 900


def test_several_models_each_answer_every_interview(path: Path):
    models = ModelList(Model("test", canned_response={"mood": mood, "rating": 5}) for mood in ("Good", "Bad"))
    results = survey().by(job_of("x").agents, Scenario({"city": "Oslo"}), models).run(path)
    assert sorted(result.answer["mood"] for result in results) == ["Bad"] * 4 + ["Good"] * 4


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"concurrency": 0}, "concurrency=0"),
        ({"concurrency": "many"}, "concurrency='many'"),
        ({"concurrency": 1.5}, r"concurrency=1\.5"),
        ({"n": "2"}, "n='2'"),
        ({"n": 2**70}, "whole number"),
        ({"fresh": "no"}, "fresh='no' must be True or False"),
        ({"on_result": 3}, "on_result=3 cannot be called"),
        ({"n": 0}, "n=0"),
        ({"limit": True}, "limit=True"),
        ({"memory": "lots"}, "not an amount of memory"),
        ({"memory": "0%"}, "not a share"),
        ({"memory": "+0MB"}, "leaves no room"),
        ({"fresh": True, "extend": True}, "Choose one"),
        ({"concurency": 5}, "Did you mean 'concurrency'"),
    ],
)
def test_options_that_cannot_be_used_are_refused_before_a_file_is_made(path: Path, settings: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        job_of("Good").run(path, **settings)
    assert not path.exists()


def test_a_budget_that_is_exceeded_already_offers_the_other_form(path: Path):
    with pytest.raises(BudgetTooSmall, match=r"already uses \d+ MB.*\+256MB"):
        job_of("Good").run(path, memory="5MB")
    assert not path.exists()


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Model("tset"), "Did you mean 'test'"),
        (Model("test", canned_respons="x"), "Did you mean 'canned_response'"),
        (Model("test", fail_rate=2), "fail_rate=2"),
        (Model("test", canned_response=object()), "holds a object"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_before_a_file_is_made(path: Path, model: Model, told: str):
    with pytest.raises(ListError, match=told):
        survey().by(Agent(), Scenario({"city": "Oslo"}), model).run(path)
    assert not path.exists()


def test_extending_needs_to_know_which_file():
    with pytest.raises(OptionError, match="which file"):
        job_of("Good").run(extend=True)


def test_no_model_is_an_error_that_says_how_to_give_one(path: Path):
    with pytest.raises(ListError, match="has no model"):
        survey().by(Agent(), Scenario({"city": "Oslo"})).run(path)
