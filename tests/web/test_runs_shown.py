"""The list of runs and the page of one, of real run files."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Agent, Engine, Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.interviews.steering.client import ask
from headrace.interviews.steering.messages import PauseRequest
from tests.cli.live import SURVEY, endless, live
from tests.web.event_client import followed
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="How are you?", question_options=["good", "bad"]
            ),
            QuestionFreeText(question_name="why", question_text="Why?"),
        ]
    )
    agents = [Agent(traits={"city": city}) for city in ("Rome", "Oslo")]
    survey.by(agents).by(Model("test", canned_response="good")).run(place / "<b>city.run", cache=False)
    (place / "broken.run").write_bytes(b"this is no database at all, whatever its name says" * 100)
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def listed(page: RunningPage) -> dict[str, dict[str, object]]:
    return {file["name"]: file for file in page.api("/runs")["files"]}


def test_the_list_has_every_file_of_the_place_also_one_that_is_damaged(page: RunningPage):
    files = listed(page)
    done = files["<b>city.run"]
    assert (done["state"], done["done"], done["total"], done["failed"]) == ("complete", 2, 2, 0)
    assert files["broken.run"]["state"] == "damaged"
    assert "not a run file" in str(files["broken.run"]["trouble"])


def test_files_that_go_on_stand_first_and_keep_their_places(place: Path, tmp_path: Path):
    (tmp_path / "s.yaml").write_text(SURVEY)
    shown, going = tmp_path / "shown", ("a.run", "b.run")
    shown.mkdir()
    shutil.copy(place / "<b>city.run", shown / "latest.run")
    with (
        live(tmp_path, *endless("shown/b.run")) as b,
        live(tmp_path, *endless("shown/a.run")) as a,
        RunningPage(shown) as page,
    ):
        for run, name in zip((a, b), going, strict=True):
            run.state_once(shown / name)
            ask(shown / name, PauseRequest())
        for latest in ("latest.run", *going, *reversed(going)):
            later_s = time.time() + 60
            os.utime(shown / latest, (later_s, later_s))
            assert [file["name"] for file in page.api("/runs")["files"]] == [*going, "latest.run"]
            with followed(page.port, "/events") as stream:
                told = stream.next()
                assert told is not None
                assert [file["name"] for file in told.data["files"]] == [*going, "latest.run"]


async def test_an_engine_file_is_listed_as_one(tmp_path: Path):
    async with Engine(tmp_path / "agents.run"):
        pass
    with RunningPage(tmp_path) as page:
        assert [(file["kind"], file["state"]) for file in page.api("/runs")["files"]] == [("engine", "not running")]


def test_a_run_is_shown_in_figures_with_its_memory(page: RunningPage):
    run = page.api(f"/runs/{listed(page)['<b>city.run']['id']}")
    assert (run["done"], run["total"], run["calls"], run["live"]) == (2, 2, 4, None)
    points = page.api(f"/runs/{run['id']}/memory")["points"]
    assert points
    assert all(0 < point["memory_bytes"] < point["budget_bytes"] for point in points)


def test_names_from_outside_are_text_in_html(page: RunningPage):
    found = page.get("/").body
    assert "&lt;b&gt;city.run" in found
    assert "<b>city" not in found
    shown = page.get(f"/runs/{listed(page)['<b>city.run']['id']}").body
    assert "&lt;b&gt;city.run" in shown
    assert "<b>city" not in shown
    assert "<svg" in shown
    assert "<style" not in shown
    assert "style=" not in shown


def test_what_is_not_there_is_said_in_words(page: RunningPage):
    answer = page.get("/api/v1/runs/0011223344556677")
    assert answer.status == 404
    assert "no file" in answer.json()["error"]["message"]
    assert page.get("/runs/0011223344556677").status == 404
    assert page.get("/api/v1/nothing").status == 404
