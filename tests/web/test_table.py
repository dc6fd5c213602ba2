"""The table of a run's interviews, over HTTP: columns, filters, order, pages, and what it does not show unasked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from headrace.errors import ExpressionError
from headrace.results.reading import keyset_search
from headrace.results.results import Results
from headrace.web.api import run_rows
from headrace.web.page_cursors import cursor_of
from tests.results import files
from tests.web.hostile import SCRIPTS, assert_only_text, hostile_run
from tests.web.running_page import RunningPage


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    files.city(place / "city.run", people=60)
    hostile_run(place / "hostile.run")
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def id_of(page: RunningPage, name: str = "city.run") -> str:
    return next(file["id"] for file in page.api("/runs")["files"] if file["name"] == name)


def rows(page: RunningPage, name: str = "city.run", **asked: Any) -> Any:
    return page.api(f"/runs/{id_of(page, name)}/rows?{urlencode(asked)}")


def refused(page: RunningPage, **asked: Any) -> str:
    answer = page.get(f"/api/v1/runs/{id_of(page)}/rows?{urlencode(asked)}")
    assert answer.status == 400, answer.body
    return answer.json()["error"]["message"]


def test_a_table_has_the_columns_of_results_unless_others_are_chosen(page: RunningPage, place: Path):
    with Results.open(place / "city.run") as results:
        assert rows(page, limit=1)["columns"] == results.columns
    chosen = rows(page, columns="agent.age, answer.*", text="true", limit=2)
    assert chosen["columns"] == ["agent.age", "answer.mood", "answer.rating"]
    assert [row["cells"] for row in chosen["rows"]] == [[20, "Good", 0], [20, "Bad", 3]]
    assert [row["ordinal"] for row in chosen["rows"]] == [0, 1]


def test_answers_that_are_missing_say_why_and_the_table_how_many_interviews_match(
    page: RunningPage, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_rows, "_COUNT_S", 30.0)
    asked = {"filter": "failed.mood_failed", "columns": "mood, rating", "limit": 2}
    found = rows(page, **asked)
    assert [row["missing"] for row in found["rows"]] == [{"answer.mood": "failed"}] * 2
    with Results.open(place / "city.run") as results:
        assert found["matching"] == len(results.filter("failed.mood_failed")) > 2
        assert rows(page)["matching"] == len(results)
    assert rows(page, filter="not failed.mood_failed")["rows"][0]["missing"] == {}
    body = page.get(f"/runs/{id_of(page)}/table?{urlencode(asked)}").body
    assert '<td><span class="bad">failed</span></td>' in body
    assert f"{found['matching']} interviews of " in body


def test_pages_go_on_behind_a_cursor_and_back(page: RunningPage):
    for asked in ({}, {"sort": "answer.rating"}, {"sort": "-agent.age"}, {"filter": "rating > 4", "sort": "mood"}):
        forward, found = [], rows(page, limit=7, **asked)
        assert found["previous"] is None
        while True:
            forward += [row["ordinal"] for row in found["rows"]]
            if found["next"] is None:
                break
            found = rows(page, limit=7, cursor=found["next"], **asked)
        back = [row["ordinal"] for row in found["rows"]]
        while found["previous"] is not None:
            found = rows(page, limit=7, cursor=found["previous"], **asked)
            back = [row["ordinal"] for row in found["rows"]] + back
        assert forward == back
        assert len(set(forward)) == len(forward) == (60 if "filter" in asked else 120)


def test_a_filter_is_refused_in_the_words_of_results(page: RunningPage, place: Path):
    for wrong in ("agent.agee == 3", "agent.age =", "mood == Good", "import os", "(" * 500):
        with Results.open(place / "city.run") as results, pytest.raises(ExpressionError) as raised:
            results.filter(wrong)
        assert refused(page, filter=wrong) == raised.value.message
    assert "no column 'nothing'" in refused(page, sort="nothing")
    assert "no column 'nothing'" in refused(page, columns="nothing")
    assert "cannot be read" in refused(page, columns='"a" b')
    assert "limit" in refused(page, limit=201)


def test_cursors_that_the_page_did_not_give_are_refused_in_words(page: RunningPage):
    own = rows(page, limit=3)["next"]
    run = id_of(page)
    forged = [
        "x", "%00", "é", own[:-2], "A" * 20_000, own + "AAAA", own.swapcase(),
        cursor_of(msgspec.convert([], keyset_search.KeysetPlace), ("rows", run, "other", "")),
    ]  # fmt: skip
    for cursor in forged[:-1]:
        answer = page.get(f"/api/v1/runs/{run}/rows?cursor={quote(cursor)}")
        assert answer.status == 400, cursor
    assert "cursor" in refused(page, cursor=forged[-1])
    assert "cursor" in refused(page, cursor=own, filter="rating > 4")
    huge = keyset_search.KeysetPlace(2**62)
    assert "another file" in refused(page, sort="mood", cursor=cursor_of(huge, ("rows", run, "", "mood")))


def test_texts_of_answers_come_only_where_they_are_asked_for(page: RunningPage):
    asked = {"columns": "answer.said,answer.mood,agent.trait,comment.said_comment,prompt.said_user_prompt"}
    held = rows(page, "hostile.run", limit=2, **asked)["rows"][0]
    assert held["cells"] == [None, "good", SCRIPTS[0], None, None]
    assert held["withheld"]
    told = rows(page, "hostile.run", limit=2, text="true", **asked)["rows"][0]
    assert told["cells"] == [SCRIPTS[0], "good", SCRIPTS[0], "since it rains", "Please answer 0."]
    assert not told["withheld"]


def test_long_cells_are_cut_and_say_so(page: RunningPage):
    found = rows(page, "hostile.run", columns="answer.said,answer.mood", letters=10, text="true", limit=1)["rows"][0]
    assert found["cells"] == [SCRIPTS[0][:9] + "…", "good"]
    assert found["truncated"]


def test_a_search_that_runs_out_of_time_gives_what_it_found_and_a_cursor(
    page: RunningPage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyset_search, "_FIRST_ROWS", 10)
    monkeypatch.setattr(keyset_search, "_MOST_ROWS", 10)
    monkeypatch.setattr(run_rows, "_SEARCH_S", 0.05)
    searched, found, seen, cursor = [], None, [], ""
    for _ in range(200):
        asked = urlencode({"filter": "agent.age == 79", "cursor": cursor})
        answer = page.get(f"/api/v1/runs/{id_of(page)}/rows?{asked}")
        if answer.status == 503:
            continue  # a busy machine may need more than that for its first range
        found = answer.json()
        seen += [row["ordinal"] for row in found["rows"]]
        if found["searched_to"] is None:
            break
        searched.append(found["searched_to"])
        cursor = found["go_on"]
    assert seen == []
    assert found is not None
    assert found["next"] is None
    assert searched == sorted(searched)


def test_the_page_shows_how_far_a_search_came(page: RunningPage, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any, **__: Any) -> keyset_search.KeysetFound:
        behind = keyset_search.KeysetPlace(411_999)
        return keyset_search.KeysetFound(ordinals=[3], before=None, behind=behind, read_to=411_999)

    monkeypatch.setattr(run_rows, "find_interviews", interrupted)
    shown = page.get(f"/runs/{id_of(page)}/table?filter=rating==77").body
    assert "Searched up to interview 411,999" in shown
    assert "Go on" in shown
    assert "/interviews/3".replace("/", "&#x2f;") in shown


def test_the_table_is_a_page_that_reads_without_scripts(page: RunningPage):
    run = id_of(page)
    shown = page.get(f"/runs/{run}/table?filter={quote('rating > 4')}&sort=-answer.rating").body
    assert 'value="rating &gt; 4"' in shown
    assert 'aria-sort="descending"' in shown
    assert 'rel="next"' in shown
    assert "download.csv?filter=rating+%3E+4" in shown
    wrong = page.get(f"/runs/{run}/table?filter={quote('rating >')}").body
    assert 'value="rating &gt;"' in wrong
    assert 'role="alert"' in wrong
    assert page.get("/assets/completion.js").status == 200


def test_what_hostile_files_hold_is_text_on_the_page(page: RunningPage):
    run = id_of(page, "hostile.run")
    shown = page.get(f"/runs/{run}/table").body
    assert_only_text(shown)
    assert "&lt;script&gt;alert(1)&lt;&#x2f;script&gt;" in shown
    for text in SCRIPTS:
        for name in ("filter", "columns", "sort", "cursor", "limit"):
            assert_only_text(page.get(f"/runs/{run}/table?{urlencode({name: text})}").body)


def test_columns_are_listed_with_their_kinds_and_functions(page: RunningPage):
    found = page.api(f"/runs/{id_of(page)}/columns")
    kinds = {column["name"]: column["kinds"] for column in found["columns"]}
    assert kinds["answer.rating"] == ["int"]
    assert kinds["agent.age"] == ["int", "null"]
    assert "comment.mood_comment" in kinds
    assert "startswith" in found["functions"]
    assert found["truncated"] is False


def test_a_file_without_rows_says_so(tmp_path: Path):
    path = tmp_path / "none.run"
    files.job(files.survey("mood")).run(path, keep="nothing", aggregate={"n": "count()"}, cache=False)
    with RunningPage(path) as page:
        assert "keeps no results" in refused_at(page, id_of(page, "none.run"))
        assert "keeps no results" in page.get(f"/runs/{id_of(page, 'none.run')}/table").body


def refused_at(page: RunningPage, run: str) -> str:
    answer = page.get(f"/api/v1/runs/{run}/rows")
    assert answer.status == 400
    return answer.json()["error"]["message"]


def test_a_table_of_a_run_that_is_being_written_shows_what_is_there(tmp_path: Path):
    agents = [files.Agent(name=f"p{i}", traits={"age": i}) for i in range(30)]
    of = files.job(files.survey("mood"), agents)
    with files.opened(tmp_path / "live.run", of) as file, RunningPage(tmp_path) as page:
        run = id_of(page, "live.run")
        assert page.api(f"/runs/{run}/rows")["rows"] == []
        for upto in (5, 30):
            held = len(page.api(f"/runs/{run}/rows")["rows"])
            batch = [files.row(file, of, n, ["fine"]) for n in range(held, upto)]
            file.journal.commit([files.row_batch(batch)], [])
            found = page.api(f"/runs/{run}/rows?columns=agent.age")
            assert [row["cells"] for row in found["rows"]] == [[n] for n in range(upto)]


def test_a_pattern_of_many_stars_is_no_long_search(page: RunningPage):
    assert "No column is called like" in refused(page, columns="*a" * 200 + "*z")
    found = rows(page, columns="*a*t*n*g,a*.*e,*.mood,answer.m*d", limit=1)["columns"]
    assert found == ["answer.rating", "agent.agent_name", "agent.age", "answer.mood"]
