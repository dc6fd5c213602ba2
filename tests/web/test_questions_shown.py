"""The questions of a run as pictures, with answers that would like to be more than text."""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from headrace import Agent, Model, QuestionFreeText, QuestionMultipleChoice, QuestionNumerical, Results, Survey
from headrace.web.api import question_pictures
from tests.web.running_page import RunningPage

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)>" onload='x' ]]> {{ 7*7 }}"""


class Tags(HTMLParser):
    """The tags of a page, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "a.run"
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="{{ agent.n }} mood?", question_options=["good", HOSTILE]
            ),
            QuestionNumerical(question_name="rating", question_text="{{ agent.n }} rating?"),
            QuestionFreeText(question_name="why", question_text="{{ agent.n }} why? " + HOSTILE),
            QuestionFreeText(question_name="word", question_text="{{ agent.n }} word?"),
        ]
    )

    def answer(user_prompt: str, system_prompt: str, files: list[object]) -> str:
        number = int(user_prompt.split(" ")[0])
        if "mood?" in user_prompt:
            return HOSTILE if number % 3 else "good"
        if "rating?" in user_prompt:
            return str(number % 11)
        return f"{HOSTILE} {number}" if "why?" in user_prompt else (HOSTILE, "one")[number % 2]

    agents = [Agent(traits={"n": n, "city": ("Rome", HOSTILE)[n % 2]}) for n in range(60)]
    survey.by(agents).by(Model("test", func=answer)).run(path, cache=False)
    return path


@pytest.fixture
def page(path: Path) -> Iterator[RunningPage]:
    with RunningPage(path) as page:
        yield page


def run_of(page: RunningPage) -> str:
    return page.api("/runs")["files"][0]["id"]


def links_in(body: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r'<a href="([^"]*/table\?[^"]*)"', body)]


def test_each_bar_leads_to_the_table_with_a_filter_that_finds_its_interviews(page: RunningPage, path: Path):
    run = run_of(page)
    picture = page.api(f"/runs/{run}/questions/mood?text=true")
    counts = {bar["filter"]: bar["count"] for bar in picture["panels"][0]["bars"]}
    assert sorted(counts.values()) == [20, 40]
    body = page.get(f"/runs/{run}/questions").body
    filters = [parse_qs(urlsplit(link).query)["filter"][0] for link in links_in(body)]
    assert set(counts) <= set(filters)
    with Results.open(path) as results:
        for condition in filters:
            found = len(results.filter(condition))
            assert found > 0
            assert counts.get(condition, found) == found
    assert page.get(links_in(body)[1]).status == 200


def test_bars_of_what_failed_was_skipped_or_was_not_asked_lead_to_as_many_interviews(tmp_path: Path):
    def answer(user_prompt: str, system_prompt: str, files: list[object]) -> str:
        number = int(user_prompt.split(" ")[0])
        return "no number" if number % (3 if "first?" in user_prompt else 5) == 0 else str(number)

    survey = Survey(
        [
            QuestionNumerical(question_name="first", question_text="{{ agent.n }} first?"),
            QuestionNumerical(question_name="second", question_text="{{ agent.n }} second? {{ first.answer }}"),
            QuestionNumerical(question_name="third", question_text="{{ agent.n }} third?"),
        ]
    ).add_skip_rule("third", "{{ agent.n }} < 8")
    agents = [Agent(traits={"n": n}) for n in range(60)]
    path = tmp_path / "a.run"
    survey.by(agents).by(Model("test", func=answer)).run(path, cache=False)
    with RunningPage(path) as page, Results.open(path) as results:
        for question, labels in (
            ("first", {"failed": 20}),
            ("second", {"not asked": 20, "failed": 8}),
            ("third", {"skipped": 4, "skipped or not asked": 4, "failed": 10}),
        ):
            for query in ("", "?by=answer.first"):
                picture = page.api(f"/runs/{run_of(page)}/questions/{question}{query}")
                bars = [bar for panel in picture["panels"] for bar in panel["bars"]]
                assert [(bar["count"], len(results.filter(bar["filter"]))) for bar in bars if bar["filter"]] == [
                    (bar["count"], bar["count"]) for bar in bars if bar["filter"]
                ]
                missing = {bar["label"]: bar["count"] for bar in bars if bar["kind"] in ("none", "failed")}
                assert query or missing == labels


@pytest.mark.parametrize("query", ["", f"?by=agent.city&filter={quote('agent.n < 50')}"])
def test_answers_names_and_questions_are_text_on_the_page(page: RunningPage, query: str):
    body = page.get(f"/runs/{run_of(page)}/questions{query}").body
    tags = Tags()
    tags.feed(body)
    assert "&lt;script&gt;" in body
    assert {name for name, _ in tags.found}.isdisjoint({"img", "style", "iframe", "foreignobject"})
    for name, attributes in tags.found:
        assert not [each for each in attributes if each.startswith("on") or each == "style"], name
        assert name != "script" or str(attributes["src"]).startswith("/assets/")
    assert "some of them" in body


def test_texts_of_models_are_given_to_programs_that_ask_for_them(page: RunningPage):
    run = run_of(page)
    assert "alert" not in page.get(f"/api/v1/runs/{run}/questions/word").body
    assert "alert" not in page.get(f"/api/v1/runs/{run}/questions/why").body
    assert "alert" in page.get(f"/api/v1/runs/{run}/questions/word?text=true").body
    assert page.api(f"/runs/{run}/questions/why?text=true")["samples"]
    by_word = page.api(f"/runs/{run}/questions/rating?by=answer.word")
    assert {panel["label"] for panel in by_word["panels"]} == {""}
    assert {bar["filter"] for panel in by_word["panels"] for bar in panel["bars"]} == {""}


def test_a_picture_is_split_and_filtered(page: RunningPage):
    run = run_of(page)
    split = page.api(f"/runs/{run}/questions/rating?by=agent.city&filter=agent.n%20%3C%2020")
    assert [panel["rows"] for panel in split["panels"]] == [10, 10]
    assert split["complete"]
    assert split["total"] == 60
    assert "agent.city" in page.api(f"/runs/{run}/questions")["splits"]


def test_a_filter_that_cannot_be_read_is_explained_above_its_box(page: RunningPage):
    run = run_of(page)
    body = page.get(f"/runs/{run}/questions?filter=agent.nn%20%3C%203").body
    assert "There is no column" in html.unescape(body)
    assert 'value="agent.nn &lt; 3"' in body
    refused = page.get(f"/api/v1/runs/{run}/questions/mood?filter=1%20%2B")
    assert refused.status == 400
    assert refused.json()["error"]["message"]
    assert page.get(f"/api/v1/runs/{run}/questions/none").status == 400
    assert "There is no column" in html.unescape(page.get(f"/runs/{run}/questions/none").body)
    assert page.get(f"/runs/{run}/questions?first=x").status == 400


def test_a_page_that_is_not_complete_says_how_far_it_is_and_asks_again_without_scripts(
    page: RunningPage, monkeypatch: pytest.MonkeyPatch
):
    from headrace.results.plots import kept_counts

    monkeypatch.setattr(kept_counts, "_SMALLEST_RANGE", 16)
    monkeypatch.setattr(question_pictures, "COUNT_WITHIN_S", 0.0)
    run = run_of(page)
    first = page.get(f"/runs/{run}/questions").body
    assert "Of the first 16 of 60 interviews" in first
    assert '<noscript><meta http-equiv="refresh"' in first
    for _ in range(10):
        last = page.get(f"/runs/{run}/questions").body
    assert "Of the first" not in last
    assert "http-equiv" not in last


def test_questions_come_some_at_a_time(tmp_path: Path):
    asked = [QuestionFreeText(question_name=f"q{n}", question_text="?") for n in range(14)]
    Survey(asked).by(Model("test")).run(tmp_path / "a.run", cache=False)
    with RunningPage(tmp_path) as page:
        run = run_of(page)
        body = page.get(f"/runs/{run}/questions").body
        assert (">q0<" in body, ">q5<" in body, ">q6<" in body) == (True, True, False)
        following = html.unescape(re.findall(r'<a href="([^"]*)">More questions', body)[0])
        assert ">q6<" in page.get(following).body
        assert page.api(f"/runs/{run}/questions?first=10&count=2")["truncated"]


def test_a_file_that_keeps_no_rows_says_so(tmp_path: Path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="?")])
    survey.by(Model("test")).run(tmp_path / "a.run", cache=False, keep="nothing", aggregate={"n": "count()"})
    with RunningPage(tmp_path) as page:
        run = run_of(page)
        assert "keeps no results" in page.get(f"/runs/{run}/questions").body
        assert page.get(f"/runs/{run}/failures").status == 200
