"""The failures of a run, grouped; with messages that would like to be more than text."""

from pathlib import Path
from urllib.parse import quote

import pytest

from headrace import Agent, Model, QuestionMultipleChoice, QuestionNumerical, Survey
from headrace.web.api.failure_groups import normalised
from tests.web.running_page import RunningPage

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)>" ' onmouseover='x' {{ 7*7 }} \x1b[31m &lt;"""


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "failed.run"
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="{{ agent.n }}?", question_options=["good", "bad"]
            ),
            QuestionNumerical(question_name="age", question_text="{{ agent.n }}?"),
        ]
    )

    def answer(user_prompt: str, system_prompt: str, files: list[object]) -> str:
        number = int(user_prompt.split("?")[0])
        if number % 3 == 0:
            raise RuntimeError(f"{HOSTILE} call {number} took {number * 7} ms")
        return HOSTILE if number % 3 == 1 else "12"

    agents = [Agent(traits={"n": n}) for n in range(30)]
    survey.by(agents).by(Model("test", func=answer)).run(path, cache=False)
    return path


def test_failures_are_grouped_by_cause_with_examples_that_lead_to_their_interviews(failed_run: Path):
    with RunningPage(failed_run) as page:
        run = page.api("/runs")["files"][0]["id"]
        found = page.api(f"/runs/{run}/failures?text=true")
        assert found["failed"] == 30
        assert not found["truncated"]
        assert found["read"] == sum(each["count"] for each in found["groups"])
        assert {each["name"] for each in found["questions"]} == {"mood", "age"}
        refused = next(each for each in found["groups"] if each["cause"] == "model refused the call")
        assert refused["count"] == 20  # both questions of every third agent
        assert [example["ordinal"] for example in refused["examples"]][:2] == [0, 0]
        assert "took N ms" in refused["message"]
        body = page.get(f"/runs/{run}/failures").body
        assert f'href="/runs/{run}/interviews/3"' in body
        assert f"{found['read']} questions failed" in body
        for question in found["questions"]:
            assert f'href="/runs/{run}/table?filter={quote(question["filter"])}"' in body
            rows = page.api(f"/runs/{run}/rows?limit=200&filter={quote(question['filter'])}")["rows"]
            assert len(rows) == question["count"]
        assert page.get(f"/runs/{run}/interviews/0").status in (200, 404)


def test_messages_are_text_on_the_page_and_not_in_the_api_unless_asked_for(failed_run: Path):
    with RunningPage(failed_run) as page:
        run = page.api("/runs")["files"][0]["id"]
        body = page.get(f"/runs/{run}/failures").body
        assert "&lt;script&gt;" in body
        for part in ("<script>alert", "<img src=x", "onmouseover='x'", "\x1b"):
            assert part not in body
        unasked = page.get(f"/api/v1/runs/{run}/failures").body
        assert "alert" not in unasked
        assert "took" not in unasked
        assert "model refused the call" in unasked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("retry after 12 s", "retry after 13.5 s"),
        ("'blue' is not one of the options", "'light red' is not one of the options"),
        (
            "no such call req_8fa93bc01de2f at https://a.example/x",
            "no such call req_1111bc01de2f at https://b.example/y",
        ),
    ],
)
def test_messages_that_differ_in_numbers_quotes_ids_and_addresses_are_of_one_group(one: str, other: str):
    assert normalised(one) == normalised(other)


def test_statuses_of_http_are_told_apart():
    assert normalised("the service answered 429: slow down") != normalised("the service answered 503: slow down")


def test_the_page_of_a_run_says_what_was_paid_and_what_is_left(tmp_path: Path):
    survey = Survey([QuestionNumerical(question_name="age", question_text="?")])
    model = Model("test", canned_response="12", price={"input": 1000, "output": 1000})
    survey.by([Agent(traits={"n": n}) for n in range(4)]).by(model).run(
        tmp_path / "a.run", max_cost=5, max_tokens_total=100_000, cache=False
    )
    with RunningPage(tmp_path) as page:
        run = page.api("/runs")["files"][0]["id"]
        money = page.api(f"/runs/{run}/money")
        assert money["calls"] == 4
        assert 0 < money["cost"] < 5
        assert money["cost_left"] == pytest.approx(5 - money["cost"])
        assert money["tokens_left"] == 100_000 - money["input_tokens"] - money["output_tokens"]
        body = page.get(f"/runs/{run}").body
        assert f"${money['cost_left']:,.2f} of $5.00" in body
        assert "answers from the cache" in body
