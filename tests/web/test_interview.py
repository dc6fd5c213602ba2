"""One interview over HTTP: the conversation, what each question took, its neighbours and its twins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from headrace import Agent, FileStore, Model, QuestionFreeText, QuestionMultipleChoice, Scenario, Survey
from headrace.results.results import Results
from headrace.web.api import one_interview
from tests.results import files
from tests.web.hostile import SCRIPTS, assert_only_text, hostile_run
from tests.web.running_page import RunningPage


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("interviews")
    survey = Survey(
        [
            QuestionMultipleChoice(question_name="mood", question_text="How?", question_options=["good", "bad"]),
            QuestionFreeText(question_name="why", question_text="Why {{ mood.answer }} in {{ scenario.city }}?"),
            QuestionFreeText(question_name="more", question_text="What else?"),
        ]
    ).add_skip_rule("more", "mood.answer == 'good'")
    agents = [Agent(name=f"p{i}", traits={"age": 20 + i}) for i in range(6)]
    models = [Model("test", canned_response={"mood": "good", "why": f"since {n}"}, latency_s=n / 1000) for n in (0, 1)]
    job = survey.by(agents).by([Scenario(city="Oslo")]).by(models)
    job.run(place / "plain.run", n=2, cache=False)
    job.run(place / "answers.run", keep="answers", cache=False)
    files.city(place / "city.run")
    hostile_run(place / "hostile.run")
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def id_of(page: RunningPage, name: str) -> str:
    return next(file["id"] for file in page.api("/runs")["files"] if file["name"] == name)


def interview(page: RunningPage, ordinal: int, name: str = "plain.run", **asked: Any) -> Any:
    return page.api(f"/runs/{id_of(page, name)}/interviews/{ordinal}?{urlencode(asked)}")


def test_an_interview_has_all_that_results_have_of_it(page: RunningPage, place: Path):
    found = interview(page, 3, text="true")
    with Results.open(place / "plain.run") as results:
        result = results[3]
    shown = found["interview"]
    assert found["agent"] == dict(result.agent)
    assert found["scenario"] == {"city": "Oslo"}
    assert shown["system_prompt"] == result.system_prompt
    assert {turn["name"]: turn["answer"] for turn in shown["turns"]} == result.answer
    asked = [turn for turn in shown["turns"] if turn["attempts"]]
    assert {turn["name"]: turn["prompt"] for turn in asked} == result.prompts
    assert {turn["name"]: turn["raw_response"] for turn in asked} == result.raw_responses
    assert [turn["input_tokens"] for turn in asked] == [tokens.input for tokens in result.tokens.values()]
    assert shown["turns"][2]["state"] == "skipped"
    assert "mood.answer == 'good'" in shown["turns"][2]["why"]


def test_a_models_words_come_only_where_they_are_asked_for(page: RunningPage):
    shown = interview(page, 3)["interview"]
    assert shown["withheld"]
    assert shown["system_prompt"] is None
    assert [(turn["answer"], turn["prompt"], turn["raw_response"]) for turn in shown["turns"][:2]] == [
        ("good", None, None),
        (None, None, None),
    ]
    failed = interview(page, 3, "city.run")["interview"]["turns"][0]
    assert (failed["state"], failed["cause"], failed["message"]) == ("failed", "invalid answer", None)


def test_neighbours_are_those_of_the_filter_and_the_order(page: RunningPage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(one_interview, "_NEIGHBOUR_S", 30.0)
    found = interview(page, 8)
    assert (found["previous"]["ordinal"], found["next"]["ordinal"]) == (7, 9)
    assert interview(page, 0)["previous"] is None
    assert interview(page, 23)["next"] is None
    found = interview(page, 8, filter="agent.age == 24")
    assert (found["previous"], found["next"]["ordinal"]) == (None, 9)
    down = interview(page, 8, sort="-interview.ordinal")
    assert (down["previous"]["ordinal"], down["next"]["ordinal"]) == (9, 7)
    by_age = interview(page, 8, sort="-agent.age")
    assert (by_age["previous"]["ordinal"], by_age["next"]["ordinal"]) == (23, 9)


def test_a_neighbour_that_is_not_found_at_once_is_looked_for_in_the_table(
    page: RunningPage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(one_interview, "_NEIGHBOUR_S", 1e-9)
    asked = {"filter": "agent.age > 21", "sort": "agent.age"}
    found = interview(page, 8, **asked)
    assert found["next"]["ordinal"] is None
    rows = page.api(f"/runs/{id_of(page, 'plain.run')}/rows?{urlencode({**asked, 'cursor': found['next']['cursor']})}")
    assert rows["rows"][0]["ordinal"] == 9
    shown = page.get(f"/runs/{id_of(page, 'plain.run')}/interviews/8?{urlencode(asked)}").body
    assert "look for it in the table" in shown
    found = interview(page, 1)  # in the order of the plan it is one look into the file, however busy the machine
    assert (found["previous"]["ordinal"], found["next"]["ordinal"]) == (0, 2)


def test_the_same_agent_and_scenario_with_other_models_and_iterations_stand_beside(page: RunningPage):
    found = interview(page, 2)
    assert [(twin["ordinal"], twin["iteration"], twin["status"]) for twin in found["twins"]] == [
        (3, 0, "done"),
        (14, 1, "done"),
        (15, 1, "done"),
    ]
    both = interview(page, 2, beside=15, text="true")
    assert both["beside"]["ordinal"] == 15
    assert both["beside"]["turns"][1]["answer"] == "since 1"
    answer = page.get(f"/api/v1/runs/{id_of(page, 'plain.run')}/interviews/2?beside=4")
    assert answer.status == 400
    assert "same agent and scenario" in answer.json()["error"]["message"]
    shown = page.get(f"/runs/{id_of(page, 'plain.run')}/interviews/2?beside=15").body
    assert "since 0" in shown
    assert "since 1" in shown


def test_an_interview_that_is_not_there_is_said_in_words(page: RunningPage):
    run = id_of(page, "plain.run")
    for ordinal, status in (("24", 404), ("-1", 404), ("99999999999999999999", 404), ("x", 400)):
        assert page.get(f"/api/v1/runs/{run}/interviews/{ordinal}").status == status, ordinal
        assert page.get(f"/runs/{run}/interviews/{ordinal}").status == status, ordinal


def test_a_file_that_keeps_answers_alone_shows_them(page: RunningPage):
    shown = interview(page, 1, "answers.run", text="true")["interview"]
    assert shown["has_texts"] is False
    assert [turn["answer"] for turn in shown["turns"]] == ["good", "since 1", None]
    assert shown["turns"][0]["prompt"] is None
    assert "without prompts" in page.get(f"/runs/{id_of(page, 'answers.run')}/interviews/1").body


def test_what_hostile_files_hold_is_text_in_a_conversation(page: RunningPage):
    run = id_of(page, "hostile.run")
    for ordinal in range(2 * len(SCRIPTS)):
        for address in (f"{ordinal}", f"{ordinal}?beside={ordinal ^ 1}"):
            answer = page.get(f"/runs/{run}/interviews/{address}")
            assert answer.status == 200
            assert_only_text(answer.body)
    assert "&lt;script&gt;alert(1)&lt;&#x2f;script&gt;" in page.get(f"/runs/{run}/interviews/0").body


def test_files_in_prompts_are_named_and_not_shown(tmp_path: Path):
    secret = tmp_path / "secret plans.txt"
    secret.write_text("the plan is to win")
    picture = tmp_path / "cat.png"
    picture.write_bytes(bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489") + b"x" * 50)
    survey = Survey([QuestionFreeText(question_name="it", question_text="Look: {{ scenario.photo }}")])
    job = survey.by([Scenario(photo=FileStore(picture))]).by(Model("test", canned_response="nice"))
    job.run(tmp_path / "files.run", cache=False)
    with RunningPage(tmp_path) as page:
        shown = page.get(f"/runs/{id_of(page, 'files.run')}/interviews/0").body
        assert "[file cat.png, image" in shown.replace("&#x2f;", "/")
        assert "<img" not in shown
        assert str(tmp_path) not in shown.replace("&#x2f;", "/").split("Interview 0")[1]
