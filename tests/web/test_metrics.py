"""Figures for Prometheus, by the rules of its own parser."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headrace import Agent, Engine, Model, QuestionMultipleChoice, Survey
from tests.cli.live import SURVEY, endless, live
from tests.web.running_page import RunningPage

pytestmark = pytest.mark.usefixtures("forks")

NAME = 'a "quoted"\\ name\n.run'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SURVEY)
    place = tmp_path / "place"
    place.mkdir()
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def samples(page: RunningPage) -> dict[str, list[tuple[dict[str, str], float]]]:
    answer = page.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(answer.body):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    for told in found.values():
        labels = [tuple(sorted(each.items())) for each, _ in told]
        assert len(labels) == len(set(labels)), "Prometheus refuses two samples with the same labels"
    return found


def test_models_that_differ_in_their_parameters_alone_are_told_apart(page: RunningPage, place: Path):
    question = QuestionMultipleChoice(question_name="mood", question_text="Well?", question_options=["good", "bad"])
    models = [Model("test", canned_response=text) for text in ("good", "neither")]
    Survey([question]).by(models).run(place / "a.run", cache=False)
    told = samples(page)["headrace_interviews_total"]
    assert {labels["model"]: value for labels, value in told if labels["status"] == "failed"} == {
        "test (model 1)": 0,
        "test (model 2)": 1,
    }
    run = page.api("/runs")["files"][0]["id"]
    (model,) = page.api(f"/runs/{run}/failures")["models"]
    assert (model["name"], model["count"]) == ("test (model 2)", 1)
    assert len(page.api(f"/runs/{run}/rows?filter={quote(model['filter'])}")["rows"]) == 1


def test_finished_interviews_are_counted_by_status_and_model(page: RunningPage, place: Path):
    question = QuestionMultipleChoice(question_name="mood", question_text="Well?", question_options=["good", "bad"])
    agents = [Agent(traits={"n": n}) for n in range(3)]
    models = [
        Model("first", service_name="test", canned_response="good"),
        Model('sec"ond\\', service_name="test", canned_response="neither"),
    ]
    Survey([question]).by(agents).by(models).run(place / NAME, cache=False)
    (place / "broken.run").write_bytes(b"no database" * 100)
    found = samples(page)
    counted = {(labels["model"], labels["status"]): value for labels, value in found["headrace_interviews_total"]}
    assert counted == {
        ("first", "done"): 3,
        ("first", "failed"): 0,
        ('sec"ond\\', "done"): 0,
        ('sec"ond\\', "failed"): 3,
    }
    assert {labels["file"] for labels, _ in found["headrace_file_bytes"]} == {NAME, "broken.run"}
    assert all(value == 0 for _, value in found["headrace_running"])
    assert found["headrace_interviews_planned"][0][1] == 6
    assert found["headrace_run_seconds_total"][0][1] > 0
    assert samples(page) == found


async def test_a_run_that_goes_on_tells_its_memory(page: RunningPage, place: Path):
    async with Engine(place / "agents.run"):
        pass
    with live(place.parent, *endless("place/a.run")) as run:
        run.state_once(place / "a.run", done=5)
        found = samples(page)
        give_up_at = time.monotonic() + 60
        while not found["headrace_interviews_in_flight"][0][1]:  # all rows may just have been committed
            assert time.monotonic() < give_up_at
            found = samples(page)
    labels, memory = found["headrace_memory_bytes"][-1]
    assert labels["file"] == "a.run"
    assert 0 < memory < found["headrace_memory_budget_bytes"][-1][1]
    kinds = {labels["kind"]: value for labels, value in found["headrace_running"]}
    assert kinds == {"engine": 0, "run": 1}
    assert found["headrace_interviews_in_flight"][0][1] <= 4
    assert sum(value for _, value in found["headrace_interviews_total"]) >= 5


def test_the_figures_need_the_token(page: RunningPage):
    assert page.get("/metrics", Accept="*/*").status == 401
