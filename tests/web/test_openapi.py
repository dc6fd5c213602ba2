"""The OpenAPI document: it has every operation, and replies are as it says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from headrace import Agent, Model, QuestionFreeText, QuestionMultipleChoice, Survey
from headrace.errors import InvalidInput
from headrace.web.api import OPERATIONS
from headrace.web.api.agent_runs import AGENT_RUNS
from headrace.web.live.streams import STREAMS
from tests.web.event_client import followed
from tests.web.running_page import RunningPage


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    survey = Survey(
        [
            QuestionMultipleChoice(question_name="mood", question_text="Well?", question_options=["good", "bad"]),
            QuestionFreeText(question_name="why", question_text="Why?"),
        ]
    )
    agents = [Agent(traits={"city": city}) for city in ("Rome", "Oslo", "Lima")]
    models = [Model("test", canned_response="good"), Model("test", canned_response="neither")]
    survey.by(agents).by(models).run(place / "city.run", cache=False)
    (place / "broken.run").write_bytes(b"no database" * 100)
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})


def run_id(page: RunningPage) -> str:
    return next(file["id"] for file in page.api("/runs")["files"] if file["name"] == "city.run")


def test_every_operation_and_every_stream_is_in_the_document(page: RunningPage):
    document = page.api("/openapi.json")
    assert document["openapi"] == "3.1.0"
    for operation in OPERATIONS:
        described = document["paths"][f"/api/v1{operation.path}"][operation.method.value.lower()]
        names = {each["name"] for each in described["parameters"]}
        form = described.get("requestBody", {}).get("content", {})
        names |= {name for each in form.values() for name in each["schema"]["properties"]}
        assert names == set(operation.parameters.__struct_fields__), operation.name
        assert described["summary"]
    for stream in STREAMS:
        assert "text/event-stream" in document["paths"][f"/api/v1{stream.path}"]["get"]["responses"]["200"]["content"]
    described = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(described) == len(set(described)) == len(OPERATIONS) + len(STREAMS)


def test_replies_and_errors_are_as_the_document_says(page: RunningPage):
    document, name = page.api("/openapi.json"), run_id(page)
    failed = validator(document, {"$ref": "#/components/schemas/ErrorReply"})
    for path, methods in document["paths"].items():
        if "get" not in methods or "x-event" in methods["get"]:
            continue
        described = methods["get"]
        needed = [each["name"] for each in described["parameters"] if each["required"] and each["in"] == "query"]
        content = described["responses"]["200"]["content"]["application/json"]
        answer = page.get(path.replace("{run}", name))
        if needed:
            assert answer.status == 400, path
            failed.validate(answer.json())
        else:
            assert answer.status in (200, 400, 404), (path, answer.body)
            (validator(document, content["schema"]) if answer.status == 200 else failed).validate(answer.json())
        nowhere = page.get(path.replace("{run}", "0011223344556677"))
        assert nowhere.status == (404 if "{run}" in path and not needed else nowhere.status)
        if nowhere.status != 200:
            failed.validate(nowhere.json())
    for path in ("/api/v1/nothing", "/api/v1/runs/x/y/z"):
        failed.validate(page.get(path).json())
    refused = page.get("/api/v1/runs", Accept="*/*")
    assert refused.status == 401
    failed.validate(refused.json())


def test_events_are_as_the_document_says(page: RunningPage):
    document = page.api("/openapi.json")
    for path, methods in document["paths"].items():
        if "x-event" in methods.get("get", {}) and "engine" not in path:
            shown = path.removeprefix("/api/v1").replace("{run}", run_id(page))
            with followed(page.port, shown) as client:
                if client.status == 200:
                    validator(document, methods["get"]["x-event"]).validate(client.next().data)


def test_what_steers_is_left_out_where_steering_is(place: Path):
    with RunningPage(place, can_steer=False) as page:
        methods = {method for path in page.api("/openapi.json")["paths"].values() for method in path}
    assert methods == {"get"}


def test_a_word_that_is_none_of_a_few_is_answered_with_the_few():
    with pytest.raises(InvalidInput) as caught:
        AGENT_RUNS.parsed({"engine": "e", "state": "nowhere"})
    assert "unfinished" in caught.value.fix
    with pytest.raises(InvalidInput) as caught:
        AGENT_RUNS.parsed({"engine": "e", "limit": "many"})
    assert not caught.value.fix
