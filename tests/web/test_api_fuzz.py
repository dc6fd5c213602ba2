"""Random requests that the OpenAPI document allows: none is answered with a failure of the server, and every answer is
as the document says. A case takes some 20 ms, so that the suite tries a few of each; `./scripts/test
tests/web/test_api_fuzz.py --examples 10` tries some thousand.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from headrace import Agent, Model, QuestionFreeText, Survey
from headrace.web.api import OPERATIONS
from tests.web.running_page import TOKEN, RunningPage

_CASES = 25


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    survey = Survey([QuestionFreeText(question_name="why", question_text="Why?")])
    survey.by([Agent(traits={"n": n}) for n in range(5)]).by(Model("test", canned_response="x")).run(place / "a.run")
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


@pytest.fixture
def schema(page: RunningPage) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, at import
        import schemathesis

        return schemathesis.openapi.from_dict(page.api("/openapi.json"))


@pytest.fixture
def checks() -> list[Any]:
    from schemathesis import checks, specs

    found = specs.openapi.checks
    names = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
    return [checks.not_a_server_error, *(getattr(found, name) for name in names)]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method.value} {each.path}")
def test_any_request_is_answered_as_the_document_says(
    operation: Any, page: RunningPage, schema: Any, checks: Any, request: Any
):
    described = schema[f"/api/v1{operation.path}"][operation.method.value]
    known = page.api("/runs")["files"][0]["id"]
    share = request.config.getoption("examples")

    @seed(17)
    @settings(
        max_examples=max(1, int(_CASES * share)), database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=described.as_strategy(), is_known=st.sampled_from([True, True, True, False]))
    def answers(case: Any, is_known: bool) -> None:
        if is_known and "run" in case.path_parameters:
            case.path_parameters["run"] = known
        answer = case.call(base_url=f"http://127.0.0.1:{page.port}", headers={"Authorization": f"Bearer {TOKEN}"})
        case.validate_response(answer, checks=checks)

    answers()
